import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { modernHarness, outcomeOf } from './modern-harness.ts';

const test = suite('modern tasks');
// Some searches here would not end by themselves.
test.before.each(() => mock.timers.enable({ apis: ['setTimeout', 'setInterval'] }));
test.after.each(() => mock.timers.reset());

const call = { name: 'slow', arguments: {} };
const task = (taskId: unknown) => ({ resultType: 'task', taskId, status: 'working' });

/** Where the latest request went. */
const where = (harness: ReturnType<typeof modernHarness>) => harness.backends.last.options.instanceId;

test('a task of another owner is unknown, and its backend is not asked', async () => {
  const harness = modernHarness();
  await harness.call('tools/call', call, task('1'), 'b');
  for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
    assert.is(outcomeOf(await harness.send(method, { taskId: '1' }, { owner: 'eve' })), '200 -32602');
  }
  assert.is(harness.backends.exchanges.length, 1);
  await harness.send('tasks/get', { taskId: '1' }, { owner: 'eve', template: 'another' });
  assert.equal([harness.backends.exchanges.length, where(harness)], [2, undefined]);
});

test("an id of another owner's task is searched for at other instances only, as ids may be given twice", async () => {
  const harness = modernHarness();
  harness.backends.instances = new Set(['a', 'b', 'c']);
  await harness.call('tools/call', call, task('1'), 'b');
  harness.backends.exchanges.splice(0);
  const reply = await harness.send('tasks/cancel', { taskId: '1' }, { owner: 'eve' });
  assert.equal(harness.backends.askedInstances, ['a', 'c']);
  for (const looking of harness.backends.exchanges.splice(0)) looking.refuse(-32602);
  assert.equal([harness.backends.askedInstances, outcomeOf(reply)], [[], '200 -32602']);
  await harness.send('tasks/cancel', { taskId: '1' }, { owner: 'bob' });
  harness.backends.exchanges[1]?.result({ resultType: 'complete', taskId: '1' }, 'c');
  assert.equal([harness.backends.last.request.method, where(harness)], ['tasks/cancel', 'c']);
});

test('a request about a task does not begin it, whatever the type of its result', async () => {
  const harness = modernHarness();
  await harness.call('tasks/get', { taskId: '1' }, task('1'), 'b', { owner: 'eve' });
  await harness.send('tasks/get', { taskId: '1' });
  assert.is(harness.backends.exchanges.length, 2);
  await harness.send('tasks/get', { taskId: '1' }, { owner: 'eve' });
  assert.is(where(harness), 'b');
});

test('after a fruitless search requests go to one instance for a while', async () => {
  const harness = modernHarness();
  harness.backends.instances = new Set(['a', 'b']);
  await harness.send('tasks/get', { taskId: '1' });
  const [one, other] = harness.backends.exchanges.slice();
  one?.refuse(-32602);
  other?.refuse(-32603);
  harness.backends.exchanges.splice(0);
  await harness.send('tasks/get', { taskId: '1' });
  assert.equal([harness.backends.exchanges.length, where(harness)], [1, undefined]);
});

test('a task that began at another node is searched for at every instance, once', async () => {
  const harness = modernHarness();
  harness.backends.instances = new Set(['a', 'b', 'c']);
  const reply = await harness.send('tasks/cancel', { taskId: '1' }, { meta: { own: 7 } });
  const looking = harness.backends.exchanges.splice(0);
  assert.equal(
    looking.map(({ request, params, options }) => [
      ...[request.method, params.taskId, Object(params._meta).own, options.instanceId],
    ]),
    ['a', 'b', 'c'].map((id) => ['tasks/get', '1', 7, id]),
  );
  looking[0]?.refuse(-32602);
  looking[1]?.result({ resultType: 'complete', taskId: '1', status: 'working' }, 'b');
  assert.is(looking[2]?.isCancelled, true);
  assert.equal([harness.backends.last.request.method, where(harness)], ['tasks/cancel', 'b']);
  harness.backends.last.result({ resultType: 'complete' }, 'b');
  assert.is(outcomeOf(reply), '200');
  await harness.send('tasks/get', { taskId: '1' });
  assert.equal([harness.backends.exchanges.length, where(harness)], [2, 'b']);
});

test('a task that no instance knows is unknown, and no instance is asked again', async () => {
  const harness = modernHarness();
  harness.backends.instances = new Set(['a', 'b', 'c']);
  const reply = await harness.send('tasks/get', { taskId: '1' });
  const [a, b, c] = harness.backends.exchanges.slice();
  for (const looking of [a, b]) looking?.refuse(-32602);
  assert.is(reply.isAnswered, false);
  c?.refuse(-32601);
  assert.equal([outcomeOf(reply), reply.log.instanceId], ['200 -32602', undefined]);
  const again = await harness.send('tasks/cancel', { taskId: '1' });
  assert.equal([outcomeOf(again), harness.backends.exchanges.length], ['200 -32602', 3]);
});

test('when no instance has tasks, one of them gets the request and answers that', async () => {
  const harness = modernHarness();
  harness.backends.instances = new Set(['a', 'b']);
  const reply = await harness.send('tasks/get', { taskId: '1' });
  for (const looking of harness.backends.exchanges.slice()) looking.refuse(-32601);
  assert.equal([harness.backends.exchanges.length, where(harness)], [3, undefined]);
  harness.backends.last.refuse(-32601);
  assert.match(outcomeOf(reply), / -32601$/);
});

test('there is no search with a single instance, or for a text that is not a task id', async () => {
  const harness = modernHarness();
  harness.backends.instances = new Set(['a']);
  await harness.send('tasks/get', { taskId: '1' });
  harness.backends.instances = new Set(['a', 'b']);
  await harness.send('tasks/get', { taskId: 'x'.repeat(2_000) });
  await harness.send('vendor/x', { taskId: '2' });
  assert.equal([harness.backends.exchanges.length, where(harness)], [3, undefined]);
});

test.run();
