import * as assert from 'uvu/assert';
import { JsonText } from '../../src/domain/json.ts';
import type { ModernCall } from '../../src/protocol/modern-call.ts';
import { ModernTasks } from '../../src/protocol/modern-tasks.ts';
import { suite } from '../helpers/suite.ts';
import { ModernStagedBackends, modernStage, outcomeOf } from './modern-stage.ts';

const test = suite('modern tasks');

const call = { name: 'slow', arguments: {} };
const task = (taskId: unknown) => ({ resultType: 'task', taskId, status: 'working' });

/** Where the latest request went. */
const where = (stage: ReturnType<typeof modernStage>) => stage.backends.last.options.instanceId;

test('what is asked about a task goes to the instance that runs it', async () => {
  const stage = modernStage();
  assert.equal(await stage.call('tools/call', call, task('1'), 'b'), task('1'));
  for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel', 'vendor/x']) {
    await stage.send(method, { taskId: '1' });
    assert.is(where(stage), 'b', method);
  }
});

test('tasks of two clients may have one id', async () => {
  const stage = modernStage();
  await stage.call('tools/call', call, task('1'), 'b');
  await stage.call('tools/call', call, task('1'), 'c', { owner: 'bob' });
  await stage.send('tasks/get', { taskId: '1' });
  assert.is(where(stage), 'b');
  await stage.send('tasks/get', { taskId: '1' }, { owner: 'bob' });
  assert.is(where(stage), 'c');
});

test('a task of somebody else is none, and its backend is not asked', async () => {
  const stage = modernStage();
  await stage.call('tools/call', call, task('1'), 'b');
  for (const method of ['tasks/get', 'tasks/cancel', 'tasks/result']) {
    assert.is(outcomeOf(await stage.send(method, { taskId: '1' }, { owner: 'eve' })), '200 -32602');
  }
  assert.is(stage.backends.exchanges.length, 1);
  await stage.send('tasks/get', { taskId: '1' }, { owner: 'eve', template: 'another' });
  assert.equal([stage.backends.exchanges.length, where(stage)], [2, undefined]);
});

test('a task that nobody here knows may be anywhere', async () => {
  const stage = modernStage();
  await stage.call('tools/call', call, { resultType: 'complete', taskId: 'no task' }, 'b');
  await stage.call('tools/call', call, task(7), 'b');
  for (const taskId of ['no task', 7, '2']) {
    await stage.send('tasks/get', { taskId });
    assert.is(where(stage), undefined);
  }
});

test('remembers 10,000 tasks, and forgets the one that was not asked about for longest', () => {
  const tasks = new ModernTasks();
  const about = (taskId: string): ModernCall => ({
    id: 1,
    method: 'tasks/get',
    params: { taskId },
    envelope: {
      profile: { protocolVersion: 'v', capabilities: {}, clientInfo: {} },
      logRank: undefined,
      progressToken: undefined,
    },
    owner: { id: 'ann' },
    template: 't',
    backends: new ModernStagedBackends(),
  });
  const learn = (taskId: string) => tasks.learn(about(''), JsonText.ofValue(task(taskId)), 'a');
  for (let number = 0; number < 10_000; number += 1) learn(`${number}`);
  assert.ok(tasks.route(about('0')));
  learn('one more');
  assert.is(tasks.size, 10_000);
  assert.ok(tasks.route(about('0')));
  assert.is(tasks.route(about('1')), undefined);
  learn('x'.repeat(2_000));
  assert.is(tasks.route(about('x'.repeat(2_000))), undefined);
});

test.run();
