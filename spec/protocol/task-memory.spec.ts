// Which instance runs a task: the same one for its owner, wherever he asks, and none for others.

import { of } from 'rxjs';
import * as assert from 'uvu/assert';
import { ANONYMOUS } from '../../src/domain/account.ts';
import { type JsonObject, JsonText } from '../../src/domain/json.ts';
import { isTaskId, TaskMemory, taskIdIn } from '../../src/protocol/task-finder.ts';
import { suite } from '../helpers/suite.ts';
import { answered } from './listing-backends.ts';

const test = suite('task memory');

const ANN = { ownerId: 'ann', template: 't' };
const EVERYWHERE = { ownerId: 'ann', template: undefined };
const EVE = { ownerId: 'eve', template: 't' };

test('finds a task at the path of its template and at that of all, wherever it was begun', () => {
  const memory = new TaskMemory();
  memory.begun(ANN, '1', 'one');
  memory.begun(EVERYWHERE, '2', 't/two');
  assert.equal([memory.find(ANN, '1'), memory.find(EVERYWHERE, '1')], ['one', 't/one']);
  assert.equal([memory.find(ANN, '2'), memory.find(EVERYWHERE, '2')], ['two', 't/two']);
  assert.is(memory.find({ ...ANN, template: 'other' }, '1'), undefined);
});

test('tells templates apart that give one id, and means the last one where none is named', () => {
  const memory = new TaskMemory();
  memory.begun(ANN, '1', 'one');
  memory.begun({ ...ANN, template: 'u' }, '1', 'two');
  assert.equal(
    [memory.find(ANN, '1'), memory.find({ ...ANN, template: 'u' }, '1'), memory.find(EVERYWHERE, '1')],
    ['one', 'two', 'u/two'],
  );
});

test('knows that a task is somebody else’s, but not because somebody found it', () => {
  const memory = new TaskMemory();
  memory.begun(EVERYWHERE, '1', 't/one');
  memory.found(EVE, '2', 'one');
  assert.equal([memory.find(EVE, '1'), memory.isTaken('t', '1')], [undefined, true]);
  assert.equal([memory.find(EVE, '2'), memory.isTaken('t', '2')], ['one', false]);
});

test('knows an id at each instance that gave it, which may be another’s at each', () => {
  const memory = new TaskMemory();
  memory.begun(ANN, '1', 'one');
  memory.begun(EVE, '1', 'two');
  const others = (asker: typeof ANN) =>
    ['one', 'two', 'three'].filter((id) => memory.isOthers(asker, '1', id));
  assert.equal(
    [others(ANN), others(EVE), others({ ...ANN, ownerId: 'bob' })],
    [['two'], ['one'], ['one', 'two']],
  );
  memory.begun(EVE, '1', 'one'); // it gave the id to both
  assert.equal([others(ANN), others(EVE)], [['two'], []]);
  assert.is(memory.isOthers({ ...EVERYWHERE, ownerId: 'bob' }, '1', 't/one'), true);
});

test('what he found is his way no more once another one has begun it there', () => {
  const memory = new TaskMemory();
  memory.found(EVE, '1', 'one');
  memory.begun(ANN, '1', 'one');
  assert.equal([memory.find(EVE, '1'), memory.isOthers(EVE, '1', 'one')], [undefined, true]);
  memory.found(ANN, '1', 'one'); // takes nothing from who began it
  assert.equal([memory.find(ANN, '1'), memory.isOthers(EVE, '1', 'one')], ['one', true]);
});

test('learns of tasks that clients of the legacy era begin', () => {
  const memory = new TaskMemory();
  const hear = (result: JsonObject, asker = ANN) =>
    of(answered(result, 'one')).pipe(memory.following(asker)).subscribe();
  hear({ task: { taskId: '1', status: 'working' } });
  hear({ task: { taskId: 7 } });
  hear({ taskId: '2' });
  hear({ task: { taskId: '3' }, text: 'x'.repeat(20_000) });
  assert.equal(
    ['1', '2', '3'].map((taskId) => memory.find(ANN, taskId)),
    ['one', undefined, undefined],
  );
  assert.is(memory.isTaken('t', '1'), true);
});

test('remembers 10,000 tasks, and forgets the one that was not asked about for longest', () => {
  const memory = new TaskMemory();
  const all = { ...ANN, ownerId: ANONYMOUS.id };
  for (let number = 0; number < 10_000; number += 1) memory.begun(all, `${number}`, 'a');
  assert.is(memory.find(all, '0'), 'a');
  memory.begun(all, 'one more', 'a');
  assert.is(memory.size, 10_000);
  assert.equal([memory.find(all, '0'), memory.find(all, '1')], ['a', undefined]);
  assert.equal([memory.isTaken('t', '0'), memory.isTaken('t', '1')], [true, false]);
  const tooLong = 'x'.repeat(2_000);
  memory.begun(ANN, tooLong, 'a');
  assert.equal([isTaskId(tooLong), memory.find(ANN, tooLong)], [false, undefined]);
});

test('nobody makes it forget the tasks of another one', () => {
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

test('does not look up what is too long to be an id', () => {
  const memory = new TaskMemory();
  const taskId = 'x'.repeat(4_000_000);
  const beganMs = performance.now();
  for (let time = 0; time < 200; time += 1) {
    assert.is(memory.find(ANN, taskId + time), undefined);
    assert.is(memory.isTaken('t', taskId + time) || memory.isOthers(ANN, taskId + time, 'one'), false);
  }
  assert.ok(performance.now() - beganMs < 1_000); // 15 ms each when it is part of a key
});

test('reads the id of a task that a result says was begun', () => {
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

test('keeps nothing of an instance that has no template', () => {
  const memory = new TaskMemory();
  memory.begun(EVERYWHERE, '1', 'one');
  assert.is(memory.size, 0);
});

test('names all instances that gave its owner the id, the latest last', () => {
  const memory = new TaskMemory();
  memory.begun(ANN, '1', 'one');
  memory.begun({ ...ANN, template: 'u' }, '1', 'one');
  memory.begun(ANN, '1', 'two');
  memory.found(ANN, '1', 'three');
  memory.begun(EVE, '1', 'three');
  assert.equal(memory.all(ANN, '1'), ['one', 'two']);
  assert.equal(memory.all(EVERYWHERE, '1'), ['t/one', 'u/one', 't/two']);
  assert.equal([memory.all(ANN, '2'), memory.all(ANN, 'x'.repeat(2_000))], [[], []]);
});

test.run();
