import { Compile } from 'typebox/compile';
import * as assert from 'uvu/assert';
import type { User } from '../../../src/domain/account.ts';
import { UserRecord, userRecord } from '../../../src/http/routes/users.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the user record');
const user: User = {
  ...{ id: 'u1', username: 'ada', email: 'ada@localhost', role: 'admin', isActive: true },
  ...{ passwordHash: 'secret', credentialsChangedAt: '2026-01-01T00:00:00.000Z' },
  ...{ createdAt: '2026-01-01T00:00:00.000Z', updatedAt: '2026-01-02T00:00:00.000Z' },
};

test('shows everything but the password', () => {
  const record = userRecord(user);
  assert.equal(record, {
    ...{ id: 'u1', username: 'ada', email: 'ada@localhost', role: 'admin', is_superuser: true },
    ...{ templates: null, is_active: true },
    ...{ created_at: '2026-01-01T00:00:00.000Z', updated_at: '2026-01-02T00:00:00.000Z' },
  });
  assert.ok(Compile(UserRecord).Check(record));
});

test('shows the templates, none of them included', () => {
  assert.equal(userRecord({ ...user, role: 'user', templates: ['demo'] }).templates, ['demo']);
  const none = userRecord({ ...user, role: 'user', templates: [] });
  assert.equal([none.templates, none.is_superuser], [[], false]);
  assert.ok(Compile(UserRecord).Check(none));
});

test.run();
