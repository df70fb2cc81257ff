// The instance that runs a task: the search among instances, its bounds, and the memory of owners. Requests of clients about tasks are
// in modern/modern-tasks.spec.ts and gateway/mcp-tasks.spec.ts.

import { mock } from 'node:test';
import { NEVER, type Observable, of, Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { ANONYMOUS } from '../../src/domain/account.ts';
import { hasCode } from '../../src/domain/errors.ts';
import type { ExchangeEvent } from '../../src/domain/exchange.ts';
import { type JsonObject, JsonText } from '../../src/domain/json.ts';
import {
  instanceOfTask,
  isTaskId,
  TaskMemory,
  TaskSearches,
  taskIdIn,
} from '../../src/protocol/task-finder.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('task finder');

const KNOWN: ExchangeEvent = { kind: 'result', result: JsonText.ofValue({ status: 'working' }) };
const UNKNOWN: ExchangeEvent = { kind: 'error', error: { code: -32602, message: 'Unknown task' } };

test.before.each(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
});
test.after.each(() => {
  mock.timers.reset();
  mock.restoreAll();
});

/** Searches; returns what was found so far, and `done` after the end. */
function search(answers: Readonly<Record<string, Observable<ExchangeEvent>>>, template?: string): unknown[] {
  const received: unknown[] = [];
  instanceOfTask(template, Object.keys(answers), (id) => answers[id] ?? NEVER).subscribe({
    next: (found) => received.push(found),
    complete: () => received.push('done'),
  });
  return received;
}

test('ends a search after 5 s, and cancels its requests', () => {
  const slow = new Subject<ExchangeEvent>();
  const received = search({ a: slow }, 't');
  mock.timers.tick(4_999);
  assert.equal([received, slow.observed], [[], true]);
  mock.timers.tick(1);
  assert.equal([received, slow.observed], [[undefined, 'done'], false]);
});

test('asks 32 instances at most', () => {
  const answers = Array.from({ length: 33 }, () => new Subject<ExchangeEvent>());
  search(Object.fromEntries(answers.entries()), 't');
  assert.is(answers.filter(({ observed }) => observed).length, 32);
});

test('a search over all templates waits for all instances, as two templates may have given the id', () => {
  const late = new Subject<ExchangeEvent>();
  const received = search({ 'a/1': of(KNOWN), 'b/1': late, 'c/1': of(UNKNOWN) });
  assert.equal(received, []);
  late.next(UNKNOWN);
  late.complete();
  assert.equal(received, ['a/1', 'done']);
  assert.equal(search({ 'a/1': of(KNOWN), 'b/1': of(KNOWN) }), [undefined, 'done']);
  assert.equal(search({ 'a/1': of(UNKNOWN) }), [undefined, 'done']);
});

test('a search over all templates ends 1 s after a find; finds in one template count as one', () => {
  const [first, silent] = [new Subject<ExchangeEvent>(), new Subject<ExchangeEvent>()];
  const answers = { 'a/1': first, 'a/2': of(UNKNOWN), 'b/1': silent };
  const received = search(answers);
  mock.timers.tick(3_000);
  first.next(KNOWN);
  mock.timers.tick(999);
  assert.equal([received, silent.observed], [[], true]);
  mock.timers.tick(1);
  assert.equal([received, silent.observed], [['a/1', 'done'], false]);
  const both = { 'a/1': of(KNOWN), 'a/2': of(KNOWN), 'b/1': silent };
  const replicas = search(both);
  mock.timers.tick(1_000);
  assert.equal(replicas, ['a/1', 'done']);
});

const ANN = { ownerId: 'ann', template: 't' };

/** Searches that end when the spec says so. */
function searching() {
  let nowMs = 0;
  const searches = new TaskSearches(() => nowMs);
  const begun: Subject<string | undefined>[] = [];
  const ask = (taskId: string, asker = ANN) => {
    const received: unknown[] = [];
    const begin = () => {
      const search = new Subject<string | undefined>();
      begun.push(search);
      return search;
    };
    const subscription = searches.search(asker, taskId, begin).subscribe({
      next: (found) => received.push(found),
      error: (error: unknown) => received.push(hasCode(error, 'QUEUE_FULL') ? 'full' : error),
      complete: () => received.push('done'),
    });
    return { received, subscription };
  };
  const end = (index: number, found?: string) => {
    begun[index]?.next(found);
    begun[index]?.complete();
  };
  return { searches, begun, ask, end, wait: (ms: number) => (nowMs += ms) };
}

test('equal searches of one owner are one, which ends without subscribers', () => {
  const { searches, begun, ask, end } = searching();
  const [first, second] = [ask('1'), ask('1')];
  ask('1', { ...ANN, ownerId: 'eve' });
  ask('1', { ...ANN, template: 'u' });
  assert.is(begun.length, 3);
  first.subscription.unsubscribe();
  end(0, 'a');
  assert.equal([first.received, second.received, searches.size], [[], ['a', 'done'], 2]);
  const left = ask('2');
  left.subscription.unsubscribe();
  assert.equal([begun[3]?.observed, searches.size], [false, 2]);
});

test('an owner may have four searches under way, all owners sixty-four, and the anonymous owner sixty-four, too', () => {
  const { searches, ask, end } = searching();
  const reported = (ownerId: string) =>
    Array.from({ length: 20 }, (_, id) => ask(`${id}`, { ...ANN, ownerId }).received[0]).indexOf('full');
  const owners = ['ann', ...Array.from({ length: 16 }, (_, index) => `owner ${index}`)];
  assert.equal(owners.map(reported), [...Array.from({ length: 16 }, () => 4), 0]);
  assert.is(searches.size, 64);
  end(0);
  assert.equal([ask('20').received, ask('21').received, searches.size], [[], ['full'], 64]);
  const anonymous = searching();
  for (let id = 0; id < 65; id += 1) anonymous.ask(`${id}`, { ...ANN, ownerId: ANONYMOUS.id });
  assert.equal([anonymous.searches.size, anonymous.begun.length], [64, 64]);
});

test('an owner does not repeat a fruitless search within a second', () => {
  const { searches, begun, ask, end, wait } = searching();
  ask('1');
  end(0);
  wait(999);
  assert.equal([ask('1').received, begun.length], [[undefined, 'done'], 1]);
  ask('1', { ...ANN, ownerId: 'eve' });
  wait(1);
  ask('1');
  assert.equal([begun.length, searches.size], [3, 2]);
});

const EVERYWHERE = { ownerId: 'ann', template: undefined };
const EVE = { ownerId: 'eve', template: 't' };

test('distinguishes the owners of one id by instance', () => {
  const memory = new TaskMemory();
  memory.begun(ANN, '1', 'one');
  memory.begun(EVE, '1', 'two');
  const others = (asker: typeof ANN) =>
    ['one', 'two', 'three'].filter((id) => memory.isOthers(asker, '1', id));
  const found = [others(ANN), others(EVE), others({ ...ANN, ownerId: 'bob' })];
  assert.equal(found, [['two'], ['one'], ['one', 'two']]);
  memory.begun(EVE, '1', 'one'); // this instance gave the id to both
  assert.equal([others(ANN), others(EVE)], [['two'], []]);
  assert.is(memory.isOthers({ ...EVERYWHERE, ownerId: 'bob' }, '1', 't/one'), true);
});

test('remembers 10,000 tasks, and forgets the least recently used one', () => {
  const memory = new TaskMemory();
  const all = { ...ANN, ownerId: ANONYMOUS.id };
  for (let number = 0; number < 10_000; number += 1) memory.begun(all, `${number}`, 'a');
  assert.is(memory.find(all, '0'), 'a');
  memory.begun(all, 'one more', 'a');
  assert.is(memory.size, 10_000);
  assert.equal([memory.find(all, '0'), memory.find(all, '1')], ['a', undefined]);
  assert.equal([memory.isTaken('t', '0'), memory.isTaken('t', '1')], [true, false]);
});

test('an owner does not evict the tasks of another owner', () => {
  const memory = new TaskMemory();
  memory.begun(ANN, '1', 'one');
  for (let number = 0; number < 10_100; number += 1) memory.begun(EVE, `eve ${number}`, 'one');
  assert.equal([memory.find(ANN, '1'), memory.isOthers(EVE, '1', 'one'), memory.size], ['one', true, 2_501]);
});

test('remembers eight instances that gave one client the same id', () => {
  const memory = new TaskMemory();
  for (let number = 0; number < 9; number += 1) memory.begun(ANN, '1', `${number}`);
  const others = Array.from({ length: 9 }, (_, id) => memory.isOthers(EVE, '1', `${id}`));
  assert.equal(others, [false, ...Array(8).fill(true)]);
});

test('neither remembers nor looks up an id that is too long', () => {
  const memory = new TaskMemory();
  const spies = (['get', 'has', 'set'] as const).map((name) => mock.method(Map.prototype, name).mock);
  const keys = () => spies.flatMap(({ calls }) => calls.map(({ arguments: [key] }) => String(key)));
  for (const [length, isKept] of [
    [1_024, true],
    [1_025, false],
  ] as const) {
    const taskId = 'x'.repeat(length);
    memory.begun(ANN, taskId, 'one');
    assert.equal([isTaskId(taskId), memory.all(ANN, taskId)], [isKept, isKept ? ['one'] : []]);
    assert.equal([memory.isTaken('t', taskId), memory.isOthers(EVE, taskId, 'one')], [isKept, isKept]);
    assert.is(
      keys().some((key) => key.includes(taskId)),
      isKept,
    );
  }
});

test('reads the id of the task that a result reports as begun', () => {
  const read = (result: JsonObject) => taskIdIn(JsonText.ofValue(result));
  assert.equal(
    [
      read({ resultType: 'task', taskId: '1' }),
      read({ task: { taskId: '2' } }),
      read({ resultType: 'complete', taskId: '3' }),
      read({ taskId: '4' }),
      read({ resultType: 'task', taskId: 5 }),
      read({ resultType: 'task', taskId: '6', text: 'x'.repeat(20_000) }),
    ],
    ['1', '2', undefined, undefined, undefined, undefined],
  );
});

test('returns all instances that gave the owner the id, the latest last', () => {
  const memory = new TaskMemory();
  memory.begun(ANN, '1', 'one');
  memory.begun({ ...ANN, template: 'u' }, '1', 'one');
  memory.begun(ANN, '1', 'two');
  memory.found(ANN, '1', 'three');
  memory.begun(EVE, '1', 'three');
  assert.equal(memory.all(ANN, '1'), ['one', 'two']);
  assert.equal(memory.all(EVERYWHERE, '1'), ['t/one', 'u/one', 't/two']);
  assert.equal(memory.all(ANN, '2'), []);
});

test.run();
