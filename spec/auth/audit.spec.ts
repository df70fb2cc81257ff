import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { AuditLog } from '../../src/auth/audit.ts';
import type { AuditEntry } from '../../src/domain/account.ts';
import { duplicateServer } from '../../src/domain/error-catalogue.ts';
import { databaseUnavailable } from '../../src/domain/errors.ts';
import { MemoryStore } from '../../src/persistence/memory-store.ts';
import { suite } from '../helpers/suite.ts';
import { START_MS, stoppedClock } from './auth-harness.ts';

const entry = (subject: string): Omit<AuditEntry, 'id' | 'at'> => ({
  actor: 'user:1',
  actorName: 'ada',
  action: 'POST /auth/users',
  subject,
  status: 201,
});

const test = suite('the audit log');

test.before.each(() => mock.timers.enable({ apis: ['setTimeout'] }));
test.after.each(() => mock.timers.reset());

test('writes what was recorded after a second, or at a hundred entries, together', async () => {
  const { audit, appended } = made();
  for (let index = 0; index < 3; index += 1) audit.record(entry(`subject ${index}`));
  mock.timers.tick(999);
  await turns();
  assert.equal(appended, []);
  mock.timers.tick(1);
  await turns();
  assert.equal(appended, [3]);
  for (let index = 0; index < 100; index += 1) audit.record(entry(`subject ${index}`));
  await turns();
  assert.equal(appended, [3, 100]);
});

test('lists what was recorded before, newest first, in pages', async () => {
  const { audit, clock } = made();
  for (let index = 0; index < 25; index += 1) {
    audit.record(entry(`subject ${index}`));
    if (index % 3 === 0) clock.pass(1);
  }
  const pages: AuditEntry[] = [];
  for (let page = await audit.list({ limit: 10 }); page.length > 0; ) {
    pages.push(...page);
    page = await audit.list({ limit: 10, before: page.at(-1)?.id });
  }
  assert.equal(
    pages.map(({ subject }) => subject),
    Array.from({ length: 25 }, (_, index) => `subject ${24 - index}`),
  );
  assert.is(pages.at(-1)?.at, new Date(START_MS).toISOString());
});

test('cuts what is longer than its column, and no character in half', async () => {
  const { audit } = made();
  const long = (units: number) => `${'x'.repeat(units - 1)}😀`;
  audit.record({
    ...{ actor: long(512), actorName: long(512), action: long(512), subject: long(512), status: 201 },
    ...{ address: long(512), requestId: long(512) },
  });
  const [{ id, at, ...kept }] = (await audit.list({ limit: 1 })) as [AuditEntry];
  assert.equal([typeof id, typeof at], ['string', 'string']);
  const most = 'x'.repeat(511);
  assert.equal(kept, {
    ...{ actor: most, actorName: most, action: most, subject: most, status: 201 },
    ...{ address: most, requestId: most },
  });
});

test('while the database is away it keeps 10,000 entries, warns once, and writes when it is back', async () => {
  const { audit, store, database, warnings, appended } = made();
  database.failure = databaseUnavailable(new Error('refused'));
  for (let index = 0; index < 10_020; index += 1) audit.record(entry(`subject ${index}`));
  mock.timers.tick(1_000);
  await turns();
  mock.timers.tick(1_000);
  await turns();
  assert.equal(warnings, [['the audit log cannot be written: new entries are dropped']]);
  database.failure = undefined;
  mock.timers.tick(1_000);
  await turns();
  const kept = await store.audit.list({ limit: 20_000 });
  assert.is(kept.length, 10_000);
  assert.is(kept[0]?.subject, 'subject 9999');
  assert.equal(appended, Array(100).fill(100), 'no writing is larger than one answer of a slow database');
  assert.equal(warnings[1], [{ entries: 20 }, 'entries of the audit log were dropped']);
  await audit.close();
  assert.is(warnings.length, 2);
});

test('entries that the database refuses hold up nobody', async () => {
  const { audit, store, database, warnings } = made();
  database.failure = duplicateServer('x');
  audit.record(entry('refused'));
  assert.equal(await audit.list({ limit: 5 }), []);
  database.failure = undefined;
  audit.record(entry('taken'));
  await audit.close();
  assert.equal(
    (await store.audit.list({ limit: 5 })).map(({ subject }) => subject),
    ['taken'],
  );
  assert.equal(warnings, [
    [{ entries: 1, reason: 'DUPLICATE_SERVER' }, 'entries of the audit log were refused'],
  ]);
});

test('is cut at its old end at the first writing and after each 10,000 entries; a failure to cut is none', async () => {
  const { audit, database } = made();
  audit.record(entry('first'));
  await audit.list({ limit: 1 });
  assert.equal(database.trims, [100_000]);
  for (let round = 0; round < 3; round += 1) {
    for (let index = 0; index < 5_000; index += 1) audit.record(entry('more'));
    await audit.list({ limit: 1 });
  }
  assert.equal(database.trims, [100_000, 100_000]);
});

test('an end without a database loses what was not written, and says how much', async () => {
  const { audit, database, warnings } = made();
  database.failure = databaseUnavailable(new Error('refused'));
  audit.record(entry('lost'));
  await audit.close();
  assert.equal(warnings, [[{ entries: 1 }, 'entries of the audit log were lost']]);
});

function made() {
  const clock = stoppedClock();
  const store = new MemoryStore();
  const appended: number[] = [];
  const warnings: unknown[][] = [];
  const database = { failure: undefined as Error | undefined, trims: [] as number[] };
  const audit = new AuditLog({
    store: {
      append: async (entries) => {
        if (database.failure !== undefined) throw database.failure;
        appended.push(entries.length);
        await store.audit.append(entries);
      },
      list: (page) => store.audit.list(page),
      trim: async (keep) => {
        database.trims.push(keep);
        throw new Error('too busy');
      },
    },
    log: { warn: (...args: unknown[]) => void warnings.push(args) },
    now: clock.now,
  });
  return { audit, clock, store, appended, warnings, database };
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 100; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

test.run();
