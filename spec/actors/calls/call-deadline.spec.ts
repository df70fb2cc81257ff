// The deadline of a call, and calls that are bound to one conversation.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { BoundRoute } from '../../../src/actors/calls/routes.ts';
import type { InstanceRef } from '../../../src/actors/instances/instance-ref.ts';
import type { ClientProfile } from '../../../src/domain/client.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import type { Upstream } from '../../../src/transports/transport.ts';
import { fails, Harness, listen, silent, told, toolCall } from '../../helpers/failing-backend.ts';
import { suite } from '../../helpers/suite.ts';
import { openOwn } from '../instances/instance-harness.ts';

const test = suite('call: deadline');
let harness = new Harness();

test.before.each(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
  harness = new Harness({ callTimeoutMs: 5_000 });
});
test.after.each(() => {
  mock.timers.reset();
  return harness.close();
});

test('ends a call after the hard maximum, whatever progress it reports', async () => {
  await harness.add('a', silent);
  const call = harness.call('write');
  const { last } = harness.backend('a');
  for (let passedMs = 0; passedMs < LIMITS.callLongestMs; passedMs += 4_000) {
    assert.is(last.isOpen, true, `after ${passedMs} ms`);
    last.notify('notifications/progress', { progress: passedMs });
    mock.timers.tick(4_000);
  }
  assert.equal(told(await call.end), { code: 'BACKEND_TIMEOUT', delivered: 'unknown' });
  assert.is(last.isCancelled, true);
});

test('does not count against the instance when the caller left in time', async () => {
  const ref = await harness.add('a', silent);
  harness.call('write').subscription.unsubscribe();
  assert.equal(
    harness.told('exchange.finished').map(({ outcome, isLast }) => [outcome, isLast]),
    [['cancelled', true]],
  );
  assert.is(harness.told('exchange.cancelled').length, 0);
  assert.is(ref.successRate, 1);
  assert.is(ref.snapshot(0).errors, 0);
});

test('counts the time in the queue, and reports then that nothing was delivered', async () => {
  await harness.add('a', silent);
  fill('a');
  const call = harness.call('write', { timeoutMs: 1_000 });
  mock.timers.tick(1_000);
  const expected = { code: 'BACKEND_TIMEOUT', delivered: 'no', retryAfterSeconds: 1 };
  assert.equal(told(await call.end), expected);
  assert.is(harness.fleet.group('t').queue.length, 0);
  assert.equal(
    harness.told('exchange.refused').map(({ code }) => code),
    ['BACKEND_TIMEOUT'],
  );
});

test('reports an unknown delivery when it had been sent to an instance before', async () => {
  await harness.add('b', silent);
  fill('b');
  await harness.add('a', silent);
  const call = harness.call('read', { timeoutMs: 1_000 });
  fails('unknown')(harness.backend('a').last);
  assert.is(harness.fleet.group('t').queue.length, 1);
  mock.timers.tick(1_000);
  assert.equal(told(await call.end), { code: 'BACKEND_TIMEOUT', delivered: 'unknown' });
});

test('waits in line when the instance is full, and goes through its upstream then', async () => {
  const { ref, upstream } = await opened();
  for (let place = 0; place < ref.capacity; place += 1) harness.call('write');
  const call = within(ref, upstream);
  assert.equal([upstream.asked, harness.fleet.group('t').queue.length], [[], 1]);
  harness.backend('a').open[0]?.result();
  assert.equal(upstream.asked, ['tools/call']);
  upstream.last.result();
  assert.is(await call.end, 'a');
});

test.run();

function fill(id: string): void {
  const { capacity } = harness.ref(id);
  for (let place = 0; place < capacity; place += 1) {
    harness.call('write', { instanceId: id, timeoutMs: 60_000 });
  }
}

/** A call of that tool at this instance only, and through the upstream if there is one. */
function within(
  ref: InstanceRef,
  upstream: Upstream | undefined,
  tool = 'write',
  { isContinuation = false, timeoutMs = 5_000 } = {},
) {
  const request = toolCall(tool);
  const group = harness.fleet.group('t');
  const route = new BoundRoute(ref, request, { isContinuation, upstream });
  const order = { group, request, route, wantedTool: undefined, timeoutMs };
  return listen(harness.dispatcher.carry('t', request, () => order));
}

const PROFILE: ClientProfile = { protocolVersion: '2025-11-25', capabilities: { roots: {} }, clientInfo: {} };

/** An instance whose own conversation is silent, with one for a client. */
async function opened(script = silent) {
  const ref = await harness.add('a', script);
  await openOwn(ref, PROFILE);
  const [upstream] = harness.backend('a').upstreams;
  if (upstream === undefined) throw new Error('nothing was opened');
  upstream.onExchange = undefined;
  return { ref, upstream };
}
