// One instance takes the place of another: when it may open what the other had, what is told, what is left behind.
// Time is simulated.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { answers, definition, Harness, settled, silent } from '../helpers/failing-backend.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('fleet: successors');
const MANAGED = { endpoint: 'http://127.0.0.1:9/mcp', command: 'serve' };
let harness = new Harness();

test.before.each(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
  harness = new Harness();
});
test.after.each(() => {
  mock.timers.reset();
  return harness.close();
});

test('does not start a program before the old one has left its endpoint', async () => {
  const old = await harness.add('a', silent, { fields: MANAGED });
  const oldBackend = harness.backend('a');
  oldBackend.closesSlowly = true;
  harness.call('write');
  const successor = harness.fleet.add(definition('a', MANAGED));
  mock.timers.tick(10_000);
  oldBackend.last.result();
  await settled();
  assert.equal([old.state, successor.state, harness.backend('a')], ['draining', 'starting', oldBackend]);
  oldBackend.finishClosing();
  await settled();
  assert.equal([old.state, successor.state], ['stopped', 'healthy']);
  assert.is.not(harness.backend('a'), oldBackend);
});

test('waits for the one with its endpoint under any id, and for several in turn', async () => {
  await harness.add('a', silent, { fields: MANAGED });
  harness.call('write');
  const oldBackend = harness.backend('a');
  void harness.fleet.remove('t', 'a', 30_000);
  const second = harness.fleet.add(definition('b', MANAGED));
  const third = harness.fleet.add(definition('b', MANAGED));
  await settled();
  assert.equal([second.state, third.state, harness.backends.has('b')], ['stopped', 'starting', false]);
  oldBackend.last.result();
  await settled();
  assert.equal([third.state, harness.backends.has('b')], ['healthy', true]);
});

test('waits for nobody with another endpoint, or without a program', async () => {
  const http = { endpoint: MANAGED.endpoint };
  await harness.add('a', silent, { fields: MANAGED });
  await harness.add('b', silent, { fields: http });
  for (const instanceId of ['a', 'b']) harness.call('write', { instanceId });
  await harness.add('a', answers(), { fields: { ...MANAGED, endpoint: 'http://127.0.0.1:10/mcp' } });
  await harness.add('b', answers(), { fields: http });
  assert.equal([harness.ref('a').state, harness.ref('b').state], ['healthy', 'healthy']);
});

test('can be closed while one waits for its endpoint', async () => {
  await harness.add('a', silent, { fields: MANAGED });
  harness.call('write');
  const successor = harness.fleet.add(definition('a', MANAGED));
  const closed = harness.fleet.close(1_000);
  mock.timers.tick(1_000);
  await closed;
  assert.is(successor.state, 'stopped');
});

test('tells nothing of the old one once the new one has its id', async () => {
  await harness.add('a', silent);
  const running = harness.call('write');
  const oldBackend = harness.backend('a');
  await harness.add('a', silent);
  oldBackend.last.result();
  await running.end;
  await settled();
  assert.equal(lifeOf('a'), ['starting', 'healthy', 'draining', 'starting', 'healthy']);
});

test('tells the end of one in whose place nobody came', async () => {
  await harness.add('a', silent);
  await harness.fleet.remove('t', 'a', 0);
  assert.equal(lifeOf('a'), ['starting', 'healthy', 'draining', 'stopped']);
});

test('goes on telling of an id that is used again and again, and of the others', async () => {
  await harness.add('other', silent);
  for (let round = 0; round < 20; round += 1) {
    await harness.add('a', answers());
    assert.is(await harness.call('write', { instanceId: 'a' }).end, 'a');
    if (round % 2 === 0) await harness.fleet.remove('t', 'a', 0);
    await settled();
  }
  assert.equal([harness.ref('a').state, harness.ref('other').state], ['healthy', 'healthy']);
});

test.run();

function lifeOf(id: string): string[] {
  return harness.events.flatMap((event) =>
    'instanceId' in event && event.instanceId === id && event.type.startsWith('instance.')
      ? [event.type.slice('instance.'.length)]
      : [],
  );
}
