import { Compile } from 'typebox/compile';
import * as assert from 'uvu/assert';
import type { ApiKeyView } from '../../../src/auth/auth.ts';
import { ApiKeyRecord, apiKeyRecord } from '../../../src/http/routes/api-keys.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the API key record');
const at = '2026-01-01T00:00:00.000Z';
const view: ApiKeyView = {
  apiKey: { id: 'k1', name: 'ci', permissions: ['tools:call'], secretHash: 'secret', createdAt: at },
  isActive: true,
  createdBy: null,
};

test('shows null for what is not there, and never the secret', () => {
  const record = apiKeyRecord(view);
  assert.equal(record, {
    ...{ id: 'k1', name: 'ci', permissions: ['tools:call'], templates: null, expires_at: null },
    ...{ created_at: at, last_used_at: null, is_active: true, created_by: null },
  });
  assert.ok(Compile(ApiKeyRecord).Check(record));
});

test('shows everything else', () => {
  const apiKey = { ...view.apiKey, templates: ['demo'], expiresAt: at, lastUsedAt: at, ownerId: 'u1' };
  const record = apiKeyRecord({ apiKey, isActive: false, createdBy: 'ada' });
  assert.equal(
    [record.templates, record.expires_at, record.last_used_at, record.is_active, record.created_by],
    [['demo'], at, at, false, 'ada'],
  );
  assert.ok(Compile(ApiKeyRecord).Check(record));
});

test.run();
