// Accounts of users of an identity provider: when the provider is asked again, and what ends them.

import * as assert from 'uvu/assert';
import { type ProviderAnswer, ProviderFailure } from '../../../src/auth/issuers/identity-provider.ts';
import { GatewayError } from '../../../src/domain/errors/errors.ts';
import { databaseUnavailable } from '../../../src/domain/errors/gateway-errors.ts';
import { becomes } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';

import { MINUTE_MS, SETTING, started } from './company.ts';

const test = suite('accounts of a company');

const AHEAD_MS = 100 * 24 * 60 * MINUTE_MS;

test('are confirmed as usual after a clock that was ahead for a moment at a sign-in', async () => {
  const { company, asked, said, pass, step, isActive, answerWith } = started();
  step(AHEAD_MS);
  const { id } = await company.signIn(SETTING, said(['staff']));
  company.used(id);
  step(-AHEAD_MS);
  await company.confirm(id, 15 * MINUTE_MS);
  assert.equal(asked, ['token 0'], 'nobody knows when the provider said it');
  await company.confirm(id, 15 * MINUTE_MS);
  pass(15 * MINUTE_MS);
  company.used(id);
  await becomes(() => asked.length, 2);
  step(AHEAD_MS);
  await company.signIn(SETTING, said(['staff']));
  step(-AHEAD_MS);
  answerWith(() => Promise.reject(new ProviderFailure('away')));
  await company.confirm(id);
  pass(24 * 60 * MINUTE_MS + 1);
  await company.confirm(id);
  assert.is(await isActive(), false, 'a day after the first attempt by the right clock');
});

test('are asked about although a node that was ahead died while it asked', async () => {
  const { company, asked, said, step, store } = started();
  step(AHEAD_MS);
  const { id } = await company.signIn(SETTING, said(['staff']));
  const [row] = await store.oauth.list({ kind: 'identity', userId: id }, 1);
  assert.ok(row);
  const stored = JSON.parse(row.value);
  await store.oauth.save({
    ...row,
    value: JSON.stringify({ ...stored, askedUntilMs: stored.confirmedAtMs + 30_000 }),
  });
  await company.confirm(id);
  assert.equal(asked, []);
  step(-AHEAD_MS);
  await company.confirm(id);
  assert.equal(asked, ['token 0']);
});

test('without a refresh token end `session_hours` after a clock that was ahead is right again', async () => {
  const { company, said, pass, step, isActive } = started({ keepsSecrets: false });
  step(AHEAD_MS);
  const { id } = await company.signIn(SETTING, said(['staff']));
  step(-AHEAD_MS);
  await company.confirm(id);
  assert.is(await isActive(), true);
  pass(12 * 60 * MINUTE_MS + 1);
  await company.confirm(id);
  assert.is(await isActive(), false);
});

test('are changed by identity assertions again after a clock that was ahead for a moment', async () => {
  const { company, store, asked, said, pass, step } = started();
  const startMs = Date.parse('2030-01-01T00:00:00Z');
  const vouch = async (issuedAtMs: number, email: string) => {
    const claims = { sub: 's-1', preferred_username: 'eve', groups: ['staff'], email };
    const { account } = await company.vouched(SETTING, { subject: 's-1', claims, issuedAtMs });
    return (await account()).email;
  };
  step(AHEAD_MS);
  await company.signIn(SETTING, said(['staff']));
  step(-AHEAD_MS);
  pass(MINUTE_MS);
  assert.is(await vouch(startMs, 'one@example.com'), 'eve@localhost', 'it may be older than the sign-in');
  assert.equal(asked, ['token 0']);
  pass(MINUTE_MS);
  assert.is(await vouch(startMs + 2 * MINUTE_MS, 'two@example.com'), 'two@example.com');
  const [row] = await store.oauth.list({ kind: 'identity' }, 1);
  assert.is(JSON.parse(row?.value ?? '').confirmedAtMs, startMs + 2 * MINUTE_MS);
});

test('are confirmed each 15 min while they are used, with the newest refresh token', async () => {
  const { company, asked, said, pass } = started();
  const { id } = await company.signIn(SETTING, said(['staff']));
  await company.confirm(id, 15 * MINUTE_MS);
  assert.equal(asked, [], 'the sign-in was less than 15 min ago');
  for (let round = 0; round < 2; round += 1) {
    pass(15 * MINUTE_MS);
    await Promise.all([company.confirm(id, 15 * MINUTE_MS), company.confirm(id, 15 * MINUTE_MS)]);
  }
  assert.equal(asked, ['token 0', 'token 1']);
});

test('sleep when the provider ends them, or no group has a role, until the next sign-in', async () => {
  for (const end of [
    () => Promise.reject(new ProviderFailure('over', { isOver: true })),
    async (): Promise<ProviderAnswer> => ({ subject: 's-2', claims: { sub: 's-2', groups: ['staff'] } }),
    async (): Promise<ProviderAnswer> => ({ subject: 's-1', claims: { sub: 's-1', groups: ['others'] } }),
    async (): Promise<ProviderAnswer> => ({ subject: 's-1', claims: { sub: 's-1', hasgroups: true } }),
  ]) {
    const { company, said, isActive, answerWith, store, pass } = started();
    const { id } = await company.signIn(SETTING, said(['staff']));
    answerWith(end);
    await company.confirm(id);
    assert.is(await isActive(), false);
    await company.signIn(SETTING, said(['staff']));
    assert.is(await isActive(), true);
    await company.confirm(id);
    pass(1);
    await store.accounts.changeUser(id, { isActive: false, updatedAt: '2030-01-02T00:00:00.000Z' });
    const refusal = await company.signIn(SETTING, said(['staff'])).catch((error: Error) => error.message);
    assert.match(String(refusal), 'is disabled', 'by an admin');
  }
});

test('are named by their name when their rights cannot be read again', async () => {
  const { company, said, answerWith, pass, warnings } = started();
  const { id } = await company.signIn(SETTING, said(['staff']));
  answerWith(() => Promise.reject(new GatewayError('VALIDATION_ERROR', 'it cannot be')));
  pass(15 * MINUTE_MS);
  company.used(id);
  await becomes(() => warnings.length, 1);
  assert.equal(warnings, ['the rights of the user eve cannot be read again: it cannot be']);
});

test('go on for a day without their provider, and for `session_hours` without a refresh token', async () => {
  const kept = started();
  const { id } = await kept.company.signIn(SETTING, kept.said(['staff']));
  kept.answerWith(() => Promise.reject(new ProviderFailure('away')));
  kept.pass(24 * 60 * MINUTE_MS);
  await kept.company.confirm(id);
  assert.is(await kept.isActive(), true);
  kept.pass(MINUTE_MS);
  await kept.company.confirm(id);
  assert.is(await kept.isActive(), false);

  const bare = started({ keepsSecrets: false });
  const user = await bare.company.signIn(SETTING, bare.said(['staff']));
  const [row] = await bare.store.oauth.list({ kind: 'identity', userId: user.id }, 1);
  assert.not.match(row?.value ?? '', 'token 0', 'it could not be encrypted');
  bare.pass(12 * 60 * MINUTE_MS);
  await bare.company.confirm(user.id);
  assert.is(await bare.isActive(), true);
  bare.pass(1);
  await bare.company.confirm(user.id);
  assert.is(await bare.isActive(), false);
  assert.equal(bare.asked, []);
});

test('outlive an outage of the database while the provider answers, whose token before is used up', async () => {
  const { company, asked, said, pass, store, isActive, answerWith } = started();
  const { id } = await company.signIn(SETTING, said(['staff']));
  let failures = 0;
  answerWith(async () => {
    failures = 5;
    return said(['staff']);
  });
  for (const name of ['save', 'replace'] as const) {
    const original = store.oauth[name];
    const write = async (...sent: readonly unknown[]) => {
      failures -= 1;
      if (failures >= 0) throw databaseUnavailable(new Error('it is away'));
      return Reflect.apply(original, store.oauth, sent);
    };
    Object.assign(store.oauth, { [name]: write });
  }
  await company.confirm(id);
  pass(15 * MINUTE_MS);
  await company.confirm(id);
  assert.equal(asked, ['token 0', 'token 1']);
  assert.is(await isActive(), true);
});

test('whose user signs in while the provider is asked keep what the sign-in said', async () => {
  for (const end of ['an answer', 'a refusal']) {
    const { company, said, store, isActive, answerWith } = started();
    const { id } = await company.signIn(SETTING, said(['staff']));
    answerWith(async () => {
      await company.signIn(SETTING, { ...said(['staff']), refreshToken: 'of the sign-in' });
      if (end === 'a refusal') throw new ProviderFailure('over', { isOver: true });
      return said(['staff']);
    });
    await company.confirm(id);
    assert.is(await isActive(), true, end);
    const [row] = await store.oauth.list({ kind: 'identity', userId: id }, 1);
    assert.match(row?.value ?? '', 'of the sign-in', end);
  }
});

test('keep the newest refresh token when an assertion, or the question of another node, changes the identity meanwhile', async () => {
  for (const by of ['an assertion', 'another node']) {
    const { company, said, store, asked, answerWith, isActive, pass } = started();
    const { id } = await company.signIn(SETTING, said(['staff']));
    answerWith(async () => {
      const { claims } = said(['staff']);
      const vouched = { subject: 's-1', claims, issuedAtMs: Date.parse('2030-01-01T00:01:00Z') };
      if (by === 'an assertion') await (await company.vouched(SETTING, vouched)).account();
      const [row] = await store.oauth.list({ kind: 'identity', userId: id }, 1);
      if (by === 'another node' && row !== undefined) await store.oauth.replace(row, row.version);
      answerWith(() => Promise.reject(new ProviderFailure('away')));
      return said(['staff']);
    });
    await company.confirm(id);
    pass(MINUTE_MS);
    await company.confirm(id);
    assert.equal([asked, await isActive()], [['token 0', 'token 1'], true], by);
  }
});

test('are those of an identity assertion, unless the provider has said something since', async () => {
  const { company, store, said, pass, answerWith, asked } = started();
  const vouch = async (issuedAtMs: number, groups?: readonly string[]) => {
    const claims = { sub: 's-1', preferred_username: 'eve', ...(groups && { groups }) };
    const { account } = await company.vouched(SETTING, { subject: 's-1', claims, issuedAtMs });
    return account();
  };
  const messageOf = (work: Promise<unknown>) => work.then(String, (error: Error) => error.message);
  const startMs = Date.parse('2030-01-01T00:00:00Z');
  assert.match(await messageOf(vouch(startMs)), 'sign in once in a browser');
  assert.match(await messageOf(vouch(startMs, ['others'])), 'No group');
  const { id } = await vouch(startMs, ['staff']);
  await company.signIn(SETTING, said(['staff']));
  pass(MINUTE_MS);
  assert.is((await vouch(startMs + MINUTE_MS, ['staff'])).id, id);
  pass(15 * MINUTE_MS);
  assert.is((await vouch(startMs)).id, id);
  assert.equal(asked, ['token 0'], 'the refresh token was kept, and the provider is asked as for each use');

  answerWith(() => Promise.reject(new ProviderFailure('over', { isOver: true })));
  await company.confirm(id);
  const sleptMs = startMs + 16 * MINUTE_MS;
  assert.match(await messageOf(vouch(sleptMs - 1_000, ['staff'])), 'is disabled', 'made before the end');
  assert.match(await messageOf(vouch(sleptMs)), 'is disabled', 'it does not say what the user may do');
  assert.is((await vouch(sleptMs, ['staff'])).isActive, true);
  pass(MINUTE_MS);
  await store.accounts.changeUser(id, { isActive: false, updatedAt: '2030-01-02T00:00:00.000Z' });
  assert.match(await messageOf(vouch(sleptMs + MINUTE_MS, ['staff'])), 'is disabled', 'by an admin');
});

test.run();
