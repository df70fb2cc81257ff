import { mock } from 'node:test';
import { NEVER, type Observable, of, Subject, throwError } from 'rxjs';
import * as assert from 'uvu/assert';
import { ANONYMOUS } from '../../src/domain/account.ts';
import { hasCode } from '../../src/domain/errors.ts';
import type { ExchangeEvent } from '../../src/domain/exchange.ts';
import { JsonText } from '../../src/domain/json.ts';
import { instanceOfTask, instanceOfTaskAnywhere, TaskSearches } from '../../src/protocol/task-finder.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('task search');

test.before.each(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
});
test.after.each(() => {
  mock.timers.reset();
});

const known: ExchangeEvent = { kind: 'result', result: JsonText.ofValue({ status: 'working' }) };
const unknown: ExchangeEvent = { kind: 'error', error: { code: -32602, message: 'Unknown task' } };
/** Searches; what was found so far, `done` at the end. */
function search(
  answers: Readonly<Record<string, Observable<ExchangeEvent>>>,
  among = instanceOfTask,
): unknown[] {
  const heard: unknown[] = [];
  among(Object.keys(answers), (id) => answers[id] ?? NEVER).subscribe({
    next: (found) => heard.push(found),
    complete: () => heard.push('done'),
  });
  return heard;
}

test('finds the instance that answers with a result', () => {
  assert.equal(search({ a: of(unknown), b: of(known), c: of(unknown) }), ['b', 'done']);
});

test('one that fails does not know it, and one that is slow is not waited for', () => {
  assert.equal(search({ a: throwError(() => new Error('gone')), b: NEVER, c: of(known) }), ['c', 'done']);
});

test('nobody knows it', () => {
  assert.equal(search({ a: of(unknown), b: throwError(() => new Error('gone')) }), [undefined, 'done']);
  assert.equal(search({}), [undefined, 'done']);
});

test('gives up after five seconds, and lets go of those that were asked', () => {
  const slow = new Subject<ExchangeEvent>();
  const heard = search({ a: slow });
  mock.timers.tick(4_999);
  assert.equal([heard, slow.observed], [[], true]);
  mock.timers.tick(1);
  assert.equal([heard, slow.observed], [[undefined, 'done'], false]);
});

test('asks no more than 32', () => {
  const asked: string[] = [];
  const ids = Array.from({ length: 40 }, (_, index) => `${index}`);
  const get = (id: string) => {
    asked.push(id);
    return of(unknown);
  };
  instanceOfTask(ids, get).subscribe();
  assert.is(asked.length, 32);
});

test('over all templates hears everybody out, since two of them may have given the id', () => {
  const late = new Subject<ExchangeEvent>();
  const heard = search({ 'a/1': of(known), 'b/1': late, 'c/1': of(unknown) }, instanceOfTaskAnywhere);
  assert.equal(heard, []);
  late.next(unknown);
  late.complete();
  assert.equal(heard, ['a/1', 'done']);
  assert.equal(search({ 'a/1': of(known), 'b/1': of(known) }, instanceOfTaskAnywhere), [undefined, 'done']);
  assert.equal(search({ 'a/1': of(unknown) }, instanceOfTaskAnywhere), [undefined, 'done']);
});

test('over all templates takes those of one for one, and waits a second for the others once it is found', () => {
  const [first, silent] = [new Subject<ExchangeEvent>(), new Subject<ExchangeEvent>()];
  const answers = { 'a/1': first, 'a/2': of(unknown), 'b/1': silent };
  const heard = search(answers, instanceOfTaskAnywhere);
  mock.timers.tick(3_000);
  first.next(known);
  mock.timers.tick(999);
  assert.equal([heard, silent.observed], [[], true]);
  mock.timers.tick(1);
  assert.equal([heard, silent.observed], [['a/1', 'done'], false]);
  const both = { 'a/1': of(known), 'a/2': of(known), 'b/1': silent };
  const replicas = search(both, instanceOfTaskAnywhere);
  mock.timers.tick(1_000);
  assert.equal(replicas, ['a/1', 'done']);
});

test('over all templates gives up after five seconds', () => {
  const silent = new Subject<ExchangeEvent>();
  const heard = search({ 'a/1': of(unknown), 'b/1': silent }, instanceOfTaskAnywhere);
  mock.timers.tick(4_999);
  assert.equal([heard, silent.observed], [[], true]);
  mock.timers.tick(1);
  assert.equal([heard, silent.observed], [[undefined, 'done'], false]);
});

const ANN = { ownerId: 'ann', template: 't' };

/** Searches that end when the spec says so. */
function searching() {
  let nowMs = 0;
  const searches = new TaskSearches(() => nowMs);
  const begun: Subject<string | undefined>[] = [];
  const ask = (taskId: string, asker = ANN) => {
    const heard: unknown[] = [];
    const begin = () => {
      const search = new Subject<string | undefined>();
      begun.push(search);
      return search;
    };
    const subscription = searches.search(asker, taskId, begin).subscribe({
      next: (found) => heard.push(found),
      error: (error: unknown) => heard.push(hasCode(error, 'QUEUE_FULL') ? 'full' : error),
      complete: () => heard.push('done'),
    });
    return { heard, subscription };
  };
  const end = (index: number, found?: string) => {
    begun[index]?.next(found);
    begun[index]?.complete();
  };
  return { searches, begun, ask, end, wait: (ms: number) => (nowMs += ms) };
}

test('equal searches of one owner are one, and end when nobody waits for it', () => {
  const { searches, begun, ask, end } = searching();
  const [first, second] = [ask('1'), ask('1')];
  ask('1', { ...ANN, ownerId: 'eve' });
  ask('1', { ...ANN, template: 'u' });
  assert.is(begun.length, 3);
  first.subscription.unsubscribe();
  end(0, 'a');
  assert.equal([first.heard, second.heard, searches.size], [[], ['a', 'done'], 2]);
  const left = ask('2');
  left.subscription.unsubscribe();
  assert.equal([begun[3]?.observed, searches.size], [false, 2]);
});

test('one owner has four under way, all have sixty-four, and callers who are all one have sixty-four, too', () => {
  const { searches, ask, end } = searching();
  const told = (ownerId: string) =>
    Array.from({ length: 20 }, (_, id) => ask(`${id}`, { ...ANN, ownerId }).heard[0]).indexOf('full');
  const owners = ['ann', ...Array.from({ length: 16 }, (_, index) => `owner ${index}`)];
  assert.equal(owners.map(told), [...Array.from({ length: 16 }, () => 4), 0]);
  assert.is(searches.size, 64);
  end(0);
  assert.equal([ask('20').heard, ask('21').heard, searches.size], [[], ['full'], 64]);
  const anonymous = searching();
  for (let id = 0; id < 65; id += 1) anonymous.ask(`${id}`, { ...ANN, ownerId: ANONYMOUS.id });
  assert.equal([anonymous.searches.size, anonymous.begun.length], [64, 64]);
});

test('a task that nobody knew is not looked for within a second, by him', () => {
  const { searches, begun, ask, end, wait } = searching();
  ask('1');
  end(0);
  wait(999);
  assert.equal([ask('1').heard, begun.length], [[undefined, 'done'], 1]);
  ask('1', { ...ANN, ownerId: 'eve' });
  wait(1);
  ask('1');
  assert.equal([begun.length, searches.size], [3, 2]);
});

test('what was found is not remembered here', () => {
  const { begun, ask, end } = searching();
  ask('1');
  end(0, 'a');
  ask('1');
  assert.is(begun.length, 2);
});

test.run();
