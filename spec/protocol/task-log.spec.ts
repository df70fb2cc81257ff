// The memory of the instances that run tasks, and of their owners. Requests of clients about tasks are in
// modern/modern-tasks.spec.ts and gateway/mcp-tasks.spec.ts.

import * as assert from 'uvu/assert';
import { type JsonObject, JsonText } from '../../src/domain/json.ts';
import { isTaskId, TaskLog, taskIdIn } from '../../src/protocol/task-log.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('task memory');

const ANN = { owner: { id: 'ann' }, template: 't' };
const EVE = { owner: { id: 'eve' }, template: 't' };
const EVERYWHERE = { owner: { id: 'ann' }, template: undefined };

test('returns all instances that gave the owner the id, the latest last', () => {
  const memory = new TaskLog();
  memory.begun(ANN, '1', 'one');
  memory.begun({ ...ANN, template: 'u' }, '1', 'one');
  memory.begun(EVERYWHERE, '1', 't/two');
  memory.begun(EVE, '1', 'three');
  assert.equal(memory.instancesOf(ANN, '1'), ['one', 'two']);
  assert.equal(memory.instancesOf(EVERYWHERE, '1'), ['t/one', 'u/one', 't/two']);
  assert.equal(memory.instancesOf(ANN, '2'), []);
});

test('knows the tasks that only other owners began, by template', () => {
  const memory = new TaskLog();
  memory.begun(ANN, '1', 'one');
  const asked = [ANN, EVE, { ...EVE, template: 'u' }, { ...EVE, template: undefined }];
  const found = asked.map((scope) => memory.isOthers(scope, '1'));
  assert.equal(found, [false, true, false, true]);
  memory.begun(EVE, '1', 'one'); // this instance gave the id to both
  assert.equal([memory.isOthers(EVE, '1'), memory.instancesOf(EVE, '1')], [false, ['one']]);
});

test('remembers 2,500 tasks of each owner, without the least recently used ones', () => {
  const memory = new TaskLog();
  memory.begun(EVE, 'hers', 'a');
  for (let number = 0; number < 2_500; number += 1) memory.begun(ANN, `${number}`, 'a');
  assert.equal(memory.instancesOf(ANN, '0'), ['a']);
  memory.begun(ANN, 'one more', 'a');
  assert.equal([memory.instancesOf(ANN, '0'), memory.instancesOf(ANN, '1')], [['a'], []]);
  assert.is(memory.isOthers(ANN, 'hers'), true);
});

test('remembers the latest eight instances that gave the same id', () => {
  const memory = new TaskLog();
  for (let number = 0; number < 9; number += 1) memory.begun(ANN, '1', `${number}`);
  assert.equal(memory.instancesOf(ANN, '1'), ['1', '2', '3', '4', '5', '6', '7', '8']);
});

test('does not remember an id that is too long', () => {
  const memory = new TaskLog();
  for (const [length, isKept] of [
    [1_024, true],
    [1_025, false],
  ] as const) {
    const taskId = 'x'.repeat(length);
    memory.begun(ANN, taskId, 'one');
    assert.equal([isTaskId(taskId), memory.isOthers(EVE, taskId)], [isKept, isKept]);
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

test.run();
