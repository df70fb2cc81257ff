// The audit log: what it writes and when, what it deletes, and its pages. suppressed-requests.spec.ts has requests that are too many for it.

import { createHash } from 'node:crypto';
import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { timeOrderedIds } from '../../../src/auth/audit/audit-log.ts';
import { databaseUnavailable } from '../../../src/domain/errors/gateway-errors.ts';
import { duplicateServer } from '../../../src/domain/errors/registry-errors.ts';
import {
  type AuditEntry,
  CALL_ACTION,
  idAt,
  type NewCall,
} from '../../../src/domain/events/audit-entries.ts';
import { JsonText } from '../../../src/domain/json/json.ts';
import { suite } from '../../helpers/suite.ts';
import { passTurns } from '../../helpers/time/turns.ts';
import { START_MS, stoppedClock } from '../auth-harness.ts';
import { createAuditLog, entry, SETTINGS } from './audit-samples.ts';

const call = (tool: string): NewCall => ({
  ...{ actor: 'user:1', actorName: 'ada', action: CALL_ACTION, subject: '/mcp/demo', status: 200 },
  call: { template: 'demo', tool, outcome: 'result', durationMs: 3, attempts: 1 },
});

const test = suite('the audit log');

test.before.each(() => mock.timers.enable({ apis: ['setTimeout'] }));
test.after.each(() => mock.timers.reset());

test('writes changes in batches, after a second', async () => {
  const { audit, appended } = createAuditLog();
  for (let index = 0; index < 3; index += 1) audit.record(entry(`subject ${index}`));
  await pass(999);
  assert.equal(appended, []);
  await pass(1);
  assert.equal(appended, [3]);
});

test('yields between two chunks; entries that are recorded meanwhile wait for the next write', async () => {
  const { audit, appended, database } = createAuditLog();
  const inBetween: number[] = [];
  let left = [200, 200];
  database.onAppend = () =>
    setImmediate(() => {
      inBetween.push(appended.length);
      for (let count = left.shift() ?? 0; count > 0; count -= 1) audit.record(entry('meanwhile'));
    });
  for (let index = 0; index < 1_000; index += 1) audit.record(entry(`subject ${index}`));
  await pass(1_000);
  assert.equal(appended, [500, 500]);
  assert.equal(inBetween, [1, 2]);
  left = [];
  await pass(1_000);
  assert.equal(appended, [500, 500, 400]);
  const subjects = (await audit.list({ limit: 2_000 })).map(({ subject }) => subject);
  assert.equal([subjects.length, new Set(subjects).size], [1_400, 1_001], 'each is written once');
});

test('writes calls in blocks: full blocks at once, others after a second; no block spans more than ten seconds', async () => {
  const { audit, appended, clock } = createAuditLog({ ...SETTINGS, callArguments: 'full' });
  for (let index = 0; index < 2_010; index += 1) audit.recordCall(call('echo'), undefined);
  await pass();
  assert.equal(appended, [2_000]);
  clock.pass(10_001);
  audit.recordCall(call('echo'), undefined);
  for (const known of [
    [2_000, 10],
    [2_000, 10, 1],
  ]) {
    await pass();
    await pass(1_000);
    assert.equal(appended, known);
  }
  const long = (index: number) => JsonText.ofText(`"${index}${'x'.repeat(5_000)}"`);
  for (let index = 0; index < 100; index += 1) audit.recordCall(call('echo'), long(index));
  await pass();
  assert.equal(appended, [2_000, 10, 1, 59]);
  await audit.close();
  assert.is((await audit.list({ limit: 3_000 })).length, 2_111);
});

test('writes calls with the longest request ids of any characters, and gives them back', async () => {
  for (const character of ['x', '漢', '\u0001', '\u{1f511}']) {
    const { audit } = createAuditLog(SETTINGS);
    const requestId = character.repeat(512 / character.length);
    for (let index = 0; index < 1_000; index += 1)
      audit.recordCall({ ...call('echo'), requestId }, undefined);
    await audit.close();
    const listed = await audit.list({ limit: 2_000 });
    assert.is(listed.length, 1_000);
    assert.ok(listed.every((recorded) => recorded.requestId === requestId));
  }
});

test('has ids of UUID version 7, which begin with the time', () => {
  const id = timeOrderedIds(() => START_MS)();
  assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.is(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16), START_MS);
});

test('has ids that rise for over 4,096 entries in a millisecond, and when the clock is set back', () => {
  const clock = stoppedClock();
  const nextId = timeOrderedIds(clock.wall);
  const ids: string[] = [];
  for (const step of [0, 1, 0, -5_000, 4_990, 20]) {
    clock.step(step);
    for (let count = 0; count < 5_000; count += 1) ids.push(nextId());
  }
  assert.equal(ids.toSorted(), ids);
  assert.is(new Set(ids).size, ids.length);
});

test('has ids that differ from those of another node at the same time', () => {
  const [one, other] = [timeOrderedIds(() => START_MS), timeOrderedIds(() => START_MS)];
  const ids = Array.from({ length: 100 }, () => [one(), other()]).flat();
  assert.is(new Set(ids).size, 200);
});

test('truncates values that are longer than their column, and no character in half', async () => {
  const { audit } = createAuditLog();
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

test('keeps 10,000 entries while the database is unavailable, warns once, and writes them afterwards', async () => {
  const { audit, store, database, warnings, appended } = createAuditLog();
  database.failure = databaseUnavailable(new Error('refused'));
  for (let index = 0; index < 10_020; index += 1) audit.record(entry(`subject ${index}`));
  await pass(1_000);
  await pass(1_000);
  const complaint = ['the audit log cannot be written: entries are dropped'];
  assert.equal(warnings, [complaint]);
  database.failure = undefined;
  await pass(1_000);
  const kept = await store.audit.list({ limit: 20_000 });
  assert.is(kept.length, 10_000);
  assert.is(kept[0]?.subject, 'subject 9999');
  assert.equal(appended, Array(20).fill(500), 'no writing is larger than one answer of a slow database');
  assert.equal(warnings[1], [{ entries: 20 }, 'entries of the audit log were dropped']);
  await audit.close();
  assert.is(warnings.length, 2);
});

test('drops entries that the database refuses with a warning, and writes later entries', async () => {
  const { audit, store, database, warnings } = createAuditLog();
  database.failure = duplicateServer('x');
  audit.record(entry('refused'));
  assert.equal(await audit.list({ limit: 5 }), []);
  database.failure = undefined;
  audit.record(entry('taken'));
  await audit.close();
  const found = (await store.audit.list({ limit: 5 })).map(({ subject }) => subject);
  assert.equal(found, ['taken']);
  assert.equal(warnings, [
    [{ entries: 1, reason: 'DUPLICATE_SERVER' }, 'entries of the audit log were refused'],
  ]);
});

test('deletes surplus entries after each 5,000 entries and once an hour, and ignores a failure of it', async () => {
  const { audit, database, passHours } = createAuditLog();
  const bounds = { changes: 100_000, calls: 1_000, from: undefined };
  const trimsAfter = async (entries: number) => {
    for (let index = 0; index < entries; index += 1) audit.record(entry('more'));
    await audit.list({ limit: 1 });
    return database.trims.splice(0);
  };
  assert.equal(await trimsAfter(1), [], 'none at the start');
  assert.equal(await trimsAfter(2_499), []);
  assert.equal(await trimsAfter(2_500), [bounds]);
  passHours(0.99);
  assert.equal(await trimsAfter(1), []);
  passHours(0.01);
  assert.equal(await trimsAfter(1), [bounds]);
  assert.equal(await trimsAfter(1), []);
});

test('deletes by age once an hour, when the wall clock advanced as the monotonic clock did', async () => {
  const days = (count: number) => count * 86_400_000;
  const { clock, trimmedFrom, passHours, warnings } = createAuditLog({ ...SETTINGS, keptDays: 90 });
  const oldest = () => idAt(clock.wall() - days(90));
  assert.is(await trimmedFrom(), 'no trim', 'none at the start');
  passHours(1);
  assert.is(await trimmedFrom(), oldest());
  for (const step of [days(100), -days(1), 11 * 60_000]) {
    passHours(1);
    clock.step(step);
    assert.is(await trimmedFrom(), 'no age', `${step}`);
    passHours(0.001);
    clock.step(-step);
    assert.is(await trimmedFrom(), 'no trim', `${step}: within the hour`);
    passHours(1);
    assert.is(await trimmedFrom(), 'no age', `${step}: the clock was set back`);
    passHours(1);
    assert.is(await trimmedFrom(), oldest(), `${step}: a whole hour without a step`);
  }
  const reason = 'was set since it was last compared';
  const words = 'no entries of the audit log are deleted for their age: the clock may be wrong';
  assert.equal(warnings, Array(6).fill([{ reason }, words]));
  passHours(1);
  clock.step(5 * 60_000);
  assert.is(await trimmedFrom(), oldest(), 'within 10 %');
});

test('deletes by age on a server only when its clock agrees within 60 s, and answers', async () => {
  const { clock, trimmedFrom, passHours, warnings, database } = createAuditLog({ ...SETTINGS, keptDays: 1 });
  const oldest = () => idAt(clock.wall() - 86_400_000);
  for (const [skewMs, isTrusted] of [
    [60_000, true],
    [-60_000, true],
    [60_001, false],
    [-86_400_000, false],
  ] as const) {
    passHours(1);
    database.serverTimeMs = async () => clock.wall() + skewMs;
    assert.is(await trimmedFrom(), isTrusted ? oldest() : 'no age', `${skewMs}`);
  }
  passHours(1);
  database.serverTimeMs = async () => Number.NaN;
  assert.is(await trimmedFrom(), 'no age', 'no number');
  passHours(1);
  database.serverTimeMs = async () => {
    throw databaseUnavailable(new Error('refused'));
  };
  assert.is(await trimmedFrom(), 'no trim', 'no answer');
  assert.equal(
    warnings.map(([fields]) => fields),
    Array(3).fill({ reason: 'differs from the clock of the database' }),
  );
});

test('records of the arguments of a call nothing, their digest as they were sent, or their beginning', async () => {
  const text = '{"b":1, "a":"é"}';
  const sha256 = createHash('sha256').update(text).digest('hex');
  for (const callArguments of ['none', 'digest', 'full'] as const) {
    const { audit } = createAuditLog({ ...SETTINGS, callArguments });
    const forms = [JsonText.ofText(text), JsonText.ofBytes(Buffer.from(text)), undefined];
    for (const form of forms) audit.recordCall(call('echo'), form);
    const stored = callArguments === 'full' ? { arguments: text } : {};
    const kept = callArguments === 'none' ? {} : { digest: sha256, ...stored };
    assert.equal(
      (await audit.list({ limit: 5, action: 'tools/call' })).map((each) => each.call).reverse(),
      [kept, kept, {}].map((more) => ({
        ...call('echo').call,
        ...more,
      })),
    );
    audit.recordCall(call('echo'), JsonText.ofText(JSON.stringify('x'.repeat(100_000))));
    const [long] = await audit.list({ limit: 1 });
    assert.is(long?.call?.arguments?.length, callArguments === 'full' ? 4_096 : undefined);
    await audit.close();
  }
});

test('keeps at most 16 MB of arguments for later turns: beyond, they are digested at once', async () => {
  const { audit } = createAuditLog(SETTINGS);
  const all = Array.from({ length: 40 }, (_, index) => Buffer.from(`"${index}${'x'.repeat(1_000_000)}"`));
  const digests = all.map((bytes) => createHash('sha256').update(bytes).digest('hex'));
  for (const bytes of all) audit.recordCall(call('echo'), JsonText.ofBytes(bytes));
  // The arguments that still wait get other digests.
  for (const bytes of all) bytes.fill('y');
  const listed = await audit.list({ limit: 100 });
  const oldestFirst = listed.map((entry) => entry.call?.digest ?? '').toReversed();
  assert.is(oldestFirst.length, 40);
  assert.equal(oldestFirst.slice(0, 25), digests.slice(0, 25));
  assert.not.equal(oldestFirst[25], digests[25], 'those of one turn are digested later');
});

test('writes calls with large arguments, which are digested in later turns', async () => {
  const { audit, appended } = createAuditLog(SETTINGS);
  const large = JsonText.ofText(`"${'x'.repeat(600_000)}"`);
  for (let index = 0; index < 3; index += 1) audit.recordCall(call('echo'), large);
  await pass();
  await pass(1_000);
  assert.equal(appended, [3]);
  await audit.close();
});

test('keeps changes when calls are dropped, and warns at the first of them and at the end', async () => {
  const { audit, database, warnings, store } = createAuditLog(SETTINGS);
  database.failure = databaseUnavailable(new Error('refused'));
  for (let index = 0; index < 10_051; index += 1) audit.recordCall(call('echo'), undefined);
  audit.record(entry('a change'));
  database.failure = undefined;
  await audit.close();
  assert.is((await store.audit.list({ limit: 20_000, tool: 'echo' })).length, 10_000);
  assert.is((await store.audit.list({ limit: 5, action: entry('').action })).length, 1);
  assert.equal(warnings.slice(1), [[{ entries: 51 }, 'entries of the audit log were dropped']]);
});

test('filters entries by time', async () => {
  const { audit, clock } = createAuditLog(SETTINGS);
  audit.recordCall(call('first'), undefined);
  clock.pass(1_000);
  audit.record(entry('second'));
  clock.pass(1_000);
  audit.recordCall(call('third'), undefined);
  const names = async (query: object) =>
    (await audit.list({ limit: 5, ...query })).map(({ subject, call: of }) => of?.tool ?? subject);
  assert.equal(await names({ from: idAt(START_MS + 1_000) }), ['third', 'second']);
  assert.equal(await names({ before: idAt(START_MS + 2_000) }), ['second', 'first']);
  assert.equal(await names({ from: idAt(START_MS + 1_000), before: idAt(START_MS + 1_001) }), ['second']);
  const [third] = await audit.list({ limit: 1 });
  assert.equal(await names({ before: third?.id }), ['second', 'first']);
});

test('reads pages one after the other, and the next one after a page that fails', async () => {
  const { audit, database } = createAuditLog();
  audit.record(entry('kept'));
  await audit.list({ limit: 1 });
  database.failNextList = true;
  const pages = await Promise.allSettled(Array.from({ length: 5 }, () => audit.list({ limit: 5 })));
  assert.equal(
    pages.map((page) => (page.status === 'fulfilled' ? page.value.length : 'failed')),
    ['failed', 1, 1, 1, 1],
  );
  assert.is(database.mostLists, 1);
});

test('reads no page for a request that has ended before its turn', async () => {
  const { audit, database } = createAuditLog();
  audit.record(entry('kept'));
  const ended = new AbortController();
  const pages = [audit.list({ limit: 5 }), audit.list({ limit: 5 }, ended.signal), audit.list({ limit: 5 })];
  ended.abort(new Error('it has left'));
  const settled = await Promise.allSettled(pages);
  assert.equal(
    settled.map((page) => (page.status === 'fulfilled' ? page.value.length : String(page.reason))),
    [1, 'Error: it has left', 1],
  );
  assert.is(database.lists, 2);
});

test('lets readers during a write share the next one, and bounds the wait for a write that hangs', async () => {
  const { audit, appended, database } = createAuditLog();
  const gate = Promise.withResolvers<void>();
  database.gate = gate.promise;
  const read = (subject: string) => {
    audit.record(entry(subject));
    return audit.list({ limit: 5 });
  };
  const first = read('a');
  await pass();
  const readers = [first, ...['b', 'c', 'd'].map(read)];
  await pass();
  assert.equal(appended, [1]);
  gate.resolve();
  assert.equal((await Promise.all(readers)).at(-1)?.length, 4);
  assert.equal(appended, [1, 3]);
  database.gate = new Promise(() => {});
  const [hanging] = [read('e'), await pass(1_000)];
  assert.is((await hanging).length, 4);
  await Promise.all([audit.close(), pass(2_000)]);
  assert.equal(appended, [1, 3, 1]);
});

test('writes nothing after close, and warns of entries that come then', async () => {
  const { audit, appended, warnings } = createAuditLog();
  audit.record(entry('before'));
  await audit.close();
  audit.record(entry('late'));
  audit.recordCall(call('late'), undefined);
  await pass(10_000);
  assert.equal(appended, [1]);
  assert.equal(warnings, [['the audit log cannot be written: entries are dropped']]);
});

test('reports at close how many entries were lost without a database', async () => {
  const { audit, database, warnings } = createAuditLog();
  database.failure = databaseUnavailable(new Error('refused'));
  audit.record(entry('lost'));
  await audit.close();
  assert.equal(warnings, [[{ entries: 1 }, 'entries of the audit log were lost']]);
});

/** Advances the time, and waits for the work that this starts. */
async function pass(ms = 0): Promise<void> {
  if (ms > 0) mock.timers.tick(ms);
  await passTurns(100);
}

test.run();
