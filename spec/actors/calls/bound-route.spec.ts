// Calls on a route that is bound to one instance, through the conversation of one client: yet calls like any other.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { BoundRoute } from '../../../src/actors/calls/routes.ts';
import type { InstanceRef } from '../../../src/actors/instances/instance-ref.ts';
import type { ClientProfile } from '../../../src/domain/client.ts';
import { type Answer, isFinal } from '../../../src/domain/exchange.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import type { Upstream } from '../../../src/transports/transport.ts';
import { answers, Harness, listen, settled, silent, told, toolCall } from '../../helpers/failing-backend.ts';
import { suite } from '../../helpers/suite.ts';
import { openOwn } from '../instances/instance-harness.ts';

const test = suite('bound route: within a conversation');
let harness = new Harness();

test.before.each(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
  harness = new Harness({ callTimeoutMs: 5_000 });
});
test.after.each(() => {
  mock.timers.reset();
  return harness.close();
});

test('goes through the upstream, and is counted and told like any other', async () => {
  const { ref, upstream } = await opened();
  const call = within(ref, upstream);
  assert.equal([upstream.asked, harness.asked('a'), ref.inFlight], [['tools/call'], 0, 1]);
  mock.timers.tick(40);
  upstream.last.notify('notifications/progress');
  upstream.last.result();
  assert.is(await call.end, 'a');
  assert.is(call.answers.length, 2);
  assert.equal([ref.inFlight, ref.latencyMs, ref.snapshot(0).requests], [0, 40, 1]);
  assert.equal(
    harness.events.flatMap(({ type }) => (type.startsWith('exchange') ? [type] : [])),
    ['exchange.started', 'exchange.finished'],
  );
});

test('goes through the conversation of the instance itself when there is no other', async () => {
  const ref = await harness.add('a', answers());
  assert.is(await within(ref, undefined).end, 'a');
  assert.is(harness.asked('a'), 1);
});

test('lets the backend say that it has no such tool; so may a call that is balanced', async () => {
  const ref = await harness.add('a', answers());
  assert.is(await within(ref, undefined, 'nothing').end, 'a');
  assert.is(await harness.call('nothing', { looksUpTools: false }).end, 'a');
  assert.is(harness.asked('a'), 2);
  assert.equal(harness.asked('a', 'tools/list'), 1);
});

test('is refused, as not delivered, where the instance is not there for it', async () => {
  const { ref, upstream } = await opened();
  const refused = { code: 'BACKEND_UNAVAILABLE', delivered: 'no', retryAfterSeconds: 1 };
  const end = () => within(ref, upstream).end;
  ref.drain();
  assert.equal(told(await end()), refused);
  ref.resume();
  harness.backend('a').lose();
  await settled();
  assert.equal(told(await end()), refused);
  void harness.fleet.remove('t', 'a', 0);
  await settled();
  assert.equal(told(await end()), refused);
  harness.isAccepting = false;
  assert.equal(told(await end()), { code: 'SHUTTING_DOWN', delivered: 'no', retryAfterSeconds: 5 });
  assert.equal(upstream.asked, []);
});

test('what belongs to a call there is carried while the instance is drained, not when it is gone', async () => {
  const { ref, upstream } = await opened();
  const call = () => within(ref, upstream, 'write', { goesOn: true });
  ref.drain();
  const carried = call();
  upstream.last.result();
  assert.is(await carried.end, 'a');
  harness.backend('a').lose();
  await settled();
  const gone = { code: 'BACKEND_UNAVAILABLE', delivered: 'no', retryAfterSeconds: 1 };
  assert.equal(told(await call().end), gone);
});

test('is not repeated on another instance, nor on the successor of its own', async () => {
  const { ref, upstream } = await opened();
  await harness.add('b', answers());
  const call = within(ref, upstream, 'read');
  upstream.lose('exited with code 7');
  assert.equal(told(await call.end), { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' });
  assert.is(harness.asked('b'), 0);
});

test('the end of an upstream says nothing of its instance', async () => {
  const { ref, upstream } = await opened(answers());
  mock.timers.tick(LIMITS.promptedProbeMs);
  const call = within(ref, upstream);
  upstream.lose('exited with code 7');
  await call.end;
  await settled();
  assert.equal([ref.state, harness.asked('a', 'ping')], ['healthy', 0]);
  assert.is(await harness.call('write').end, 'a');
});

test('a call through an upstream that is too late has the instance probed', async () => {
  const { ref, upstream } = await opened(answers());
  const call = within(ref, upstream, 'write', { timeoutMs: 2_000 });
  mock.timers.tick(2_000);
  assert.equal(told(await call.end), { code: 'BACKEND_TIMEOUT', delivered: 'unknown' });
  await settled();
  assert.equal([upstream.last.isCancelled, harness.asked('a', 'ping'), ref.state], [true, 1, 'healthy']);
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

test('has no deadline but the longest while the client is asked, and a new one after its answer', async () => {
  const { ref, upstream } = await opened();
  const call = within(ref, upstream);
  upstream.last.ask('elicitation/create', { message: 'name?' });
  mock.timers.tick(60_000);
  const [question] = call.answers.map(({ event }: Answer) => event);
  if (question?.kind !== 'request') throw new Error('it was not asked');
  question.answer({ result: { action: 'decline' } });
  assert.equal(upstream.last.replies, [{ result: { action: 'decline' } }]);
  mock.timers.tick(4_999);
  assert.is(upstream.last.isOpen, true);
  mock.timers.tick(1);
  assert.equal(told(await call.end), { code: 'BACKEND_TIMEOUT', delivered: 'unknown' });
  const unanswered = within(ref, upstream);
  upstream.last.ask('roots/list');
  mock.timers.tick(LIMITS.callLongestMs);
  assert.equal(told(await unanswered.end), { code: 'BACKEND_TIMEOUT', delivered: 'unknown' });
  assert.not(unanswered.answers.some(({ event }) => isFinal(event)));
});

test.run();

/** A call of that tool at this instance only, and through the upstream if there is one. */
function within(
  ref: InstanceRef,
  upstream: Upstream | undefined,
  tool = 'write',
  { goesOn = false, timeoutMs = 5_000 } = {},
) {
  const request = toolCall(tool);
  const group = harness.fleet.group('t');
  const route = new BoundRoute(ref, request, { goesOn, upstream });
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
