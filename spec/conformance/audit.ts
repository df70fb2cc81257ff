// The conformance tests for the audit log of a Store.

import * as assert from 'uvu/assert';
import {
  type AuditEntry,
  type AuditedCall,
  type AuditFilter,
  CALL_ACTION,
  type CallBlock,
  CallBlockWriter,
  type CallEntry,
  idAt,
  timeOfId,
} from '../../src/domain/events/audit-entries.ts';
import type { Store } from '../../src/persistence/store.ts';
import type { Suite } from '../helpers/suite.ts';
import { declaring, HOSTILE_TEXTS } from './store.ts';

/** Declares the tests in `test`. `open` gives an empty store each time; the test closes it. */
export function auditConformance(test: Suite, open: () => Promise<Store>): void {
  const declare = declaring(test, open, 'audit: ');

  declare('gives back every field, newest first, whatever the order of appending', async ({ audit }) => {
    await audit.append([]);
    assert.equal(await audit.list({ limit: 10 }), []);
    await audit.append([entry(2), entry(0)]);
    await audit.append([{ ...full, id: entry(1).id }]);
    assert.equal(await audit.list({ limit: 10 }), [entry(2), { ...full, id: entry(1).id }, entry(0)]);
  });

  declare('pages have neither gaps nor repetitions', async ({ audit }) => {
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

  declare('trim keeps only the newest entries', async ({ audit }) => {
    const entries = Array.from({ length: 10 }, (_, index) => entry(index));
    await audit.append([...entries.slice(5), ...entries.slice(0, 5)]);
    await audit.trim({ changes: 20, calls: 20 });
    assert.is((await audit.list({ limit: 100 })).length, 10);
    await audit.trim({ changes: 3, calls: 0 });
    assert.equal(await audit.list({ limit: 100 }), entries.slice(-3).toReversed());
    await audit.trim({ changes: 0, calls: 0 });
    assert.equal(await audit.list({ limit: 100 }), []);
  });

  declare('lists calls among changes, and filters both by their fields', async ({ audit }) => {
    const calls = [
      call(1, { tool: 'echo' }),
      call(3, { template: 'other', ...whole }),
      call(5, { view: 'support' }),
    ];
    const changes = [entry(0), { ...entry(2), ...full, id: entry(2).id }, entry(4)];
    await audit.append(changes);
    for (const each of calls) await audit.appendCalls(blockOf([each]));
    const ids = async (filter: AuditFilter, more: object = {}) =>
      (await audit.list({ limit: 10, ...filter, ...more })).map(numberOf);
    assert.equal(await audit.list({ limit: 3, before: entry(5).id }), [changes[2], calls[1], changes[1]]);
    assert.equal(await ids({}), [5, 4, 3, 2, 1, 0]);
    assert.equal(await ids({ action: 'tools/call' }), [5, 3, 1]);
    assert.equal(await ids({ action: 'POST /auth/users' }), [4, 0]);
    assert.equal(await ids({ tool: 'echo' }), [1]);
    assert.equal(await ids({ template: 'other', outcome: 'failed' }), [3]);
    assert.equal(await ids({ template: 'other', outcome: 'result' }), []);
    assert.equal(await ids({ view: 'support' }), [5]);
    assert.equal(await ids({ actor: String(full.actor) }), [2]);
    assert.equal(await ids({ actor: full.actorName }), [2]);
    assert.equal(await ids({ status: 204 }), [2]);
    assert.equal(await ids({}, { from: entry(2).id, before: entry(5).id }), [4, 3, 2]);
  });

  declare('trim keeps all changes among many calls', async ({ audit }) => {
    await audit.append([entry(0), entry(1)]);
    for (const first of [2, 4, 6, 8])
      await audit.appendCalls(blockOf([call(first, {}), call(first + 1, {})]));
    const kept = async () => (await audit.list({ limit: 20 })).map(numberOf);
    await audit.trim({ changes: 5, calls: 2 });
    assert.equal(await kept(), [9, 8, 1, 0]);
  });

  declare('trim deletes entries that are too old, the oldest first, at most a tenth', async ({ audit }) => {
    const numbers = (first: number, count: number) =>
      Array.from({ length: count }, (_, index) => first + index);
    await audit.append(numbers(0, 30).map(entry));
    for (const [first, count] of [
      [100, 2],
      [110, 25],
      [140, 13],
    ] as const)
      await audit.appendCalls(blockOf(numbers(first, count).map((number) => call(number, {}))));
    const most = { changes: 100, calls: 100 };
    const kept = async () => {
      const all = (await audit.list({ limit: 100 })).map(numberOf);
      return [all.filter((number) => number < 100), all.filter((number) => number >= 100)].map((part) => [
        part.length,
        part.at(-1),
      ]);
    };
    await audit.trim({ ...most, from: entry(0).id });
    assert.equal(await kept(), [
      [30, 0],
      [40, 100],
    ]);
    await audit.trim({ ...most, from: entry(2).id });
    assert.equal(await kept(), [
      [28, 2],
      [40, 100],
    ]);
    await audit.trim({ ...most, from: entry(1_000).id });
    assert.equal(await kept(), [
      [26, 4],
      [36, 112],
    ]);
    await audit.trim({ ...most, from: entry(1_000).id });
    assert.equal(await kept(), [
      [24, 6],
      [33, 115],
    ]);
    const [oldest] = await audit.list({ limit: 100, before: entry(116).id, action: CALL_ACTION });
    assert.equal(oldest, { ...call(115, {}) });
  });

  declare('keeps texts with special characters unchanged', async ({ audit }) => {
    const entries = HOSTILE_TEXTS.map((text, index) => ({
      ...entry(index),
      ...{ actor: text, actorName: text, subject: text },
    }));
    await audit.append(entries);
    assert.equal(await audit.list({ limit: 100 }), entries.toReversed());
  });

  declare('changing an object passed in or returned does not change the store', async ({ audit }) => {
    const given = { ...entry(1) };
    await audit.append([given]);
    Object.assign(given, { action: 'changed' });
    Object.assign((await audit.list({ limit: 1 }))[0] ?? {}, { action: 'changed' });
    assert.equal(await audit.list({ limit: 1 }), [entry(1)]);
  });
}

/** One block of calls that are in the order of their ids. */
export function blockOf(calls: readonly CallEntry[]): CallBlock {
  const writer = new CallBlockWriter();
  for (const entry of calls) writer.add(entry, entry, entry.call.digest, entry.call.arguments);
  writer.end();
  const [block, ...others] = writer.finished;
  assert.ok(block !== undefined && others.length === 0);
  return block;
}

const START_MS = Date.UTC(2026, 0, 2);

function entry(number: number): AuditEntry {
  return { ...small, id: `${idAt(START_MS + number)}-7000-8000-000000000000` };
}

function numberOf({ id }: AuditEntry): number {
  return timeOfId(id) - START_MS;
}

function call(number: number, more: Partial<AuditedCall>): CallEntry {
  const call = {
    template: 'demo',
    tool: 't',
    outcome: 'result',
    durationMs: 12,
    attempts: 1,
    ...more,
  } as const;
  return { ...small, id: entry(number).id, action: CALL_ACTION, call };
}

const whole: Partial<AuditedCall> = {
  instance: 'one',
  outcome: 'failed',
  attempts: 3,
  digest: 'a'.repeat(64),
  arguments: `{"text":"O'Neil 漢字 😀 \\\\ $1"${'x'.repeat(4_000)}`,
};

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
  suppressed: 2_000_000_000,
};
