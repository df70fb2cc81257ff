// One instance takes the place of another: when it may open what the other had, what is told, what is left behind.
// Time is simulated.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { answers, definition, Harness, settled, silent } from '../helpers/failing-backend.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('fleet: successors');
const MANAGED = { endpoint: 'http://127.0.0.1:9/mcp', command: 'serve' };
let stage = new Harness();

test.before.each(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
  stage = new Harness();
});
test.after.each(() => {
  mock.timers.reset();
  return stage.close();
});

test('does not start a program before the old one has left its endpoint', async () => {
  const old = await stage.add('a', silent, { fields: MANAGED });
  const oldBackend = stage.backend('a');
  oldBackend.closesSlowly = true;
  stage.call('write');
  const successor = stage.fleet.add(definition('a', MANAGED));
  mock.timers.tick(10_000);
  oldBackend.last.result();
  await settled();
  assert.equal([old.state, successor.state, stage.backend('a')], ['draining', 'starting', oldBackend]);
  oldBackend.finishClosing();
  await settled();
  assert.equal([old.state, successor.state], ['stopped', 'healthy']);
  assert.is.not(stage.backend('a'), oldBackend);
});

test('waits for the one with its endpoint under any id, and for several in turn', async () => {
  await stage.add('a', silent, { fields: MANAGED });
  stage.call('write');
  const oldBackend = stage.backend('a');
  void stage.fleet.remove('t', 'a', 30_000);
  const second = stage.fleet.add(definition('b', MANAGED));
  const third = stage.fleet.add(definition('b', MANAGED));
  await settled();
  assert.equal([second.state, third.state, stage.backends.has('b')], ['stopped', 'starting', false]);
  oldBackend.last.result();
  await settled();
  assert.equal([third.state, stage.backends.has('b')], ['healthy', true]);
});

test('waits for nobody with another endpoint, or without a program', async () => {
  const http = { endpoint: MANAGED.endpoint };
  await stage.add('a', silent, { fields: MANAGED });
  await stage.add('b', silent, { fields: http });
  for (const instanceId of ['a', 'b']) stage.call('write', { instanceId });
  await stage.add('a', answers(), { fields: { ...MANAGED, endpoint: 'http://127.0.0.1:10/mcp' } });
  await stage.add('b', answers(), { fields: http });
  assert.equal([stage.ref('a').state, stage.ref('b').state], ['healthy', 'healthy']);
});

test('can be closed while one waits for its endpoint', async () => {
  await stage.add('a', silent, { fields: MANAGED });
  stage.call('write');
  const successor = stage.fleet.add(definition('a', MANAGED));
  const closed = stage.fleet.close(1_000);
  mock.timers.tick(1_000);
  await closed;
  assert.is(successor.state, 'stopped');
});

test('tells nothing of the old one once the new one has its id', async () => {
  await stage.add('a', silent);
  const running = stage.call('write');
  const oldBackend = stage.backend('a');
  await stage.add('a', silent);
  oldBackend.last.result();
  await running.end;
  await settled();
  assert.equal(lifeOf('a'), ['starting', 'healthy', 'draining', 'starting', 'healthy']);
});

test('tells the end of one in whose place nobody came', async () => {
  await stage.add('a', silent);
  await stage.fleet.remove('t', 'a', 0);
  assert.equal(lifeOf('a'), ['starting', 'healthy', 'draining', 'stopped']);
});

test('goes on telling of an id that is used again and again, and of the others', async () => {
  await stage.add('other', silent);
  for (let round = 0; round < 20; round += 1) {
    await stage.add('a', answers());
    assert.is(await stage.call('write', { instanceId: 'a' }).end, 'a');
    if (round % 2 === 0) await stage.fleet.remove('t', 'a', 0);
    await settled();
  }
  assert.equal([stage.ref('a').state, stage.ref('other').state], ['healthy', 'healthy']);
});

test.run();

function lifeOf(id: string): string[] {
  return stage.events.flatMap((event) =>
    'instanceId' in event && event.instanceId === id && event.type.startsWith('instance.')
      ? [event.type.slice('instance.'.length)]
      : [],
  );
}
