// What users and keys may do, and when that has changed.

import * as assert from 'uvu/assert';
import { keyPrincipal, keyStatus, userPrincipal, userStatus } from '../../src/auth/permissions.ts';
import { type ApiKey, ROLES, SCOPES, type Scope, type User } from '../../src/domain/account.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('permissions');

const limits = { userPerHour: 7, apiKeyPerHour: 9 };
const at = '2030-01-01T00:00:00.000Z';
const user: User = {
  id: 'u',
  username: 'ada',
  email: 'ada@localhost',
  role: 'user',
  isActive: true,
  passwordHash: 'x',
  credentialsChangedAt: at,
  createdAt: at,
  updatedAt: at,
};
const admin: User = { ...user, role: 'admin' };
const key: ApiKey = { id: 'k', name: 'robot', permissions: ['tools:call'], secretHash: 'y', createdAt: at };

test('a user has the scopes of the role and a limit, an admin all scopes and none', () => {
  assert.equal(userPrincipal(user, limits), {
    id: 'user:u',
    kind: 'user',
    name: 'ada',
    userId: 'u',
    scopes: new Set(['gateway:read', 'tools:call']),
    hourlyLimit: 7,
  });
  assert.equal(userPrincipal({ ...admin, templates: ['demo'] }, limits), {
    id: 'user:u',
    kind: 'user',
    name: 'ada',
    userId: 'u',
    scopes: new Set(SCOPES),
    templates: new Set(['demo']),
  });
});

test('a key has its own limit, and none with the scope admin that its owner has too', () => {
  assert.equal(keyPrincipal(key, admin, limits), {
    id: 'key:k',
    kind: 'api-key',
    name: 'robot',
    userId: 'u',
    scopes: new Set(['tools:call']),
    hourlyLimit: 9,
  });
  const adminKey: ApiKey = { ...key, permissions: ['admin'] };
  assert.is(keyPrincipal(adminKey, admin, limits).hourlyLimit, undefined);
  assert.is(keyPrincipal(adminKey, undefined, limits).hourlyLimit, undefined);
  assert.is(keyPrincipal(adminKey, user, limits).hourlyLimit, 9);
});

test('a key does what both its permissions and the present role of its owner allow, for every set of permissions', () => {
  const scopesOf = (permissions: readonly Scope[], owner: User | undefined) =>
    keyPrincipal({ ...key, permissions }, owner, limits).scopes;
  const mayRole = { admin: [...SCOPES], user: ['gateway:read', 'tools:call'] };
  for (let bits = 1; bits < 2 ** SCOPES.length; bits += 1) {
    const permissions = SCOPES.filter((_, index) => bits & (1 << index));
    const wanted: readonly Scope[] = permissions.includes('admin') ? SCOPES : permissions;
    assert.equal(scopesOf(permissions, undefined), new Set(wanted), 'the operator made it');
    for (const role of ROLES) {
      const expected = wanted.filter((scope) => mayRole[role].includes(scope));
      assert.equal(scopesOf(permissions, { ...user, role }), new Set(expected), `${permissions} of ${role}`);
    }
  }
});

test('a key uses the templates that it and its owner may use', () => {
  const templatesOf = (own?: string[], owners?: string[]) =>
    keyPrincipal(
      { ...key, ...(own && { templates: own }) },
      { ...admin, ...(owners && { templates: owners }) },
      limits,
    ).templates;
  assert.is(templatesOf(), undefined);
  assert.equal(templatesOf(['a', 'b']), new Set(['a', 'b']));
  assert.equal(templatesOf(undefined, ['b']), new Set(['b']));
  assert.equal(templatesOf(['a', 'b'], ['b', 'c']), new Set(['b']));
  assert.equal(templatesOf(['a'], ['c']), new Set());
});

test('the stamp of a user is another one after a change of credentials or templates, and after no other', () => {
  const stampOf = (change: Partial<User>) => userStatus({ ...user, ...change }).stamp;
  const stamps = [
    stampOf({}),
    stampOf({ credentialsChangedAt: '2030-01-01T00:00:00.001Z' }),
    stampOf({ templates: [] }),
    stampOf({ templates: ['a'] }),
    stampOf({ templates: ['a', 'b'] }),
  ];
  assert.is(new Set(stamps).size, stamps.length);
  assert.is(stampOf({ email: 'other@localhost', updatedAt: '2027-01-01T00:00:00.000Z' }), stamps[0]);
});

test('the stamp of a key is that of its owner for a key, until it ends', () => {
  const { stamp } = userStatus(user);
  assert.equal(userStatus(user), { userId: 'u', stamp, endsAtMs: Number.POSITIVE_INFINITY });
  assert.equal(keyStatus({ ...key, ownerId: 'u', expiresAt: at }, user), {
    userId: 'u',
    stamp,
    endsAtMs: Date.parse(at),
  });
  assert.equal(keyStatus(key, undefined), { stamp: '', endsAtMs: Number.POSITIVE_INFINITY });
});

test.run();
