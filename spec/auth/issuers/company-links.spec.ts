// Accounts of users of an identity provider: the first sign-in, and the links of admins, also while others change the same.

import { isDeepStrictEqual } from 'node:util';
import * as assert from 'uvu/assert';
import { newUser } from '../../../src/auth/accounts/accounts.ts';
import { ProviderFailure } from '../../../src/auth/issuers/identity-provider.ts';
import { codeOf, GatewayError } from '../../../src/domain/errors/errors.ts';
import { databaseUnavailable } from '../../../src/domain/errors/gateway-errors.ts';
import type { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import { endOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';

import { MINUTE_MS, SETTING, started } from './company.ts';

const test = suite('links of accounts to a company');

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
  const { claims, ...others } = said(['staff']);
  const moved = { ...others, claims: { ...claims, email: 'eve@example.com' } };
  const refusal = await company.signIn(SETTING, moved).catch((error: Error) => error.message);
  assert.match(String(refusal), 'user link eve');
  assert.is(await store.oauth.count({ kind: 'identity' }), 0);
  assert.is((await store.accounts.findUsers([eve.id]))[0]?.email, eve.email, 'nothing is changed by it');

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

test('that two nodes find over at the same moment sleep until the next sign-in, as of one node', async () => {
  const { company, node, store, said, pass } = started({ keepsSecrets: false });
  const eve = await company.signIn(SETTING, said(['staff']));
  pass(12 * 60 * MINUTE_MS + 1);
  const other = node();
  const isRead = Promise.withResolvers<void>();
  const goesOn = Promise.withResolvers<void>();
  between(store.accounts, 'findUsers', () => {
    isRead.resolve();
    return goesOn.promise;
  });
  const late = other.confirm(eve.id);
  await isRead.promise;
  between(store.accounts, 'changeUser', async () => {
    pass(1);
    goesOn.resolve();
    await late;
  });
  await company.confirm(eve.id);
  assert.is((await store.accounts.findUsers([eve.id]))[0]?.isActive, false);
  assert.is((await company.signIn(SETTING, said(['staff']))).isActive, true);
});

test('that two admins link at the same moment do not get both identities: neither admin is told so', async () => {
  const { company, node, store } = started();
  const eve = newUser({ username: 'eve', email: 'eve@localhost', role: 'user' }, 'a hash', 0);
  await store.accounts.insertUser(eve);
  const linkTo = (subject: string, at = company) => endOf(at.link(eve, { issuer: SETTING.issuer, subject }));
  const outcomes = await Promise.all([linkTo('s-1'), linkTo('s-2', node())]);
  const links = () => store.oauth.count({ kind: 'identity', userId: eve.id });
  assert.is(await links(), outcomes.filter((outcome) => outcome === 'done').length);
  assert.is.not(await links(), 2);
  assert.equal([await linkTo('s-1'), await links()], ['done', 1]);
});

test('whose link an admin ends while an assertion is used get neither a grant nor the rights in it', async () => {
  const { company, store, said } = started();
  const eve = await company.signIn(SETTING, said(['staff']));
  const claims = { sub: 's-1', preferred_username: 'eve', email: 'eve@example.com', groups: ['staff'] };
  const issuedAtMs = Date.parse('2030-01-01T00:00:01Z');
  const { account } = await company.vouched(SETTING, { subject: 's-1', claims, issuedAtMs });
  await company.unlink(eve);
  assert.is(await endOf(account()), 'INSUFFICIENT_PERMISSIONS');
  assert.is((await store.accounts.findUsers([eve.id]))[0]?.email, eve.email);
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
