// What a change makes of a user, field by field.

import * as assert from 'uvu/assert';
import { type User, withChange } from '../../src/domain/account.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('account change');

const updatedAt = '2026-02-02T00:00:00.000Z';
const user: User = {
  id: 'u1',
  username: 'ada',
  email: 'ada@localhost',
  role: 'admin',
  isActive: true,
  passwordHash: 'hash',
  credentialsChangedAt: '2026-01-01T00:00:00.000Z',
  createdAt: '2026-01-01T00:00:00.000Z',
  updatedAt: '2026-01-01T00:00:00.000Z',
};

test('replaces what is there and leaves the rest', () => {
  assert.equal(withChange(user, { updatedAt }), { ...user, updatedAt });
  assert.equal(withChange(user, { role: 'user', isActive: false, updatedAt }), {
    ...user,
    role: 'user',
    isActive: false,
    updatedAt,
  });
});

test('never gives two changes of credentials one moment', () => {
  const before = user.credentialsChangedAt;
  for (const [wanted, expected] of [
    ['2026-01-01T00:00:00.001Z', '2026-01-01T00:00:00.001Z'],
    [before, '2026-01-01T00:00:00.001Z'],
    ['2025-12-31T00:00:00.000Z', '2026-01-01T00:00:00.001Z'],
  ] as const) {
    const change = { credentialsChangedAt: wanted, updatedAt };
    assert.is(withChange(user, change).credentialsChangedAt, expected, wanted);
  }
});

test('sets, keeps and lifts the restriction to templates', () => {
  const limited = withChange(user, { templates: ['demo'], updatedAt });
  assert.equal(limited, { ...user, templates: ['demo'], updatedAt });
  assert.equal(withChange(limited, { email: 'a@b', updatedAt }), { ...limited, email: 'a@b' });
  assert.equal(withChange(limited, { templates: [], updatedAt }), { ...limited, templates: [] });
  assert.equal(withChange(limited, { templates: null, updatedAt }), { ...user, updatedAt });
});

test.run();
