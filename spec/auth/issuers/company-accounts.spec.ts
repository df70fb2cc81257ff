// Accounts of users of an identity provider: when the provider is asked again, and what ends them.

import { isDeepStrictEqual } from 'node:util';
import * as assert from 'uvu/assert';
import { newUser } from '../../../src/auth/accounts/accounts.ts';
import { CompanyAccounts } from '../../../src/auth/issuers/company-accounts.ts';
import { type ProviderAnswer, ProviderFailure } from '../../../src/auth/issuers/identity-provider.ts';
import type { ProviderSetting } from '../../../src/config/provider-settings.ts';
import { codeOf, GatewayError } from '../../../src/domain/errors/errors.ts';
import { databaseUnavailable } from '../../../src/domain/errors/gateway-errors.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import { becomes } from '../../helpers/eventually.ts';
import { endOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('accounts of a company');
const MINUTE_MS = 60_000;
const SETTING: ProviderSetting = {
  ...{ id: 'login.example.com', issuer: 'https://login.example.com', clientId: 'gw', clientSecret: 'unused' },
  ...{ label: 'Example', claims: {}, require: [], sessionMs: 12 * 60 * MINUTE_MS },
  roles: [['staff', { role: 'user' }]],
};

function started({ keepsSecrets = true } = {}) {
  let nowMs = Date.parse('2030-01-01T00:00:00Z');
  let monotonicMs = 0;
  let answer = async (): Promise<ProviderAnswer> => said(['staff']);
  const asked: string[] = [];
  const warnings: string[] = [];
  const store = new MemoryStore();
  const company = new CompanyAccounts({
    ...{ store: store.oauth, accounts: store.accounts, keepsSecrets },
    clock: {
      ...systemClock,
      wall: () => nowMs,
      now: () => monotonicMs,
      alarm: (_, run) => systemClock.alarm(0, run),
    },
    ...{ onChange: () => {}, warn: (line) => void warnings.push(line) },
    providers: [
      {
        setting: SETTING,
        refresh: (token) => {
          asked.push(token);
          return answer();
        },
      },
    ],
  });
  const said = (groups: readonly string[]): ProviderAnswer => ({
    ...{ subject: 's-1', refreshToken: `token ${asked.length}` },
    claims: { sub: 's-1', preferred_username: 'eve', groups },
  });
  const isActive = async () => (await store.accounts.findUserByName('eve'))?.isActive;
  return {
    ...{ store, company, asked, said, isActive, warnings },
    pass: (ms: number) => {
      nowMs += ms;
      monotonicMs += ms;
    },
    /** Somebody sets the wall clock. */
    step: (ms: number) => {
      nowMs += ms;
    },
    answerWith: (next: () => Promise<ProviderAnswer>) => {
      answer = next;
    },
  };
}

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

/** Runs `work` once, after the next read or change of users by the company. */
function between(
  accounts: MemoryStore['accounts'],
  name: 'findUsers' | 'changeUser',
  work: () => Promise<unknown>,
) {
  const own = accounts[name];
  Object.assign(accounts, {
    [name]: async (...given: unknown[]) => {
      Object.assign(accounts, { [name]: own });
      const value: unknown = await Reflect.apply(own, accounts, given);
      await work();
      return value;
    },
  });
}

/** Makes the write of this number, from 1, fail: `isLost` when it is carried out and only its answer is lost. */
function failingAt(number: number, { oauth, accounts }: MemoryStore, isLost: boolean) {
  let writes = 0;
  const writing = ['save', 'replace', 'end', 'insertUser', 'insertUserWithIdentity', 'changeUser'];
  for (const part of [oauth, accounts])
    for (const name of writing) {
      const own: unknown = Reflect.get(part, name);
      if (typeof own !== 'function') continue;
      const write = async (...given: unknown[]) => {
        writes += 1;
        if (writes === number && isLost) await Reflect.apply(own, part, given);
        if (writes === number) throw databaseUnavailable(new Error('it is away'));
        return Reflect.apply(own, part, given);
      };
      Object.assign(part, { [name]: write });
    }
}

test('a first sign-in that the database interrupts at any write can be repeated', async () => {
  for (const isLost of [false, true])
    for (let number = 1; ; number += 1) {
      const { company, store, said } = started();
      failingAt(number, store, isLost);
      const outcome = await endOf(company.signIn(SETTING, said(['staff'])));
      if (outcome === 'done') break;
      const { id } = await company.signIn(SETTING, said(['staff']));
      const ids = (await store.accounts.findUsers()).map((user) => user.id);
      assert.equal([outcome, ids], ['DATABASE_UNAVAILABLE', [id]], `write ${number}`);
    }
});

test('two first sign-ins at once make one account, also by an identity assertion', async () => {
  const { company, store, said } = started();
  const claims = { sub: 's-1', preferred_username: 'eve', groups: ['staff'] };
  const issuedAtMs = Date.parse('2030-01-01T00:00:00Z');
  const { account } = await company.vouched(SETTING, { subject: 's-1', claims, issuedAtMs });
  const users = await Promise.all([
    company.signIn(SETTING, said(['staff'])),
    company.signIn(SETTING, said(['staff'])),
    account(),
  ]);
  assert.is(new Set(users.map(({ id }) => id)).size, 1);
  assert.is((await store.accounts.findUsers()).length, 1);
});

test('a sign-in ends, although others change its identity all the time', async () => {
  const { company, store, said } = started();
  await company.signIn(SETTING, said(['staff']));
  let attempts = 0;
  Object.assign(store.oauth, {
    replace: async () => {
      attempts += 1;
      if (attempts > 1_000) throw new Error('it has no end');
      return false;
    },
  });
  const refusal = await company.signIn(SETTING, said(['staff'])).catch((error: unknown) => error);
  assert.is(codeOf(refusal), 'DATABASE_UNAVAILABLE');
});

test('whose link an admin ends meanwhile are not linked again, by a sign-in or by the end of one', async () => {
  const { company, store, said, answerWith } = started();
  const eve = await company.signIn(SETTING, said(['staff']));
  between(store.accounts, 'findUsers', () => company.unlink(eve));
  const refusal = await company.signIn(SETTING, said(['staff'])).catch((error: Error) => error.message);
  assert.match(String(refusal), 'user link eve');
  assert.is(await store.oauth.count({ kind: 'identity' }), 0);

  await company.link(eve, { issuer: SETTING.issuer, subject: 's-1' });
  await company.signIn(SETTING, said(['staff']));
  answerWith(() => Promise.reject(new ProviderFailure('over', { isOver: true })));
  between(store.accounts, 'changeUser', () => company.unlink(eve));
  await company.confirm(eve.id);
  assert.is(await store.oauth.count({ kind: 'identity' }), 0);
});

test('whose link an admin ends lose all sign-ins, also if the database interrupts that and the admin repeats it', async () => {
  for (const isLost of [false, true])
    for (let number = 1; ; number += 1) {
      const { company, store, said } = started();
      const eve = await company.signIn(SETTING, said(['staff']));
      const grant = { kind: 'grant', userId: eve.id, createdAt: eve.createdAt, value: '{}' } as const;
      for (const id of ['g-1', 'g-2']) await store.oauth.save({ ...grant, key: id, grantId: id });
      failingAt(number, store, isLost);
      const outcome = await endOf(company.unlink(eve));
      if (outcome !== 'done') await endOf(company.unlink(eve));
      const [after] = await store.accounts.findUsers([eve.id]);
      assert.is(await store.oauth.count({ userId: eve.id }), 0, `write ${number}`);
      assert.is.not(after?.credentialsChangedAt, eve.credentialsChangedAt, `write ${number}`);
      if (outcome === 'done') break;
    }
});

test('whose link the database interrupts half done are not told that nothing was changed', async () => {
  const other = { issuer: SETTING.issuer, subject: 's-2' };
  for (const change of ['link', 'unlink'] as const)
    for (let number = 1; ; number += 1) {
      const { company, store, said } = started();
      const eve = await company.signIn(SETTING, said(['staff']));
      await store.oauth.save({
        ...{ kind: 'grant', key: 'g', grantId: 'g', userId: eve.id, createdAt: eve.createdAt, value: '{}' },
      });
      const state = async () => [
        await store.accounts.findUsers(),
        await store.oauth.list({ userId: eve.id }, 9),
      ];
      const before = await state();
      failingAt(number, store, false);
      const work = change === 'link' ? company.link(eve, other) : company.unlink(eve);
      const error = await work.catch((thrown: unknown) => thrown);
      if (error === undefined) break;
      assert.ok(error instanceof GatewayError);
      const isSame = isDeepStrictEqual(await state(), before);
      assert.is(error.facts.delivered ?? 'no', isSame ? 'no' : 'unknown', `${change}, write ${number}`);
    }
});

test('that sign in while an admin ends their link lose that sign-in, too', async () => {
  const { company, store, said } = started();
  const eve = await company.signIn(SETTING, said(['staff']));
  let voidAt: string | undefined;
  between(store.accounts, 'changeUser', async () => {
    const { id: userId, createdAt, credentialsChangedAt } = await company.signIn(SETTING, said(['staff']));
    voidAt = credentialsChangedAt;
    await store.oauth.save({ kind: 'grant', key: 'g', grantId: 'g', userId, createdAt, value: '{}' });
  });
  await company.unlink(eve);
  const [after] = await store.accounts.findUsers([eve.id]);
  assert.is(await store.oauth.count({ userId: eve.id }), 0);
  assert.is.not(after?.credentialsChangedAt, voidAt);
});

test('that are deleted meanwhile, or whose link was left behind, are made again', async () => {
  const { company, store, said } = started();
  const first = await company.signIn(SETTING, said(['staff']));
  between(store.accounts, 'findUsers', () => store.accounts.deleteUser(first.id));
  const second = await company.signIn(SETTING, said(['staff']));
  assert.is.not(second.id, first.id);
  assert.is((await company.signIn(SETTING, said(['staff']))).id, second.id);
  const [row] = await store.oauth.list({ kind: 'identity' }, 1);
  assert.ok(row);
  await store.accounts.deleteUser(second.id);
  await store.oauth.save(row);
  const third = await company.signIn(SETTING, said(['staff']));
  assert.is((await company.signIn(SETTING, said(['staff']))).id, third.id);
});

test('are those of local users once an admin links them, until the link ends', async () => {
  const { company, store, said, pass } = started();
  const eve = newUser({ username: 'eve', email: 'eve@localhost', role: 'admin' }, 'a hash', 0);
  await store.accounts.insertUser(newUser({ ...eve, username: 'root' }, 'a hash', 0));
  await store.accounts.insertUser(eve);
  const identity = { issuer: SETTING.issuer, subject: 's-1' };
  const refused = (work: Promise<unknown>) =>
    work.then(
      () => 'done',
      (error: Error) => error.message,
    );
  assert.match(
    await refused(company.signIn(SETTING, said(['staff']))),
    'stagedoor user link eve --issuer=https://login.example.com --subject=s-1"',
  );
  assert.match(
    await refused(company.link(eve, { ...identity, issuer: 'https://x.example' })),
    'auth.providers',
  );
  await company.link(eve, identity);
  const linked = await company.signIn(SETTING, said(['staff']));
  assert.equal([linked.id, linked.role, linked.passwordHash], [eve.id, 'user', 'a hash']);

  const bo = newUser({ username: 'bo', email: 'bo@localhost', role: 'user' }, 'a hash', 0);
  await store.accounts.insertUser(bo);
  assert.match(await refused(company.link(bo, identity)), 'the account of eve');
  await company.link(eve, identity);
  const [kept] = await store.oauth.list({ kind: 'identity', userId: eve.id }, 2);
  assert.match(kept?.value ?? '', 'token 0', 'the same link again changes nothing');

  pass(MINUTE_MS);
  const createdAt = '2030-01-01T00:00:00.000Z';
  const grant = { kind: 'grant', key: 'g', grantId: 'g-1', userId: eve.id, createdAt, value: '{}' } as const;
  await store.oauth.save(grant);
  await company.link(eve, { ...identity, subject: 's-2' });
  assert.equal(
    await store.oauth.list({ kind: 'grant', userId: eve.id }, 1),
    [],
    'nothing asks about it again',
  );
  const [changed] = await store.accounts.findUsers([eve.id]);
  assert.is(changed?.credentialsChangedAt, '2030-01-01T00:01:00.001Z', 'the sign-ins of s-1 ended');
  assert.match(await refused(company.signIn(SETTING, said(['staff']))), 'user link eve');
  for (let number = 0; number < 510; number += 1)
    await store.oauth.save({ ...grant, key: `grant-${number}`, grantId: `g-${number}` });
  await company.unlink(eve);
  assert.equal(await store.oauth.list({ kind: 'identity', userId: eve.id }, 1), []);
  assert.is(await store.oauth.count({ kind: 'grant', userId: eve.id }), 0, 'also more than a list has');
  assert.match(await refused(company.unlink(eve)), 'has no account of an identity provider');
});

test.run();
