// What the audit log of every Store does, whatever is underneath.

import * as assert from 'uvu/assert';
import type { AuditEntry } from '../../src/domain/account.ts';
import type { Store } from '../../src/persistence/store.ts';
import type { Suite } from '../helpers/suite.ts';

/** Declares the tests in `test`. `open` gives an empty store each time; the test closes it. */
export function auditConformance(test: Suite, open: () => Promise<Store>): void {
  const declare = (name: string, body: (store: Store) => Promise<void>) =>
    test(`audit: ${name}`, async () => {
      const store = await open();
      try {
        await body(store);
      } finally {
        await store.close();
      }
    });

  declare('gives back every field, newest first, whatever the order of appending', async ({ audit }) => {
    await audit.append([]);
    assert.equal(await audit.list({ limit: 10 }), []);
    await audit.append([entry(2), entry(0)]);
    await audit.append([{ ...full, id: entry(1).id }]);
    assert.equal(await audit.list({ limit: 10 }), [entry(2), { ...full, id: entry(1).id }, entry(0)]);
  });

  declare('gives pages that meet, without a gap or a repetition', async ({ audit }) => {
    const entries = Array.from({ length: 257 }, (_, index) => entry(index));
    await audit.append(entries);
    const seen: AuditEntry[] = [];
    for (let before: string | undefined; ; ) {
      const page = await audit.list({ limit: 50, ...(before === undefined ? {} : { before }) });
      seen.push(...page);
      before = page.at(-1)?.id;
      if (before === undefined) break;
      // What is added meanwhile is newer than every page to come.
      await audit.append([entry(1_000 + seen.length)]);
    }
    assert.equal(seen, entries.toReversed());
  });

  declare('forgets all but the newest', async ({ audit }) => {
    const entries = Array.from({ length: 10 }, (_, index) => entry(index));
    await audit.append(entries);
    await audit.trim(20);
    assert.is((await audit.list({ limit: 100 })).length, 10);
    await audit.trim(3);
    assert.equal(await audit.list({ limit: 100 }), entries.slice(-3).toReversed());
    await audit.trim(0);
    assert.equal(await audit.list({ limit: 100 }), []);
  });

  declare('is not changed through what it was given or gave back', async ({ audit }) => {
    const given = { ...entry(1) };
    await audit.append([given]);
    Object.assign(given, { action: 'changed' });
    Object.assign((await audit.list({ limit: 1 }))[0] ?? {}, { action: 'changed' });
    assert.equal(await audit.list({ limit: 1 }), [entry(1)]);
  });
}

function entry(number: number): AuditEntry {
  const id = `0198${String(number).padStart(8, '0')}a`;
  return { ...small, id };
}

const small: AuditEntry = {
  id: '',
  at: '2026-01-02T03:04:05.678Z',
  actor: 'local',
  actorName: '',
  action: 'POST /auth/users',
  subject: '',
  status: 0,
};

const full: AuditEntry = {
  ...small,
  actor: 'user:0198',
  actorName: `O'Neil "漢字" 😀 \\`,
  action: 'DELETE /servers/:server_id',
  subject: `'; drop table audit_log; -- ${'x'.repeat(480)}`,
  status: 204,
  address: '2001:db8::1',
  requestId: 'request-1',
};
