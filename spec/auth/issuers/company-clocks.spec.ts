// Accounts of users of an identity provider that are looked at while the clock is wrong. Source: ADR 386.

import * as assert from 'uvu/assert';
import { ProviderFailure } from '../../../src/auth/issuers/identity-provider.ts';
import type { User } from '../../../src/domain/accounts/account.ts';
import { suite } from '../../helpers/suite.ts';
import { MINUTE_MS, SETTING, started } from './company.ts';

const test = suite('accounts of a company and clocks');
const AHEAD_MS = 100 * 24 * 60 * MINUTE_MS;

test('do not end because a clock is ahead for a moment, however many are looked at then', async () => {
  for (const keepsSecrets of [false, true]) {
    const { company, store, said, pass, step, answerWith } = started({ keepsSecrets });
    answerWith(() => Promise.reject(new ProviderFailure('its certificate has expired')));
    const users: User[] = [];
    for (const name of ['eve', 'ada'])
      users.push(
        await company.signIn(SETTING, {
          ...{ ...said([]), subject: name },
          claims: { sub: name, preferred_username: name, groups: ['staff'] },
        }),
      );
    const areActive = async () =>
      (await store.accounts.findUsers(users.map(({ id }) => id))).map(({ isActive }) => isActive);
    pass(MINUTE_MS);
    step(AHEAD_MS);
    for (const { id } of users) await company.confirm(id);
    step(-AHEAD_MS);
    pass(MINUTE_MS);
    for (const { id } of users) await company.confirm(id);
    assert.equal(await areActive(), [true, true]);
    pass(24 * 60 * MINUTE_MS + 1);
    for (const { id } of users) await company.confirm(id);
    assert.equal(await areActive(), [false, false]);
  }
});

test('end by a clock that stays ahead, unless the database has another time', async () => {
  for (const isShared of [false, true]) {
    const serverTimeMs = () => Date.parse('2030-01-01T00:00:00Z');
    const { company, said, pass, step, isActive } = started({
      keepsSecrets: false,
      ...(isShared && { serverTimeMs }),
    });
    const { id } = await company.signIn(SETTING, said(['staff']));
    step(AHEAD_MS);
    await company.confirm(id);
    pass(16 * MINUTE_MS);
    await company.confirm(id);
    assert.is(await isActive(), isShared);
  }
});

test('end after a day without their provider, also when others are looked at at the same moment', async () => {
  const { company, said, pass, step, isActive, answerWith } = started();
  const { id } = await company.signIn(SETTING, said(['staff']));
  const { id: other } = await company.signIn(SETTING, {
    ...{ ...said(['staff']), subject: 'other' },
    claims: { sub: 'other', preferred_username: 'other', groups: ['staff'] },
  });
  answerWith(() => Promise.reject(new ProviderFailure('it is away')));
  pass(24 * 60 * MINUTE_MS + 1);
  await company.confirm(other);
  step(1); // the wall clock has whole milliseconds, the monotonic one has parts of them
  await company.confirm(id);
  assert.is(await isActive(), false);
});

test.run();
