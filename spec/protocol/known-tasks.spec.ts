// The memory of the instances that run tasks, and of their owners. Requests of clients about tasks are in
// modern/modern-tasks.spec.ts and gateway/mcp/tasks.spec.ts.

import * as assert from 'uvu/assert';
import { ToolRights } from '../../src/domain/accounts/rights.ts';
import { type JsonObject, JsonText } from '../../src/domain/json/json.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { systemClock } from '../../src/domain/time/clock.ts';
import { isTaskId, KnownTasks, type TaskOnNode } from '../../src/protocol/known-tasks.ts';
import { codeOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('task memory');

const still = { ...systemClock, now: () => 0 };
const ANN = { owner: { id: 'ann' }, pathName: 't' };
const EVE = { owner: { id: 'eve' }, pathName: 't' };
const EVERYWHERE = { owner: { id: 'ann' }, pathName: undefined };

/** A log that asks; `answer` gives the answers of the other nodes to the questions so far. */
function asking() {
  const time = { nowMs: 0 };
  const log = new KnownTasks({ ...systemClock, now: () => time.nowMs });
  const asked: string[] = [];
  const pending: ((answers: readonly (TaskOnNode | undefined)[]) => void)[] = [];
  log.setPeers({
    ask: ({ owner, pathName }, taskId) => {
      asked.push(`${owner.id} ${pathName} ${taskId}`);
      return new Promise((resolve) => pending.push(resolve));
    },
  });
  const answer = (...answers: readonly (TaskOnNode | undefined)[]) => {
    for (const resolve of pending.splice(0)) resolve(answers);
  };
  return { log, time, asked, answer };
}

const NOWHERE: TaskOnNode = { instances: [], isOthers: false };

test('asks the other nodes once about a task that did not begin here, and remembers where it is', async () => {
  const { log, asked, answer } = asking();
  const both = [log.untilKnown(ANN, '1'), log.untilKnown(ANN, '1')];
  answer(NOWHERE, { instances: ['one', 'two'], isOthers: false });
  await Promise.all(both);
  assert.equal([asked, log.instancesOf(ANN, '1')], [['ann t 1'], ['one', 'two']]);
  assert.is(log.untilKnown(ANN, '1'), undefined);
  log.begun(ANN, '2', 'one');
  assert.is(log.untilKnown(ANN, '2'), undefined);
  const everywhere = log.untilKnown(EVERYWHERE, '3');
  answer({ instances: ['u/one'], isOthers: false });
  await everywhere;
  assert.equal(log.lookUp(EVERYWHERE, '3'), { instances: ['u/one'], tools: [''], isOthers: false });
  assert.equal(log.lookUp({ ...EVE, pathName: 'u' }, '3'), { instances: [], tools: [], isOthers: true });
});

test('knows from another node that a task is one of other owners, also while a third node does not answer', async () => {
  const { log, asked, answer } = asking();
  const known = log.untilKnown(ANN, '1');
  answer(undefined, { instances: [], isOthers: true });
  await known;
  assert.equal([log.isRefused(ANN, '1'), log.isRefused(EVE, '1')], [true, false]);
  assert.equal([log.untilKnown(ANN, '1'), asked.length], [undefined, 1]);
});

test('learns the tool of a task from another node, and gives callers with rights to tools none of an unknown tool', async () => {
  const { log, answer } = asking();
  const limited = (...entries: string[]) => ({
    ...ANN,
    owner: { id: 'ann', tools: new ToolRights([entries]) },
  });
  const places = [
    { instances: ['one'], tools: ['slow'], isOthers: false },
    { instances: ['one'], isOthers: false }, // an earlier release
  ];
  const found = [];
  for (const [index, place] of places.entries()) {
    const taskId = String(index);
    const known = log.untilKnown(limited('t/slow'), taskId);
    answer(place);
    await known;
    for (const scope of [limited('t/slow'), limited('t/other'), ANN])
      found.push([log.instancesOf(scope, taskId).length, log.isRefused(scope, taskId)]);
    assert.is(log.untilKnown(limited('t/other'), taskId), undefined);
  }
  const [reached, refused] = [
    [1, false],
    [0, true],
  ];
  assert.equal(found, [reached, refused, reached, refused, refused, reached]);
  assert.equal(log.lookUp(ANN, '0'), { instances: ['one'], tools: ['slow'], isOthers: false });
});

test('asks again about an unknown task after a minute, and at once where a node did not answer', async () => {
  const { log, time, asked, answer } = asking();
  const ask = async (...answers: readonly (TaskOnNode | undefined)[]) => {
    const known = log.untilKnown(ANN, '1');
    answer(...answers);
    await known;
  };
  await ask(NOWHERE, undefined);
  await ask(NOWHERE, NOWHERE);
  assert.is(asked.length, 2);
  await ask(NOWHERE);
  time.nowMs = 59_999;
  await ask(NOWHERE);
  assert.is(asked.length, 2);
  time.nowMs = 60_000;
  await ask(NOWHERE);
  assert.equal([asked.length, log.isRefused(ANN, '1')], [3, false]);
});

test('asks about 64 tasks at a time at most, of one owner about a share of them, and refuses others', async () => {
  const { log, asked, answer } = asking();
  const share = 64 * LIMITS.ownerShare;
  const ask = (owner: string, id: number) => log.untilKnown({ owner: { id: owner }, pathName: 't' }, `${id}`);
  const all = Array.from({ length: share }, (_, id) => ask('ann', id));
  // Without an answer it would be unknown, and might be a task of another owner.
  assert.is(await codeOf(() => ask('ann', share)), 'QUEUE_FULL');
  for (let owner = 1; owner * share < 64; owner += 1)
    for (let id = 0; id < share; id += 1) all.push(ask(`owner ${owner}`, id));
  assert.equal([asked.length, await codeOf(() => ask('eve', 0))], [64, 'QUEUE_FULL']);
  answer(NOWHERE);
  await Promise.all(all);
  assert.ok(log.untilKnown(ANN, 'later'));
});

test('returns all instances that gave the owner the id, the latest last', () => {
  const memory = new KnownTasks(still);
  memory.begun(ANN, '1', 'one');
  memory.begun({ ...ANN, pathName: 'u' }, '1', 'one');
  memory.begun(EVERYWHERE, '1', 't/two');
  memory.begun(EVE, '1', 'three');
  assert.equal(memory.instancesOf(ANN, '1'), ['one', 'two']);
  assert.equal(memory.instancesOf(EVERYWHERE, '1'), ['t/one', 'u/one', 't/two']);
  assert.equal(memory.instancesOf(ANN, '2'), []);
});

test('knows the tasks that only other owners began, by template', () => {
  const memory = new KnownTasks(still);
  memory.begun(ANN, '1', 'one');
  const asked = [ANN, EVE, { ...EVE, pathName: 'u' }, { ...EVE, pathName: undefined }];
  const found = asked.map((scope) => memory.isRefused(scope, '1'));
  assert.equal(found, [false, true, false, true]);
  memory.begun(EVE, '1', 'one'); // this instance gave the id to both
  assert.equal([memory.isRefused(EVE, '1'), memory.instancesOf(EVE, '1')], [false, ['one']]);
});

test('knows a task by its template in a view, too, and gives a view those of its templates', () => {
  const views: Readonly<Record<string, readonly string[]>> = { desk: ['t', 'v'], counter: ['u'] };
  const memory = new KnownTasks(still, { templatesOf: (name) => views[name], hasTool: () => true });
  const [desk, counter] = [
    { ...ANN, pathName: 'desk' },
    { ...ANN, pathName: 'counter' },
  ];
  memory.begun(desk, '1', 't/one', 'slow');
  memory.begun(ANN, '2', 'one', 'slow');
  memory.begun(counter, '2', 'u/two', 'slow');
  const all = [ANN, EVERYWHERE, desk, counter];
  const found = (id: string) => all.map((scope) => memory.instancesOf(scope, id));
  assert.equal(found('1'), [['one'], ['t/one'], ['t/one'], []]);
  assert.equal(found('2'), [['one'], ['t/one', 'u/two'], ['t/one'], ['u/two']]);
  const others = all.map(({ pathName }) => memory.isRefused({ ...EVE, pathName }, '1'));
  assert.equal(others, [true, true, true, false]);
});

test('remembers 2,500 tasks of each user, without the least recently used ones', () => {
  const memory = new KnownTasks(still);
  memory.begun(EVE, 'hers', 'a');
  for (let number = 0; number < 2_500; number += 1) memory.begun(ANN, `${number}`, 'a');
  assert.equal(memory.instancesOf(ANN, '0'), ['a']);
  memory.begun(ANN, 'one more', 'a');
  assert.equal([memory.instancesOf(ANN, '0'), memory.instancesOf(ANN, '1')], [['a'], []]);
  assert.is(memory.isRefused(ANN, 'hers'), true);
});

test('counts the clients of a user together: 100 sign-ins of one user displace no task of another', () => {
  const memory = new KnownTasks(still);
  const signIn = (number: number) => ({ owner: { id: `grant:${number}@eve` }, pathName: 't' });
  memory.begun(ANN, 'task-1', 'one');
  for (let number = 0; number < 100; number += 1) memory.begun(signIn(number), 'task-2', 'two');
  assert.equal(memory.instancesOf(ANN, 'task-1'), ['one']);
  assert.is(memory.isRefused(signIn(0), 'task-1'), true);
  // Yet each of them has its own.
  memory.begun(signIn(1), 'task-3', 'two');
  assert.equal(memory.instancesOf(signIn(0), 'task-3'), []);
  assert.is(memory.isRefused(signIn(0), 'task-3'), true);
});

test('remembers the latest eight instances that gave the same id', () => {
  const memory = new KnownTasks(still);
  for (let number = 0; number < 9; number += 1) memory.begun(ANN, '1', `${number}`);
  assert.equal(memory.instancesOf(ANN, '1'), ['1', '2', '3', '4', '5', '6', '7', '8']);
});

test('the tasks of one client of a user are not forgotten for those of its other clients with the same id', () => {
  const memory = new KnownTasks(still);
  const signIn = (number: number) => ({ owner: { id: `grant:${number}@eve` }, pathName: 't' });
  for (let number = 0; number < 9; number += 1) memory.begun(signIn(number), '1', `i${number}`);
  assert.equal(memory.instancesOf(signIn(0), '1'), ['i0']);
});

test('does not remember an id that is too long', () => {
  const memory = new KnownTasks(still);
  for (const [length, isKept] of [
    [1_024, true],
    [1_025, false],
  ] as const) {
    const taskId = 'x'.repeat(length);
    memory.begun(ANN, taskId, 'one');
    assert.equal([isTaskId(taskId), memory.isRefused(EVE, taskId)], [isKept, isKept]);
  }
});

test('learns a task from a result that reports it as begun', () => {
  const isLearned = (taskId: string, result: JsonObject) => {
    const memory = new KnownTasks(still);
    memory.learn(ANN, JsonText.ofValue(result), 'one');
    return memory.instancesOf(ANN, taskId).length === 1;
  };
  assert.equal(
    [
      isLearned('1', { resultType: 'task', taskId: '1' }),
      isLearned('2', { task: { taskId: '2' } }),
      isLearned('3', { resultType: 'complete', taskId: '3' }),
      isLearned('4', { taskId: '4' }),
      isLearned('5', { resultType: 'task', taskId: 5 }),
      isLearned('6', { resultType: 'task', taskId: '6', text: 'x'.repeat(20_000) }),
    ],
    [true, true, false, false, false, false],
  );
});

test.run();
