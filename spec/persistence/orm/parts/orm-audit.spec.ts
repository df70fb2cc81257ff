// The audit log on SQLite, beyond the conformance suite.

import { copyFile, rename } from 'node:fs/promises';
import * as assert from 'uvu/assert';
import { AuditLog } from '../../../../src/auth/audit/audit-log.ts';
import {
  type AuditEntry,
  CALL_ACTION,
  type CallEntry,
  idAt,
  timeOfId,
} from '../../../../src/domain/events/audit-entries.ts';
import { systemClock } from '../../../../src/domain/time/clock.ts';
import { openStore } from '../../../../src/persistence/open-store.ts';
import { blockOf } from '../../../conformance/audit.ts';
import { folderOfEach } from '../../../helpers/folder.ts';
import { codeOf } from '../../../helpers/outcome.ts';
import { suite } from '../../../helpers/suite.ts';

const test = suite('audit log on SQLite');
const folder = folderOfEach(test);
const open = () => openStore('sqlite://', { cwd: '/', migrations: 'apply' });

test('accepts entries again whose answer was lost, in a batch of another size', async () => {
  const store = await open();
  const entries = Array.from({ length: 250 }, (_, index) => entry(index));
  await store.audit.append(entries.slice(0, 120));
  await store.audit.append(entries);
  assert.equal(await store.audit.list({ limit: 1_000 }), entries.toReversed());
  await store.close();
});

test('keeps every appended call after a kill and after a stop', async () => {
  const calls = [call(1), call(2)];
  const store = await openFile(folder('x.db'));
  await store.audit.appendCalls(blockOf(calls));
  // The files as the operating system has them are what a kill leaves.
  for (const end of ['', '-wal']) await copyFile(folder(`x.db${end}`), folder(`killed.db${end}`));
  await store.close();
  for (const name of ['killed', 'x']) {
    const again = await openFile(folder(`${name}.db`));
    assert.equal(await again.audit.list({ limit: 5 }), calls.toReversed(), name);
    await again.close();
  }
});

test('fails to append while the file is missing, and stores a repeated block once afterwards', async () => {
  const store = await openFile(folder('x.db'));
  await store.audit.appendCalls(blockOf([call(1)]));
  await rename(folder('x.db'), folder('away.db'));
  const next = blockOf([call(2), call(3)]);
  assert.is(await codeOf(store.audit.appendCalls(next)), 'DATABASE_UNAVAILABLE');
  await rename(folder('away.db'), folder('x.db'));
  // The second attempt stands for a block whose answer was lost.
  for (let attempt = 0; attempt < 2; attempt += 1) await store.audit.appendCalls(next);
  assert.equal(await store.audit.list({ limit: 5 }), [call(3), call(2), call(1)]);
  await store.close();
});

test('merges overlapping blocks of several nodes', async () => {
  const store = await open();
  const numbers = Array.from({ length: 9_000 }, (_, index) => index);
  for (const node of [0, 1, 2])
    for (let start = node; start < 9_000; start += 1_500)
      await store.audit.appendCalls(
        blockOf(
          numbers
            .slice(start, start + 1_500)
            .filter((n) => n % 3 === node)
            .map((n) => call(n)),
        ),
      );
  const seen: number[] = [];
  for (let before: string | undefined; ; ) {
    const page = await store.audit.list({ limit: 700, before });
    seen.push(...page.map(numberOf));
    before = page.at(-1)?.id;
    if (before === undefined) break;
  }
  assert.equal(seen, numbers.toReversed());
  await store.close();
});

test('searches as many windows as a filter needs, and yields in between', async () => {
  const store = await open();
  const rare = new Set([0, 1, 4_999, 5_000, 10_000, 11_999]);
  const calls = Array.from({ length: 12_000 }, (_, index) => call(index, rare.has(index) ? 'rare' : 'echo'));
  for (let start = 0; start < 12_000; start += 300)
    await store.audit.appendCalls(blockOf(calls.slice(start, start + 300)));
  const found = async (page: object) =>
    (await store.audit.list({ limit: 10, tool: 'rare', ...page })).map(numberOf);
  const all = [11_999, 10_000, 5_000, 4_999, 1, 0];
  assert.equal(await found({}), all);
  assert.equal(await found({ limit: 3 }), all.slice(0, 3));
  assert.equal(await found({ limit: 3, before: 'zzz' }), all.slice(0, 3), 'a cursor that is not an id');
  assert.equal(await found({ limit: 3, before: call(5_000).id }), all.slice(3));
  assert.equal(await found({ from: call(1).id, before: call(11_999).id }), all.slice(1, 5));
  let turns = 0;
  const counting = setInterval(() => (turns += 1), 0);
  assert.equal(await found({ tool: 'none' }), []);
  clearInterval(counting);
  assert.ok(turns > 0);
  await store.close();
});

test('a page of the newest entries is there before the end of a search of all, which ends with its reader', async () => {
  const store = await open();
  for (let start = 0; start < 40_000; start += 2_000)
    await store.audit.appendCalls(blockOf(Array.from({ length: 2_000 }, (_, index) => call(start + index))));
  const settings = {
    recordsCalls: false,
    callArguments: 'none',
    keptCalls: 40_000,
    keptDays: 0,
  } as const;
  const log = new AuditLog({ store: store.audit, log: { warn: () => {} }, clock: systemClock, settings });
  const ends: string[] = [];
  const leaving = new AbortController();
  const search = log.list({ limit: 10, tool: 'none' }).then(() => ends.push('search'));
  const left = log.list({ limit: 10, tool: 'none' }, leaving.signal).catch(() => ends.push('left'));
  await log.list({ limit: 10 }).then(() => ends.push('page'));
  leaving.abort();
  await Promise.all([search, left]);
  assert.equal(ends, ['page', 'left', 'search']);
  await log.close();
  await store.close();
});

test('deletes thousands of old entries in slices, also on two nodes at once', async () => {
  const [store, other] = [await openFile(folder('x.db')), await openFile(folder('x.db'))];
  await store.audit.append(Array.from({ length: 1_300 }, (_, index) => entry(index)));
  const calls = Array.from({ length: 6_300 }, (_, index) => call(index));
  for (let start = 0; start < calls.length; start += 700)
    await store.audit.appendCalls(blockOf(calls.slice(start, start + 700)));
  const count = async () => (await store.audit.list({ limit: 8_000, tool: 'echo' })).length;
  await Promise.all([store, other].map(({ audit }) => audit.trim({ changes: 1_300, calls: 100 })));
  assert.is(await count(), 700, 'the block at the boundary remains');
  assert.is((await store.audit.list({ limit: 3_000 })).length, 2_000);
  await store.audit.append(Array.from({ length: 5_200 }, (_, index) => entry(7_000 + index)));
  await store.audit.trim({ changes: 10_000, calls: 1_000, from: entry(1_290).id });
  const kept = (await store.audit.list({ limit: 9_000 })).map(numberOf);
  assert.equal(
    [kept.length, kept.at(-1), kept.filter((number) => number >= 5_600 && number < 7_000).length],
    [5_200 + 650 + 700, 650, 700],
    'a tenth of the changes',
  );
  for (const each of [store, other]) await each.close();
});

const openFile = (file: string) => openStore(`sqlite:///${file}`, { cwd: '/', migrations: 'apply' });

function entry(number: number): AuditEntry {
  const id = `${idAt(number)}-7000-8000-000000000000`;
  const common = { actor: 'a', actorName: 'n', action: 'b', subject: 's', status: 1 };
  return { id, at: '2026-01-02T03:04:05.678Z', ...common };
}

function numberOf({ id }: AuditEntry): number {
  return timeOfId(id);
}

function call(number: number, tool = 'echo'): CallEntry {
  const { id, ...common } = entry(number);
  const about = { template: 't', tool, outcome: 'result', durationMs: 1, attempts: 1 } as const;
  return { id, ...common, action: CALL_ACTION, call: about };
}

test.run();
