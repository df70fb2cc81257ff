// Users, keys and audit entries as rows.

import * as assert from 'uvu/assert';
import type { ApiKey, User } from '../../src/domain/account.ts';
import type { AuditEntry } from '../../src/domain/audit.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { TEXT_LENGTH } from '../../src/persistence/entities.ts';
import { apiKeyOf, rowOfApiKey, rowOfUser, userOf } from '../../src/persistence/orm-accounts.ts';
import { changeOf, rowOfChange } from '../../src/persistence/orm-audit.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('account rows');
const at = '2026-01-02T03:04:05.678Z';

test('a user comes back, with and without what is optional, and has a name to compare', () => {
  const user: User = {
    id: 'u',
    username: 'Ada',
    email: 'ada@localhost',
    role: 'user',
    isActive: false,
    passwordHash: 'hash',
    credentialsChangedAt: at,
    createdAt: at,
    updatedAt: at,
  };
  for (const each of [user, { ...user, isActive: true, role: 'admin', templates: [] } as const])
    assert.equal(userOf({ ...rowOfUser(each), position: 1 }), each);
  assert.is(rowOfUser(user).usernameKey, 'ada');
});

test('a key comes back, with and without what is optional', () => {
  const key: ApiKey = { id: 'k', name: 'n', permissions: ['admin'], secretHash: 'h', createdAt: at };
  for (const each of [key, { ...key, templates: ['a'], expiresAt: at, ownerId: 'u', lastUsedAt: at }])
    assert.equal(apiKeyOf({ ...rowOfApiKey(each), position: 1 }), each);
});

test('an audit entry comes back, also from a database that keeps empty texts as null', () => {
  const entry: AuditEntry = {
    id: 'e',
    at,
    actor: 'local',
    actorName: '',
    action: 'a',
    subject: '',
    status: 0,
  };
  for (const each of [entry, { ...entry, address: '::1', requestId: 'r', status: 204 }])
    assert.equal(changeOf(rowOfChange(each)), each);
  assert.equal(changeOf({ ...rowOfChange(entry), actorName: null, subject: null }), entry);
});

test('what the audit log keeps of a text fits its column', () => {
  assert.ok(LIMITS.auditTextUnits <= TEXT_LENGTH);
});

test.run();
