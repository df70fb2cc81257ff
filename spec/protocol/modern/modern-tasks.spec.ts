import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { modernHarness } from './modern-harness.ts';

const test = suite('modern tasks');

const call = { name: 'slow', arguments: {} };
const task = (taskId: unknown) => ({ resultType: 'task', taskId, status: 'working' });

/** Where the latest request went. */
const where = (harness: ReturnType<typeof modernHarness>) => harness.backends.last.options.instanceId;

test('a request about a task does not begin it, whatever the type of its result', async () => {
  const harness = modernHarness();
  await harness.call('tasks/get', { taskId: '1' }, task('1'), 'b', { owner: 'eve' });
  for (const owner of ['ann', 'eve']) {
    await harness.send('tasks/get', { taskId: '1' }, { owner });
    assert.is(where(harness), undefined, owner);
  }
});

test('an unknown task, and a text that is not a task id, may go to any instance', async () => {
  const harness = modernHarness();
  await harness.call('tools/call', call, task('1'), 'b');
  await harness.send('tasks/get', { taskId: '1' });
  assert.is(where(harness), 'b');
  for (const [method, taskId] of [
    ['tasks/get', '2'],
    ['tasks/get', 'x'.repeat(2_000)],
    ['vendor/x', '1'],
  ] as const) {
    await harness.send(method, { taskId });
    assert.is(where(harness), undefined, method);
  }
});

test.run();
