// All instances of a gateway: found, replaced in place, taken out, told about. Crashes are in fleet-crash.spec.ts, the
// end in fleet-close.spec.ts. Time is simulated.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { GatewayError } from '../../src/domain/errors.ts';
import { DEFAULT_POLICY } from '../../src/domain/policy.ts';
import { answers, definition, Harness, settled, silent, told } from '../helpers/failing-backend.ts';
import { suite } from '../helpers/suite.ts';
import { openOwn } from './instances/instance-harness.ts';

const test = suite('fleet');
let harness = new Harness();

test.before.each(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
  harness = new Harness();
});
test.after.each(() => {
  mock.timers.reset();
  return harness.close();
});

test('finds instances by template and id, by server id, and all of them in order', async () => {
  harness.fleet.govern('s', DEFAULT_POLICY);
  const b = await harness.add('b', silent);
  const a = await harness.add('a', silent);
  const other = await harness.add('a', silent, { fields: { template: 's', serverId: 's.a' } });
  assert.equal(harness.fleet.templates, ['s', 't']);
  assert.equal(harness.fleet.refs('t'), [b, a]);
  assert.equal(harness.fleet.all(), [other, b, a]);
  assert.is(harness.fleet.get('t', 'a'), a);
  assert.is(harness.fleet.find('s', 'a'), other);
  assert.is(harness.fleet.byServerId('s.a'), other);
  assert.equal([harness.fleet.isServerIdTaken('a'), harness.fleet.isServerIdTaken('s.b')], [true, false]);
});

test('tells what becomes of conversations of single clients, of one that was replaced, too', async () => {
  const old = await harness.add('a', silent);
  const profile = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {} };
  await openOwn(old, profile, 'user:1');
  await harness.add('a', silent, { fields: { serverId: 'a.2' } });
  const about = {
    template: 't',
    instanceId: 'a',
    serverId: 'a',
    transport: 'in-process',
    principal: 'user:1',
  };
  assert.equal(
    [...harness.told('upstream.opened'), ...harness.told('upstream.ended')].map(({ atMs, ...fact }) => fact),
    [
      { type: 'upstream.opened', ...about },
      { type: 'upstream.ended', ...about, reason: 'closed by the gateway', isLost: false },
    ],
  );
});

test('says which of the two it does not know, the template or the instance', async () => {
  await harness.add('a', silent);
  assert.is(
    codeOf(() => harness.fleet.group('x')),
    'TEMPLATE_NOT_FOUND',
  );
  assert.is(
    codeOf(() => harness.fleet.get('x', 'a')),
    'TEMPLATE_NOT_FOUND',
  );
  assert.is(
    codeOf(() => harness.fleet.refs('x')),
    'TEMPLATE_NOT_FOUND',
  );
  assert.is(
    codeOf(() => harness.fleet.get('t', 'b')),
    'SERVER_NOT_FOUND',
  );
  assert.is(
    codeOf(() => harness.fleet.remove('t', 'b', 0)),
    'SERVER_NOT_FOUND',
  );
  assert.is(
    codeOf(() => harness.fleet.byServerId('b')),
    'SERVER_NOT_FOUND',
  );
  assert.is(
    codeOf(() => harness.fleet.add(definition('a', { template: 'x' }))),
    'TEMPLATE_NOT_FOUND',
  );
  assert.equal(
    [harness.fleet.find('x', 'a'), harness.fleet.find('t', 'b'), harness.fleet.has('x')],
    [undefined, undefined, false],
  );
});

test('serves templates and instances that are called like properties of every object', async () => {
  harness.fleet.govern('constructor', DEFAULT_POLICY);
  const ref = await harness.add('constructor', answers(), {
    fields: { template: 'constructor', serverId: 'constructor' },
  });
  assert.is(harness.fleet.byServerId('constructor'), ref);
  assert.is(harness.fleet.group('constructor').pool.pick(), ref);
});

test('replaces in place: the old one finishes its calls, the new one gets the new calls', async () => {
  const old = await harness.add('a', silent);
  const running = harness.call('write');
  const oldBackend = harness.backend('a');
  const successor = await harness.add('a', silent);
  assert.equal([old.state, successor.state], ['draining', 'healthy']);
  const next = harness.call('write');
  assert.equal([old.inFlight, successor.inFlight, harness.fleet.inFlight], [1, 1, 2]);
  harness.backend('a').last.result();
  assert.is(await next.end, 'a');
  oldBackend.last.result();
  assert.is(await running.end, 'a');
  await settled();
  assert.equal([old.state, oldBackend.isClosed, successor.state], ['stopped', true, 'healthy']);
  assert.equal(harness.fleet.group('t').pool.candidates, [successor]);
  assert.is(harness.fleet.byServerId('a'), successor);
});

test('ends the calls of one that was replaced after 30 s', async () => {
  const old = await harness.add('a', silent);
  const running = harness.call('write', { timeoutMs: 60_000 });
  await harness.add('a', silent);
  mock.timers.tick(29_999);
  assert.is(old.state, 'draining');
  mock.timers.tick(1);
  await settled();
  assert.equal(told(await running.end), { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' });
  assert.is(old.state, 'stopped');
});

test('takes an instance out at once and lets its calls finish', async () => {
  const ref = await harness.add('a', silent);
  const running = harness.call('write');
  let hasEnded = false;
  const removed = harness.fleet.remove('t', 'a', 30_000).then(() => {
    hasEnded = true;
  });
  assert.equal(
    [harness.fleet.refs('t'), harness.fleet.group('t').pool.size, harness.fleet.inFlight],
    [[], 0, 1],
  );
  assert.equal(told(await harness.call('write').end), {
    code: 'NO_HEALTHY_INSTANCE',
    delivered: 'no',
    retryAfterSeconds: 2,
  });
  await settled();
  assert.is(hasEnded, false);
  harness.backend('a').last.result();
  assert.is(await running.end, 'a');
  await removed;
  assert.equal([ref.state, harness.fleet.inFlight, harness.backend('a').isClosed], ['stopped', 0, true]);
});

test('counts the calls whose client was asked something, those at an instance that leaves, too', async () => {
  await harness.add('a', silent);
  await harness.add('b', silent);
  const calls = [harness.call('write'), harness.call('write'), harness.call('write')];
  for (const id of ['a', 'b']) harness.backend(id).last.ask('elicitation/create');
  void harness.fleet.remove('t', 'a', 30_000);
  assert.equal([harness.fleet.inFlight, harness.fleet.unanswered], [3, 2]);
  for (const id of ['a', 'b']) for (const exchange of [...harness.backend(id).open]) exchange.result();
  await Promise.all(calls.map(({ end }) => end));
  assert.equal([harness.fleet.inFlight, harness.fleet.unanswered], [0, 0]);
});

test('can add an id again while the one that had it still leaves', async () => {
  await harness.add('a', silent);
  const running = harness.call('write');
  const first = harness.backend('a');
  const removed = harness.fleet.remove('t', 'a', 30_000);
  const successor = await harness.add('a', answers());
  assert.is(await harness.call('write').end, 'a');
  first.last.result();
  await Promise.all([running.end, removed]);
  assert.equal(harness.fleet.refs('t'), [successor]);
  assert.is(harness.fleet.byServerId('a'), successor);
  assert.is(await harness.call('write').end, 'a');
});

test('gives a new policy to the instances that are there and to those that come', async () => {
  await harness.add('a', silent);
  harness.fleet.govern('t', { ...DEFAULT_POLICY, healthIntervalMs: 1_000 });
  await harness.add('b', silent);
  for (let second = 0; second < 3; second += 1) {
    mock.timers.tick(1_000);
    await settled();
  }
  assert.ok(harness.asked('a', 'ping') >= 3, `a was probed ${harness.asked('a', 'ping')} times`);
  assert.ok(harness.asked('b', 'ping') >= 3, `b was probed ${harness.asked('b', 'ping')} times`);
});

test('tells which list of which template changed, and no more once it has closed', async () => {
  const heard: unknown[] = [];
  harness.fleet.listChanged$.subscribe({
    next: (change) => heard.push(change),
    complete: () => heard.push('completed'),
  });
  await harness.add('a', silent);
  for (const list of ['tools', 'prompts', 'resources', 'roots']) {
    harness.backend('a').tell(`notifications/${list}/list_changed`);
  }
  await harness.close();
  assert.equal(heard, [
    { template: 't', list: 'tools' },
    { template: 't', list: 'prompts' },
    { template: 't', list: 'resources' },
    'completed',
  ]);
  assert.is(harness.told('tools.changed').length, 1);
});

test('tells the life of an instance in order', async () => {
  const ref = await harness.add('a', silent);
  mock.timers.tick(30_000);
  await settled();
  harness.backend('a').tell('notifications/tools/list_changed');
  ref.drain();
  ref.resume();
  harness.backend('a').lose('exited with code 7');
  await settled();
  mock.timers.tick(500);
  await settled();
  await harness.fleet.remove('t', 'a', 0);
  assert.equal(
    harness.events.map(({ type }) => type),
    [
      'instance.starting',
      'probe.finished',
      'instance.healthy',
      'probe.finished',
      'tools.changed',
      'instance.draining',
      'instance.healthy',
      'instance.unhealthy',
      'instance.restarting',
      'instance.starting',
      'probe.finished',
      'instance.healthy',
      'instance.draining',
      'instance.stopped',
    ],
  );
  const [unhealthy] = harness.told('instance.unhealthy');
  assert.equal(unhealthy, {
    type: 'instance.unhealthy',
    atMs: unhealthy?.atMs,
    template: 't',
    instanceId: 'a',
    serverId: 'a',
    reason: 'exited with code 7',
    isPlanned: false,
  });
  assert.is(harness.told('instance.healthy')[0]?.era, 'legacy');
  assert.equal(
    harness.told('instance.restarting').map(({ reason, delayMs }) => [reason, delayMs]),
    [['exited with code 7', 500]],
  );
});

test.run();

function codeOf(body: () => unknown): unknown {
  try {
    return body();
  } catch (thrown) {
    return thrown instanceof GatewayError ? thrown.code : thrown;
  }
}
