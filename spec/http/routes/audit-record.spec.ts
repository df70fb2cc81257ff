import { Compile } from 'typebox/compile';
import * as assert from 'uvu/assert';
import { AuditRecord, auditRecord } from '../../../src/http/routes/audit.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('a line of the audit log');
const entry = {
  ...{ id: 'e1', at: '2026-01-01T00:00:00.000Z', actor: 'user:1', actorName: 'ada' },
  ...{ action: 'POST /servers', subject: '/servers/one', status: 201 },
};

test('shows null for what was not known', () => {
  const record = auditRecord(entry);
  assert.equal(record, {
    ...{ id: 'e1', at: '2026-01-01T00:00:00.000Z', actor: 'user:1', actor_name: 'ada' },
    ...{ action: 'POST /servers', subject: '/servers/one', status: 201, address: null, request_id: null },
    call: null,
  });
  assert.ok(Compile(AuditRecord).Check(record));
});

test('shows where it came from', () => {
  const record = auditRecord({ ...entry, address: '192.0.2.7', requestId: 'r1' });
  assert.equal([record.address, record.request_id], ['192.0.2.7', 'r1']);
  assert.ok(Compile(AuditRecord).Check(record));
});

test.run();
