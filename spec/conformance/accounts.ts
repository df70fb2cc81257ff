// The conformance tests for the accounts of a Store.

import * as assert from 'uvu/assert';
import type { ApiKey, CreatedId, User } from '../../src/domain/accounts/account.ts';
import type { Store } from '../../src/persistence/store.ts';
import { endOf } from '../helpers/outcome.ts';
import type { Suite } from '../helpers/suite.ts';
import { declaring, HOSTILE_TEXTS } from './store.ts';

/** Declares the tests in `test`. `open` gives an empty store each time; the test closes it. */
export function accountConformance(test: Suite, open: () => Promise<Store>): void {
  const declare = declaring(test, open, 'accounts: ');

  declare(
    'gives back every field of users and keys, in the order of their creation',
    async ({ accounts }) => {
      const users = [zoe, ada, { ...zoe, id: uuid('a'), username: 'm' }];
      const keys = [fullKey, smallKey, { ...smallKey, id: 'a'.repeat(16) }];
      assert.equal([await accounts.findUsers(), await accounts.findApiKeys()], [[], []]);
      assert.equal([await accounts.userIds(), await accounts.apiKeyIds()], [[], []]);
      for (const user of users) await accounts.insertUser(user);
      for (const key of keys) await accounts.insertApiKey(key);
      assert.equal(await accounts.findUsers(), users);
      assert.equal(await accounts.findApiKeys(), keys);
      const listed = (all: readonly CreatedId[]) => all.map(({ id, createdAt }) => ({ id, createdAt }));
      assert.equal(await accounts.userIds(), listed(users));
      assert.equal(await accounts.apiKeyIds(), listed(keys));
      for (const user of users) assert.equal(await accounts.findUsers([user.id]), [user]);
      for (const key of keys) assert.equal(await accounts.findApiKeys([key.id]), [key]);
    },
  );

  declare(
    'finds many at once, in any number, and leaves out those that are not there',
    async ({ accounts }) => {
      const users = Array.from({ length: 12 }, (_, index) => ({
        ...zoe,
        id: uuid(index.toString(16)),
        username: `user-${index}`,
      }));
      const keys = [{ ...fullKey, ownerId: users[0]?.id ?? '' }, smallKey];
      for (const user of users) await accounts.insertUser(user);
      for (const key of keys) await accounts.insertApiKey(key);
      const unknown = Array.from({ length: 1_000 }, (_, index) => `nobody-${index}`);
      const byId = (one: { id: string }, other: { id: string }) => (one.id < other.id ? -1 : 1);
      const found = await accounts.findUsers([...unknown, ...users.map(({ id }) => id)]);
      assert.equal(found.toSorted(byId), users.toSorted(byId));
      assert.equal(await accounts.findApiKeys([smallKey.id, 'f'.repeat(16)]), [smallKey]);
      const both = await accounts.findApiKeys(keys.map(({ id }) => id));
      assert.equal(both.toSorted(byId), keys.toSorted(byId));
      assert.equal([await accounts.findUsers([]), await accounts.findApiKeys([])], [[], []]);
      assert.equal(await accounts.findUsers(["' or '1'='1", uuid('a').toUpperCase()]), []);
    },
  );

  declare('user names are unique and found without regard to case', async (store) => {
    const { accounts } = store;
    await accounts.insertUser({ ...ada, username: 'Ada' });
    const before = await store.revision();
    for (const username of ['Ada', 'ada', 'ADA'])
      assert.is(await endOf(accounts.insertUser({ ...zoe, username })), 'DUPLICATE_USERNAME');
    assert.is(await store.revision(), before);
    for (const username of ['Ada', 'ada', 'aDA'])
      assert.equal(await accounts.findUserByName(username), { ...ada, username: 'Ada' });
    assert.is(await accounts.findUserByName('ad'), undefined);
    assert.is(await accounts.findUserByName("' or '1'='1"), undefined);
  });

  declare('of many users with the same name, inserted at once, one is stored', async ({ accounts }) => {
    const rivals = Array.from({ length: 8 }, (_, index) => ({
      ...ada,
      id: uuid(String(index)),
      username: index % 2 === 0 ? 'Same' : 'sAME',
    }));
    const codes = await Promise.all(rivals.map((user) => endOf(accounts.insertUser(user))));
    assert.is(codes.filter((code) => code === 'done').length, 1);
    assert.is(codes.filter((code) => code === 'DUPLICATE_USERNAME').length, 7);
    assert.is((await accounts.findUsers()).length, 1);
  });

  declare('a user is inserted with the row of its identity, or neither is', async (store) => {
    const { accounts, oauth } = store;
    const row = {
      kind: 'identity',
      key: 'i',
      userId: zoe.id,
      createdAt: zoe.createdAt,
      value: '{}',
    } as const;
    const another = { ...row, key: 'j', userId: ada.id };
    const keys = async () => (await oauth.list({ kind: 'identity' }, 9)).map(({ key }) => key);
    const revisions = [await store.revision()];
    assert.is(await accounts.insertUserWithIdentity(zoe, row, 0), true);
    revisions.push(await store.revision());
    assert.is.not(revisions[0], revisions[1]);
    assert.is(
      await endOf(accounts.insertUserWithIdentity({ ...zoe, id: ada.id }, another, 0)),
      'DUPLICATE_USERNAME',
    );
    for (const version of [0, 2])
      assert.is(await accounts.insertUserWithIdentity(ada, { ...row, userId: ada.id }, version), false);
    assert.equal([await accounts.findUsers(), await keys()], [[zoe], ['i']]);
    assert.is(await store.revision(), revisions[1], 'nothing was changed');
    assert.is(await accounts.insertUserWithIdentity(ada, { ...row, userId: ada.id }, 1), true);
    const [replaced] = await oauth.find('identity', ['i']);
    assert.equal([replaced?.userId, replaced?.version], [ada.id, 2]);
  });

  declare(
    'of many users with the same identity, inserted at once, one is stored',
    async ({ accounts, oauth }) => {
      const rivals = Array.from({ length: 8 }, (_, index) => ({
        ...ada,
        ...{ id: uuid(String(index)), username: `rival-${index}` },
      }));
      const inserts = rivals.map((user) => {
        const row = {
          kind: 'identity',
          key: 'i',
          userId: user.id,
          createdAt: ada.createdAt,
          value: '{}',
        } as const;
        return accounts.insertUserWithIdentity(user, row, 0);
      });
      assert.is((await Promise.all(inserts)).filter(Boolean).length, 1);
      const [user, ...others] = await accounts.findUsers();
      assert.equal(others, []);
      assert.is((await oauth.find('identity', ['i']))[0]?.userId, user?.id);
    },
  );

  declare('a change replaces the fields it has and keeps the others', async ({ accounts }) => {
    await accounts.insertUser(zoe);
    await accounts.insertUser(ada);
    const updatedAt = '2026-05-05T05:05:05.005Z';
    assert.equal(await accounts.changeUser(zoe.id, { updatedAt }), { ...zoe, updatedAt });
    const change = {
      email: 'zoe@example.com',
      role: 'a-role-of-31-characters-1234567',
      isActive: false,
      passwordHash: 'another',
      credentialsChangedAt: updatedAt,
      scopes: ['tools:call'],
      templates: ['a'],
      views: ['a', 'b'],
      tools: ['a/*', '!a/b?'],
      updatedAt,
    } as const;
    assert.equal(await accounts.changeUser(zoe.id, change), { ...zoe, ...change });
    const again = { credentialsChangedAt: updatedAt, updatedAt };
    const later = { credentialsChangedAt: '2026-05-05T05:05:05.006Z' };
    assert.equal(
      await accounts.changeUser(zoe.id, again),
      { ...zoe, ...change, ...later },
      'never the same moment',
    );
    assert.equal(await accounts.changeUser(zoe.id, { templates: [], updatedAt }), {
      ...zoe,
      ...change,
      ...later,
      templates: [],
    });
    const {
      scopes: _,
      templates: __,
      views: ___,
      tools: ____,
      ...unrestricted
    } = { ...zoe, ...change, ...later };
    const all = { scopes: null, templates: null, views: null, tools: null, updatedAt };
    assert.equal(await accounts.changeUser(zoe.id, all), unrestricted);
    assert.equal(await accounts.findUsers(), [unrestricted, ada]);
  });

  declare(
    'an ended token is known, even if the clock says that it has expired, and makes a new revision',
    async (store) => {
      const { accounts } = store;
      await accounts.insertUser(ada);
      const isEnded = (userId: string, ids: readonly string[]) =>
        Promise.all(ids.map((id) => accounts.isTokenEnded(userId, id)));
      assert.equal(await isEnded(ada.id, ['one']), [false]);
      const before = await store.revision();
      assert.is(await accounts.endToken(ada.id, { id: 'one', expiresAtMs: 2_000 }, 1_000), true);
      assert.is(await accounts.endToken(ada.id, { id: 'two', expiresAtMs: 3_000 }, 1_000), true);
      assert.is(await accounts.endToken(ada.id, { id: 'two', expiresAtMs: 3_000 }, 1_000), true);
      assert.ok((await store.revision()) > before);
      assert.equal(await isEnded(ada.id, ['one', 'two', 'three']), [true, true, false]);
      assert.equal(await isEnded(zoe.id, ['one', 'two']), [false, false]);
      assert.is(await accounts.endToken(ada.id, { id: 'three', expiresAtMs: 9_000 }, 2_500), true);
      assert.equal(await isEnded(ada.id, ['one', 'two', 'three']), [true, true, true]);
    },
  );

  declare('a user has at most 100 ended tokens that have not expired', async (store) => {
    const { accounts } = store;
    const other = { ...ada, id: uuid('a'), username: 'other' };
    for (const each of [other, ada]) await accounts.insertUser(each);
    for (let number = 0; number < 100; number += 1)
      assert.is(await accounts.endToken(ada.id, { id: `t${number}`, expiresAtMs: 2_000 }, 1_000), true);
    const before = await store.revision();
    assert.is(await accounts.endToken(ada.id, { id: 'more', expiresAtMs: 2_000 }, 1_000), false);
    assert.equal([await store.revision(), await accounts.isTokenEnded(ada.id, 't0')], [before, true]);
    assert.is(await accounts.endToken(other.id, { id: 'more', expiresAtMs: 2_000 }, 1_000), true);
    assert.is(await accounts.endToken(ada.id, { id: 'later', expiresAtMs: 9_000 }, 2_000), true);
    assert.is(await accounts.isTokenEnded(ada.id, 't0'), false, 'expired ones make room');
    await accounts.changeUser(ada.id, { email: 'new@example.com', updatedAt: ada.updatedAt });
    assert.is(await accounts.isTokenEnded(ada.id, 'later'), true);
    await accounts.deleteUser(ada.id);
    assert.is(await accounts.isTokenEnded(ada.id, 'later'), false);
  });

  declare(
    'a change of the credentials voids earlier tokens, so that the ended ones are forgotten',
    async (store) => {
      const { accounts } = store;
      await accounts.insertUser(ada);
      for (let number = 0; number < 100; number += 1)
        await accounts.endToken(ada.id, { id: `t${number}`, expiresAtMs: 2_000 }, 1_000);
      const { updatedAt } = ada;
      await accounts.changeUser(ada.id, { credentialsChangedAt: updatedAt, updatedAt });
      assert.is(await accounts.isTokenEnded(ada.id, 't0'), false);
      assert.is(await accounts.endToken(ada.id, { id: 'later', expiresAtMs: 2_000 }, 1_000), true);
    },
  );

  declare('an unknown user is an error, and an unknown key is not deleted', async ({ accounts }) => {
    const updatedAt = ada.updatedAt;
    assert.is(await endOf(accounts.changeUser(uuid('9'), { updatedAt })), 'USER_NOT_FOUND');
    assert.is(await endOf(accounts.deleteUser(uuid('9'))), 'USER_NOT_FOUND');
    const token = { id: 'one', expiresAtMs: 2_000 };
    assert.is(await endOf(accounts.endToken(uuid('9'), token, 1_000)), 'USER_NOT_FOUND');
    assert.is(await accounts.isTokenEnded(uuid('9'), 'one'), false);
    assert.is(await accounts.deleteApiKey('f'.repeat(16)), false);
  });

  declare('the last active admin stays: not demoted, disabled, limited or deleted', async (store) => {
    const { accounts } = store;
    const { updatedAt } = ada;
    const disabled = { ...ada, id: uuid('d'), username: 'disabled', isActive: false };
    const user = { ...ada, id: uuid('e'), username: 'user', role: 'user' } as const;
    // An admin of some templates cannot manage accounts.
    for (const each of [ada, disabled, user, zoe]) await accounts.insertUser(each);
    const before = await store.revision();
    for (const change of [
      { role: 'user' },
      { isActive: false },
      { templates: ['demo'] },
      { templates: [] },
      { views: [] },
      { tools: ['*/*'] },
    ] as const)
      assert.is(await endOf(accounts.changeUser(ada.id, { ...change, updatedAt })), 'LAST_ADMIN');
    assert.is(await endOf(accounts.deleteUser(ada.id)), 'LAST_ADMIN');
    assert.equal(await accounts.findUsers(), [ada, disabled, user, zoe]);
    assert.is(await store.revision(), before);
    // A change that keeps the role is allowed, and with a second admin every change is.
    await accounts.changeUser(ada.id, { email: 'a@b', role: 'admin', isActive: true, updatedAt });
    await accounts.changeUser(disabled.id, { isActive: true, updatedAt });
    await accounts.changeUser(ada.id, { templates: [], updatedAt });
    for (const each of [ada, user, zoe]) await accounts.deleteUser(each.id);
    assert.is(await endOf(accounts.deleteUser(disabled.id)), 'LAST_ADMIN');
  });

  declare('of many admins that are removed at once, in any way, one stays', async ({ accounts }) => {
    const admins = Array.from({ length: 8 }, (_, index) => ({
      ...ada,
      id: uuid(String(index)),
      username: `admin-${index}`,
    }));
    for (const admin of admins) await accounts.insertUser(admin);
    const { updatedAt } = ada;
    const codes = await Promise.all(
      admins.map(({ id }, index) =>
        endOf(
          index % 3 === 0
            ? accounts.deleteUser(id)
            : accounts.changeUser(
                id,
                index % 3 === 1 ? { role: 'user', updatedAt } : { isActive: false, updatedAt },
              ),
        ),
      ),
    );
    const refused = codes.filter((code) => code !== 'done');
    assert.equal(refused, ['LAST_ADMIN']);
    const left = (await accounts.findUsers()).filter(({ role, isActive }) => role === 'admin' && isActive);
    assert.is(left.length, 1);
  });

  declare('deleting a user deletes the keys of that user, and no others', async ({ accounts }) => {
    await accounts.insertUser(ada);
    await accounts.insertUser(zoe);
    const own = { ...smallKey, ownerId: zoe.id };
    const another = { ...own, id: 'a'.repeat(16) };
    for (const key of [own, fullKey, another]) await accounts.insertApiKey(key);
    const ownerless = { ...smallKey, id: 'c'.repeat(16) };
    await accounts.insertApiKey(ownerless);
    await accounts.deleteUser(zoe.id);
    assert.is(await endOf(accounts.insertApiKey({ ...own, id: 'd'.repeat(16) })), 'USER_NOT_FOUND');
    assert.equal(await accounts.findApiKeys(), [fullKey, ownerless]);
    const lists = { templates: ['demo'], views: null, tools: ['demo/*'] };
    const { views: _, ...changed } = { ...fullKey, ...lists };
    assert.equal(await accounts.changeApiKey(fullKey.id, lists), changed);
    assert.equal(await accounts.findApiKeys([fullKey.id]), [changed]);
    assert.is(await accounts.changeApiKey('f'.repeat(16), lists), undefined);
    assert.is(await accounts.deleteApiKey(fullKey.id), true);
    assert.is(await accounts.deleteApiKey(fullKey.id), false);
    assert.equal(await accounts.findApiKeys(), [ownerless]);
  });

  declare('the last use of each key is stored, and is not a change of the revision', async (store) => {
    const { accounts } = store;
    const ids = Array.from({ length: 120 }, (_, index) => String(index).padStart(16, '0'));
    for (const id of ids) await accounts.insertApiKey({ ...smallKey, id });
    const before = await store.revision();
    const times = new Map(ids.map((id, index) => [id, new Date(1_767_225_600_000 + index).toISOString()]));
    times.delete(ids[60] ?? '');
    await accounts.touchApiKeys(new Map());
    await accounts.touchApiKeys(new Map([...times, ['unknown', ada.updatedAt]]));
    const touched = (await accounts.findApiKeys()).map(({ id, lastUsedAt }) => [id, lastUsedAt]);
    assert.equal(
      touched,
      ids.map((id) => [id, times.get(id)]),
    );
    assert.is(await store.revision(), before);
  });

  declare('every change makes a new revision', async (store) => {
    const { accounts } = store;
    const revisions = [await store.revision()];
    const count = async (work: Promise<unknown>) => {
      await work;
      revisions.push(await store.revision());
    };
    await count(accounts.insertUser(ada));
    await count(accounts.insertUser(zoe));
    await count(accounts.changeUser(zoe.id, { role: 'user', updatedAt: zoe.updatedAt }));
    await count(accounts.insertApiKey(smallKey));
    await count(accounts.deleteApiKey(smallKey.id));
    await count(accounts.deleteUser(zoe.id));
    assert.is(new Set(revisions).size, revisions.length);
    await accounts.deleteApiKey(smallKey.id);
    await accounts.findUsers();
    assert.is(await store.revision(), revisions.at(-1));
  });

  declare('keeps texts with special characters unchanged', async ({ accounts }) => {
    const users = HOSTILE_TEXTS.map((email, index) => ({
      ...ada,
      ...{ id: `u${index}`, username: `user-${index}`, email },
    }));
    const keys = HOSTILE_TEXTS.map((name, index) => ({ ...smallKey, id: `k${index}`, name }));
    for (const user of users) await accounts.insertUser(user);
    for (const key of keys) await accounts.insertApiKey(key);
    assert.equal([await accounts.findUsers(), await accounts.findApiKeys()], [users, keys]);
    for (const { id, email, updatedAt } of users) {
      await accounts.changeUser(id, { email: `${email} changed`, updatedAt });
      const [user] = await accounts.findUsers([id]);
      assert.is(user?.email, `${email} changed`);
    }
  });

  declare('changing an object passed in or returned does not change the store', async ({ accounts }) => {
    const templates = ['a'];
    await accounts.insertUser({ ...ada, templates });
    templates.push('b');
    (await accounts.findUsers()).length = 0;
    assert.equal(await accounts.findUsers([ada.id]), [{ ...ada, templates: ['a'] }]);
  });
}

function uuid(digit: string): string {
  return `${digit.repeat(8)}-0000-4000-8000-000000000000`;
}

/** A user with everything that one must have. */
export const ada: User = {
  id: 'abcdefab-0000-4000-8000-000000000001',
  username: 'ada',
  email: 'ada@localhost',
  role: 'admin',
  isActive: true,
  passwordHash: `$2b$12$${'x'.repeat(53)}`,
  credentialsChangedAt: '2026-01-02T03:04:05.678Z',
  createdAt: '2026-01-02T03:04:05.678Z',
  updatedAt: '2026-01-02T03:04:05.678Z',
};

const zoe: User = {
  ...ada,
  id: 'fedcbafe-0000-4000-8000-000000000002',
  username: 'Zoe.Z_9@x-y',
  email: `${'z'.repeat(64)}@${'h'.repeat(189)}`,
  role: 'admin',
  templates: ['demo', 'other'],
  views: [],
  tools: ['*/*'],
  updatedAt: '2026-02-03T04:05:06.789Z',
};

export const smallKey: ApiKey = {
  id: '0123456789abcdef',
  name: 'small',
  permissions: ['tools:call'],
  secretHash: '0'.repeat(64),
  createdAt: '2026-01-02T03:04:05.678Z',
};

const fullKey: ApiKey = {
  ...smallKey,
  id: 'fedcba9876543210',
  name: 'full key',
  permissions: ['gateway:read', 'gateway:write', 'tools:call', 'admin'],
  templates: [],
  views: ['desk'],
  tools: ['demo/*', '!demo/<\'"\\>?'],
  expiresAt: '2999-12-31T23:59:59.999Z',
  ownerId: ada.id,
  lastUsedAt: '2026-03-04T05:06:07.891Z',
};
