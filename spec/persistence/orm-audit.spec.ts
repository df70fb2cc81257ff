// The audit log on SQLite, beyond the suite that every store runs.

import { copyFile, rename } from 'node:fs/promises';
import * as assert from 'uvu/assert';
import { type AuditEntry, CALL_ACTION } from '../../src/domain/audit.ts';
import { hasCode } from '../../src/domain/errors.ts';
import { openStore } from '../../src/persistence/open.ts';
import { suite } from '../helpers/suite.ts';
import { inFolder } from './temporary-folder.ts';

const test = suite('audit log on SQLite');
const open = () => openStore('sqlite://', { cwd: '/', migrations: 'apply' });

test('takes a batch again whose answer was lost, cut differently this time', async () => {
  const { audit, close } = await opened();
  const entries = Array.from({ length: 250 }, (_, index) => entry(index));
  await audit.append(entries.slice(0, 120));
  await audit.append(entries);
  assert.equal(await audit.list({ limit: 1_000 }), entries.toReversed());
  await close();
});

test('a killed process leaves every call that was appended, and a stop does', () =>
  inFolder(async (folder) => {
    const calls = [call(1), call(2)];
    const store = await openFile(`${folder}/x.db`);
    await store.audit.append(calls);
    // What the system has of the files is what a kill leaves.
    for (const end of ['', '-wal']) await copyFile(`${folder}/x.db${end}`, `${folder}/killed.db${end}`);
    await store.close();
    for (const name of ['killed', 'x']) {
      const again = await openFile(`${folder}/${name}.db`);
      assert.equal(await again.audit.list({ limit: 5 }), calls.toReversed(), name);
      await again.close();
    }
  }));

test('calls wait while the file is away, and are taken once when it is back', () =>
  inFolder(async (folder) => {
    const store = await openFile(`${folder}/x.db`);
    await store.audit.append([call(1)]);
    await rename(`${folder}/x.db`, `${folder}/away.db`);
    const failure = await store.audit.append([call(2)]).catch((thrown: unknown) => thrown);
    assert.ok(hasCode(failure, 'DATABASE_UNAVAILABLE'));
    await rename(`${folder}/away.db`, `${folder}/x.db`);
    await store.audit.append([call(1), call(2), entry(3)]);
    assert.equal(await store.audit.list({ limit: 5 }), [entry(3), call(2), call(1)]);
    await store.close();
  }));

test('a filter looks through as many windows as it needs, and others have their turn in between', async () => {
  const { audit, close } = await opened();
  const rare = new Set([0, 1, 4_999, 5_000, 10_000, 11_999]);
  const calls = Array.from({ length: 12_000 }, (_, index) => call(index, rare.has(index) ? 'rare' : 'echo'));
  await audit.append(calls);
  const found = async (page: object) =>
    (await audit.list({ limit: 10, filter: { tool: 'rare' }, ...page })).map(({ id }) => Number(id));
  const all = [11_999, 10_000, 5_000, 4_999, 1, 0];
  assert.equal(await found({}), all);
  assert.equal(await found({ limit: 3 }), all.slice(0, 3));
  assert.equal(await found({ limit: 3, before: call(5_000).id }), all.slice(3));
  assert.equal(await found({ from: call(1).id, before: call(11_999).id }), all.slice(1, 5));
  let turns = 0;
  const counting = setInterval(() => (turns += 1), 0);
  assert.equal(await found({ filter: { tool: 'none' } }), []);
  clearInterval(counting);
  assert.ok(turns > 0);
  await close();
});

test('cuts thousands of entries in slices', async () => {
  const { audit, close } = await opened();
  await audit.append(
    Array.from({ length: 2_600 }, (_, index) => (index < 1_300 ? entry(index) : call(index))),
  );
  await audit.trim({ changes: 1_300, calls: 100 });
  assert.is((await audit.list({ limit: 3_000 })).length, 1_400);
  await audit.trim({ changes: 1_300, calls: 100, from: entry(1_299).id });
  const kept = (await audit.list({ limit: 3_000 })).map(({ id }) => Number(id));
  assert.equal([kept.length, kept[0], kept[99], kept[100]], [101, 2_599, 2_500, 1_299]);
  await close();
});

const openFile = (file: string) => openStore(`sqlite:///${file}`, { cwd: '/', migrations: 'apply' });

async function opened() {
  const store = await open();
  return { audit: store.audit, close: () => store.close() };
}

function entry(number: number): AuditEntry {
  const id = String(number).padStart(6, '0');
  const common = { actor: 'a', actorName: 'n', action: 'b', subject: 's', status: 1 };
  return { id, at: '2026-01-02T03:04:05.678Z', ...common };
}

function call(number: number, tool = 'echo'): AuditEntry {
  const { id, ...common } = entry(number);
  const about = { template: 't', tool, outcome: 'result', durationMs: 1, attempts: 1 } as const;
  return { id, ...common, action: CALL_ACTION, call: about };
}

test.run();
