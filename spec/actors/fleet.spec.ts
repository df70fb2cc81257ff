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
let stage = new Harness();

test.before.each(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
  stage = new Harness();
});
test.after.each(() => {
  mock.timers.reset();
  return stage.close();
});

test('finds instances by template and id, by server id, and all of them in order', async () => {
  stage.fleet.govern('s', DEFAULT_POLICY);
  const b = await stage.add('b', silent);
  const a = await stage.add('a', silent);
  const other = await stage.add('a', silent, { fields: { template: 's', serverId: 's.a' } });
  assert.equal(stage.fleet.templates, ['s', 't']);
  assert.equal(stage.fleet.refs('t'), [b, a]);
  assert.equal(stage.fleet.all(), [other, b, a]);
  assert.is(stage.fleet.get('t', 'a'), a);
  assert.is(stage.fleet.find('s', 'a'), other);
  assert.is(stage.fleet.byServerId('s.a'), other);
  assert.equal([stage.fleet.isServerIdTaken('a'), stage.fleet.isServerIdTaken('s.b')], [true, false]);
});

test('tells what becomes of conversations of single clients, of one that was replaced, too', async () => {
  const old = await stage.add('a', silent);
  const profile = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {} };
  await openOwn(old, profile, 'user:1');
  await stage.add('a', silent, { fields: { serverId: 'a.2' } });
  const about = {
    template: 't',
    instanceId: 'a',
    serverId: 'a',
    transport: 'in-process',
    principal: 'user:1',
  };
  assert.equal(
    [...stage.told('upstream.opened'), ...stage.told('upstream.ended')].map(({ atMs, ...fact }) => fact),
    [
      { type: 'upstream.opened', ...about },
      { type: 'upstream.ended', ...about, reason: 'closed by the gateway', isLost: false },
    ],
  );
});

test('says which of the two it does not know, the template or the instance', async () => {
  await stage.add('a', silent);
  assert.is(
    codeOf(() => stage.fleet.group('x')),
    'TEMPLATE_NOT_FOUND',
  );
  assert.is(
    codeOf(() => stage.fleet.get('x', 'a')),
    'TEMPLATE_NOT_FOUND',
  );
  assert.is(
    codeOf(() => stage.fleet.refs('x')),
    'TEMPLATE_NOT_FOUND',
  );
  assert.is(
    codeOf(() => stage.fleet.get('t', 'b')),
    'SERVER_NOT_FOUND',
  );
  assert.is(
    codeOf(() => stage.fleet.remove('t', 'b', 0)),
    'SERVER_NOT_FOUND',
  );
  assert.is(
    codeOf(() => stage.fleet.byServerId('b')),
    'SERVER_NOT_FOUND',
  );
  assert.is(
    codeOf(() => stage.fleet.add(definition('a', { template: 'x' }))),
    'TEMPLATE_NOT_FOUND',
  );
  assert.equal(
    [stage.fleet.find('x', 'a'), stage.fleet.find('t', 'b'), stage.fleet.has('x')],
    [undefined, undefined, false],
  );
});

test('serves templates and instances that are called like properties of every object', async () => {
  stage.fleet.govern('constructor', DEFAULT_POLICY);
  const ref = await stage.add('constructor', answers(), {
    fields: { template: 'constructor', serverId: 'constructor' },
  });
  assert.is(stage.fleet.byServerId('constructor'), ref);
  assert.is(stage.fleet.group('constructor').pool.pick(), ref);
});

test('replaces in place: the old one finishes its calls, the new one gets the new calls', async () => {
  const old = await stage.add('a', silent);
  const running = stage.call('write');
  const oldBackend = stage.backend('a');
  const successor = await stage.add('a', silent);
  assert.equal([old.state, successor.state], ['draining', 'healthy']);
  const next = stage.call('write');
  assert.equal([old.inFlight, successor.inFlight, stage.fleet.inFlight], [1, 1, 2]);
  stage.backend('a').last.result();
  assert.is(await next.end, 'a');
  oldBackend.last.result();
  assert.is(await running.end, 'a');
  await settled();
  assert.equal([old.state, oldBackend.isClosed, successor.state], ['stopped', true, 'healthy']);
  assert.equal(stage.fleet.group('t').pool.candidates, [successor]);
  assert.is(stage.fleet.byServerId('a'), successor);
});

test('ends the calls of one that was replaced after 30 s', async () => {
  const old = await stage.add('a', silent);
  const running = stage.call('write', { timeoutMs: 60_000 });
  await stage.add('a', silent);
  mock.timers.tick(29_999);
  assert.is(old.state, 'draining');
  mock.timers.tick(1);
  await settled();
  assert.equal(told(await running.end), { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' });
  assert.is(old.state, 'stopped');
});

test('takes an instance out at once and lets its calls finish', async () => {
  const ref = await stage.add('a', silent);
  const running = stage.call('write');
  let hasEnded = false;
  const removed = stage.fleet.remove('t', 'a', 30_000).then(() => {
    hasEnded = true;
  });
  assert.equal([stage.fleet.refs('t'), stage.fleet.group('t').pool.size, stage.fleet.inFlight], [[], 0, 1]);
  assert.equal(told(await stage.call('write').end), {
    code: 'NO_HEALTHY_INSTANCE',
    delivered: 'no',
    retryAfterSeconds: 2,
  });
  await settled();
  assert.is(hasEnded, false);
  stage.backend('a').last.result();
  assert.is(await running.end, 'a');
  await removed;
  assert.equal([ref.state, stage.fleet.inFlight, stage.backend('a').isClosed], ['stopped', 0, true]);
});

test('counts the calls whose client was asked something, those at an instance that leaves, too', async () => {
  await stage.add('a', silent);
  await stage.add('b', silent);
  const calls = [stage.call('write'), stage.call('write'), stage.call('write')];
  for (const id of ['a', 'b']) stage.backend(id).last.ask('elicitation/create');
  void stage.fleet.remove('t', 'a', 30_000);
  assert.equal([stage.fleet.inFlight, stage.fleet.unanswered], [3, 2]);
  for (const id of ['a', 'b']) for (const exchange of [...stage.backend(id).open]) exchange.result();
  await Promise.all(calls.map(({ end }) => end));
  assert.equal([stage.fleet.inFlight, stage.fleet.unanswered], [0, 0]);
});

test('can add an id again while the one that had it still leaves', async () => {
  await stage.add('a', silent);
  const running = stage.call('write');
  const first = stage.backend('a');
  const removed = stage.fleet.remove('t', 'a', 30_000);
  const successor = await stage.add('a', answers());
  assert.is(await stage.call('write').end, 'a');
  first.last.result();
  await Promise.all([running.end, removed]);
  assert.equal(stage.fleet.refs('t'), [successor]);
  assert.is(stage.fleet.byServerId('a'), successor);
  assert.is(await stage.call('write').end, 'a');
});

test('gives a new policy to the instances that are there and to those that come', async () => {
  await stage.add('a', silent);
  stage.fleet.govern('t', { ...DEFAULT_POLICY, healthIntervalMs: 1_000 });
  await stage.add('b', silent);
  for (let second = 0; second < 3; second += 1) {
    mock.timers.tick(1_000);
    await settled();
  }
  assert.ok(stage.asked('a', 'ping') >= 3, `a was probed ${stage.asked('a', 'ping')} times`);
  assert.ok(stage.asked('b', 'ping') >= 3, `b was probed ${stage.asked('b', 'ping')} times`);
});

test('tells which list of which template changed, and no more once it has closed', async () => {
  const heard: unknown[] = [];
  stage.fleet.listChanged$.subscribe({
    next: (change) => heard.push(change),
    complete: () => heard.push('completed'),
  });
  await stage.add('a', silent);
  for (const list of ['tools', 'prompts', 'resources', 'roots']) {
    stage.backend('a').tell(`notifications/${list}/list_changed`);
  }
  await stage.close();
  assert.equal(heard, [
    { template: 't', list: 'tools' },
    { template: 't', list: 'prompts' },
    { template: 't', list: 'resources' },
    'completed',
  ]);
  assert.is(stage.told('tools.changed').length, 1);
});

test('tells the life of an instance in order', async () => {
  const ref = await stage.add('a', silent);
  mock.timers.tick(30_000);
  await settled();
  stage.backend('a').tell('notifications/tools/list_changed');
  ref.drain();
  ref.resume();
  stage.backend('a').lose('exited with code 7');
  await settled();
  mock.timers.tick(500);
  await settled();
  await stage.fleet.remove('t', 'a', 0);
  assert.equal(
    stage.events.map(({ type }) => type),
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
  const [unhealthy] = stage.told('instance.unhealthy');
  assert.equal(unhealthy, {
    type: 'instance.unhealthy',
    atMs: unhealthy?.atMs,
    template: 't',
    instanceId: 'a',
    serverId: 'a',
    reason: 'exited with code 7',
    isPlanned: false,
  });
  assert.is(stage.told('instance.healthy')[0]?.era, 'legacy');
  assert.equal(
    stage.told('instance.restarting').map(({ reason, delayMs }) => [reason, delayMs]),
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
