// An instance actor that breaks through a fault of ours: here, because the randomness it is given throws. Its callers
// are answered, its backend is closed, and it starts anew. Time is simulated.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { backendUnavailable } from '../../src/domain/error-catalogue.ts';
import { answers, Harness, settled, silent } from '../helpers/failing-backend.ts';
import type { ScriptedTransport } from '../helpers/scripted-transport.ts';
import { suite } from '../helpers/suite.ts';
import { openOwn } from './instances/instance-harness.ts';

const test = suite('fleet: crashes');
let harness = new Harness();

test.before.each(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
  harness = new Harness();
});
test.after.each(() => {
  mock.timers.reset();
  return harness.close();
});

test('starts the instance anew after half a second', async () => {
  const broken = await harness.add('a', answers());
  await crash('a');
  await tick(499);
  assert.is(harness.ref('a'), broken);
  await tick(1);
  assert.is(harness.ref('a').state, 'healthy');
  assert.is(await harness.call('write').end, 'a');
  assert.is(harness.fleet.byServerId('a'), harness.ref('a'));
});

test('says that it broke and why, without a stack', async () => {
  await harness.add('a', silent);
  await crash('a');
  const [fact, ...others] = harness.told('instance.crashed');
  assert.equal(others, []);
  assert.equal(fact, {
    type: 'instance.crashed',
    atMs: fact?.atMs,
    template: 't',
    instanceId: 'a',
    serverId: 'a',
    reason: 'no randomness',
  });
});

test('waits for what a program of its own left on the endpoint', async () => {
  await harness.add('a', answers(), { fields: { endpoint: 'http://127.0.0.1:9/mcp', command: 'serve' } });
  const backend = harness.backend('a');
  backend.closesSlowly = true;
  await crash('a');
  await tick(5_000);
  assert.equal([harness.ref('a').state, harness.backend('a')], ['starting', backend]);
  backend.finishClosing();
  await settled();
  assert.is(harness.ref('a').state, 'healthy');
});

for (const isLost of [false, true]) {
  const when = isLost ? ' while it waits for another shared one' : '';
  test(`ends the processes of single clients, and waits for that, of an actor that broke${when}`, async () => {
    const ref = await harness.add('a', silent, { fields: { transport: 'stdio', command: 'serve' } });
    const backend = harness.backend('a');
    backend.ownStandsAlone = true;
    await openOwn(ref, PROFILE);
    const [own] = backend.upstreams;
    assert.ok(own);
    own.closesSlowly = true;
    if (isLost) await breakInWaiting(backend);
    else await crash('a');
    assert.equal([ref.state, own.isClosed], ['stopped', true]);
    let isClosed = false;
    const closed = harness.fleet.close(0).then(() => {
      isClosed = true;
    });
    await settled();
    assert.is(isClosed, false);
    own.finishClosing();
    await closed;
  });
}

test('leaves the other instances of the template alone', async () => {
  await harness.add('a', silent);
  const other = await harness.add('b', answers());
  await crash('a');
  assert.is(other.state, 'healthy');
  assert.is(await harness.call('write').end, 'b');
});

test('does not start it anew when it was replaced or taken out meanwhile', async () => {
  await harness.add('a', silent);
  await harness.add('b', silent);
  await crash('a');
  await crash('b');
  const successor = await harness.add('a', answers());
  await harness.fleet.remove('t', 'b', 0);
  await tick(10_000);
  assert.equal(harness.fleet.refs('t'), [successor]);
  assert.is(successor.state, 'healthy');
});

test('does not start it anew once the fleet is closed', async () => {
  await harness.add('a', silent);
  await crash('a');
  await harness.close();
  const before = harness.events.length;
  await tick(10_000);
  assert.is(harness.events.length, before);
});

test('survives an instance that breaks again and again', async () => {
  await harness.add('a', answers());
  for (let time = 0; time < 5; time += 1) {
    await crash('a');
    await tick(500);
    assert.is(await harness.call('write').end, 'a');
  }
});

test.run();

const PROFILE = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: {} };

/** A refused connection makes it unhealthy, and the back-off of an unhealthy instance asks for randomness. */
async function crash(id: string): Promise<void> {
  harness.random = () => {
    throw new Error('no randomness');
  };
  harness.backend(id).onExchange = (exchange) =>
    exchange.fail(backendUnavailable('connection refused', { delivered: 'no', unreachable: true }));
  await harness.call('write', { instanceId: id }).end;
  await settled();
  harness.random = () => 0.5;
}

/** The back-off of one whose session is lost asks for randomness, too. */
async function breakInWaiting(backend: ScriptedTransport): Promise<void> {
  harness.random = () => {
    throw new Error('no randomness');
  };
  backend.lose();
  await settled();
  harness.random = () => 0.5;
}

async function tick(ms: number): Promise<void> {
  mock.timers.tick(ms);
  await settled();
}
