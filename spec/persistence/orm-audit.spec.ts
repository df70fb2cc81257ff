// The audit log on a database, here SQLite in memory. The servers run the same: orm-store.*.spec.ts.

import * as assert from 'uvu/assert';
import type { AuditEntry } from '../../src/domain/audit.ts';
import { openStore } from '../../src/persistence/open.ts';
import { auditConformance } from '../conformance/audit.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('audit log on SQLite');
const open = () => openStore('sqlite://', { cwd: '/', migrations: 'apply' });
auditConformance(test, open);

test('takes a batch again whose answer was lost, cut differently this time', async () => {
  const { audit, close } = await opened();
  const entries = Array.from({ length: 250 }, (_, index) => entry(index));
  await audit.append(entries.slice(0, 120));
  await audit.append(entries);
  assert.equal(await audit.list({ limit: 1_000 }), entries.toReversed());
  await close();
});

async function opened() {
  const store = await open();
  return { audit: store.audit, close: () => store.close() };
}

function entry(number: number): AuditEntry {
  const id = String(number).padStart(6, '0');
  return {
    id,
    at: '2026-01-02T03:04:05.678Z',
    actor: 'a',
    actorName: 'n',
    action: 'b',
    subject: 's',
    status: 1,
  };
}

test.run();
