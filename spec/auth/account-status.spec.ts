import * as assert from 'uvu/assert';
import { isActive, keyEndsAtMs, keyStatus, userStatus } from '../../src/auth/permissions.ts';
import type { ApiKey, User } from '../../src/domain/account.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('account status');

const at = '2026-01-02T03:04:05.678Z';
const ada: User = {
  id: 'ada',
  username: 'ada',
  email: 'ada@localhost',
  role: 'user',
  isActive: true,
  passwordHash: 'x',
  credentialsChangedAt: at,
  createdAt: at,
  updatedAt: at,
};
const key: ApiKey = { id: 'k', name: 'k', permissions: ['admin'], secretHash: 'x', createdAt: at };

test('is another one after a change of credentials or templates, and after no other', () => {
  const stampOf = (change: Partial<User>) => userStatus({ ...ada, ...change }).stamp;
  const stamps = [
    stampOf({}),
    stampOf({ credentialsChangedAt: '2026-01-02T03:04:05.679Z' }),
    stampOf({ templates: [] }),
    stampOf({ templates: ['a'] }),
    stampOf({ templates: ['a', 'b'] }),
  ];
  assert.is(new Set(stamps).size, stamps.length);
  assert.is(stampOf({ email: 'other@localhost', updatedAt: '2027-01-01T00:00:00.000Z' }), stamps[0]);
});

test('is that of the owner for a key, until it ends', () => {
  const { stamp } = userStatus(ada);
  assert.equal(userStatus(ada), { userId: 'ada', stamp, endsAtMs: Number.POSITIVE_INFINITY });
  assert.equal(keyStatus({ ...key, ownerId: 'ada', expiresAt: at }, ada), {
    userId: 'ada',
    stamp,
    endsAtMs: Date.parse(at),
  });
  assert.equal(keyStatus(key, undefined), { stamp: '', endsAtMs: Number.POSITIVE_INFINITY });
});

test('nobody is not active', () => {
  assert.equal(
    [isActive(ada), isActive({ ...ada, isActive: false }), isActive(undefined)],
    [true, false, false],
  );
  assert.is(keyEndsAtMs(key), Number.POSITIVE_INFINITY);
});

test.run();
