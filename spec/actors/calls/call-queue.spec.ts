// Calls that find all instances at capacity: they wait in the queue, and fail when no instance can take them any more.
// The queue itself is in wait-queue.spec.ts. Time is simulated.

import { mock } from 'node:test';
import { from } from 'rxjs';
import * as assert from 'uvu/assert';
import { MAX_QUEUED_PER_INSTANCE } from '../../../src/actors/instances/call-counter.ts';
import { TrafficCounts } from '../../../src/counts/traffic-counts.ts';
import { toolOf } from '../../../src/domain/calls/exchange.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import {
  answers,
  type Caller,
  codeOf,
  errorView,
  fails,
  Harness,
  silent,
  undelivered,
} from '../../helpers/backends/harness.ts';
import { toolCall } from '../../helpers/backends/profiles.ts';
import type { ScriptedExchange } from '../../helpers/backends/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { settled, simulateTime } from '../../helpers/time/simulated-time.ts';
import { passTurns, TurnCounter } from '../../helpers/time/turns.ts';

const test = suite('call: wait queue');
let harness = new Harness();

test.after.each(() => harness.close());
simulateTime(test, () => {
  harness = new Harness();
});

test('is sent synchronously when another call ends', async () => {
  await harness.add('a', silent);
  harness.fill('a');
  const call = harness.call('write');
  assert.is(waiting(), 1);
  finishOne('a');
  assert.equal([waiting(), harness.ref('a').activeCalls], [0, 256]);
  harness.backend('a').last.result();
  assert.is(await call.end, 'a');
});

test('takes over the capacity of a call that waits for its client, and that call still ends normally', async () => {
  await harness.add('a', silent);
  harness.fill('a');
  const call = harness.call('write');
  const [asking] = harness.backend('a').open;
  asking?.ask('elicitation/create');
  asking?.ask('roots/list');
  assert.equal([waiting(), harness.ref('a').activeCalls, harness.ref('a').calls.underWay], [0, 256, 257]);
  harness.backend('a').last.result();
  assert.equal([await call.end, harness.ref('a').activeCalls, harness.fleet.underWay], ['a', 255, 256]);
  asking?.result();
  assert.equal([harness.ref('a').activeCalls, harness.ref('a').calls.underWay], [255, 255]);
});

test('waits 5 s in total, even if an instance it has tried has capacity again', async () => {
  await harness.add('b', silent);
  harness.fill('b');
  await harness.add('a', silent);
  const call = harness.call('read');
  fails('unknown')(harness.backend('a').last);
  harness.fill('a');
  mock.timers.tick(4_000);
  finishOne('a');
  mock.timers.tick(1_000);
  assert.equal(errorView(await call.end), { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' });
  const [refused, ...others] = harness.callsThat('refused');
  const ends = harness.attempts().filter(({ call: number }) => number === refused?.call);
  assert.equal([refused?.code, refused?.waitMs, others], ['BACKEND_UNAVAILABLE', 5_000, []]);
  assert.equal(
    ends.map(({ attempt, isLast }) => [attempt, isLast]),
    [[1, false]],
    'it ended in line, not at its first instance',
  );
  const deps = { clock: systemClock, hasTemplate: () => true, hasView: () => true };
  const { waits } = new TrafficCounts(from(harness.events), deps).template('t') ?? {};
  assert.is(waits?.count, harness.attempts().length, 'each call has one wait');
});

test('does not exceed the capacity of an instance that is resumed with calls in flight', async () => {
  const ref = await harness.add('a', silent);
  harness.fill('a', 200);
  ref.drain();
  await harness.add('b', silent);
  harness.fill('b');
  for (let caller = 0; caller < 200; caller += 1) harness.call('write');
  ref.resume();
  assert.equal([ref.activeCalls, waiting()], [256, 144]);
});

test('fails at once when the instance that it names is drained', async () => {
  await harness.add('a', silent);
  await harness.add('b', answers());
  harness.fill('a');
  const call = harness.call('write', { instanceId: 'a' });
  harness.ref('a').drain();
  assert.equal(errorView(await call.end), undelivered('BACKEND_UNAVAILABLE'));
});

test('fails with SHUTTING_DOWN when the gateway closes while it waits', async () => {
  await harness.add('a', silent);
  harness.fill('a');
  const call = harness.call('write');
  harness.isAccepting = false;
  void harness.close();
  assert.equal(errorView(await call.end), { code: 'SHUTTING_DOWN', delivered: 'no', retryAfterSeconds: 5 });
});

test('is not sent after its deadline, even if its refusal frees capacity', async () => {
  await harness.add('a', silent);
  const [other] = harness.fill('a');
  const refused = harness.dispatcher.exchange('t', toolCall('write'), { timeoutMs: 1_000 });
  refused.subscribe({ error: () => other?.subscription.unsubscribe() });
  mock.timers.tick(1_000);
  assert.equal([harness.asked('a'), inFlight(), waiting()], [256, [255], 0]);
});

test('leaves the queue when its caller disconnects, and is reported as cancelled', async () => {
  await harness.add('a', silent);
  harness.fill('a');
  const call = harness.call('write');
  mock.timers.tick(1_000);
  call.subscription.unsubscribe();
  const found = harness.callsThat('cancelled').map(({ tool, waitMs }) => [tool, waitMs]);
  assert.equal(found, [['write', 1_000]]);
  assert.is(waiting(), 0);
  finishOne('a');
  mock.timers.tick(60_000);
  assert.is(harness.callsThat('refused').length, 0);
});

test('one owner may fill the capacity and the queue while no other owner calls', async () => {
  await harness.add('a', silent);
  for (let call = 0; call < 512; call += 1) callOf('ann');
  assert.equal([inFlight(), waiting()], [[256], 256]);
  assert.equal(errorView(await callOf('ann').end), undelivered('QUEUE_FULL'));
  assert.is(waiting(), MAX_QUEUED_PER_INSTANCE);
});

test('when one owner fills the capacity, others share the headroom, and none takes all of it', async () => {
  await harness.add('a', silent);
  for (let call = 0; call < 512; call += 1) callOf('ann');
  const taken = ['bob', 'cyd', 'dan', 'eve', 'fay', 'gil'].map((owner) => {
    const before = harness.ref('a').activeCalls;
    for (let call = 0; call < 32; call += 1) callOf(owner);
    return harness.ref('a').activeCalls - before;
  });
  assert.equal(taken, [16, 8, 4, 2, 1, 1]);
  assert.equal([harness.ref('a').activeCalls, waiting()], [256 + LIMITS.inFlightHeadroom, 256]);
});

for (const [what, at, seen] of [
  ['answered', (exchange: ScriptedExchange) => exchange.result(), 'a'],
  ['failed', fails('no'), 'BACKEND_UNAVAILABLE'],
] as const) {
  test(`empties a long queue whose calls are ${what} at once`, async () => {
    const ids = ['a', 'b', 'c', 'd'];
    let isBusy = true;
    for (const id of ids) await harness.add(id, (exchange) => (isBusy ? silent(exchange) : at(exchange)));
    for (const id of ids) harness.fill(id);
    const queued = ids.flatMap(() =>
      Array.from({ length: MAX_QUEUED_PER_INSTANCE }, () => harness.call('write')),
    );
    assert.is(waiting(), queued.length);
    isBusy = false;
    for (const id of ids) finishOne(id);
    await settled();
    assert.is(waiting(), 0);
    const ends = await Promise.all(queued.map(({ end }) => end));
    assert.equal([...new Set(ends.map(codeOf))], [seen]);
  });
}

for (const [what, fall] of [
  ['breaks', (id: string) => harness.backend(id).disconnect()],
  ['is drained', (id: string) => harness.ref(id).drain()],
  ['leaves', (id: string) => void harness.fleet.remove('t', id, 1_000)],
] as const) {
  test(`ends a few calls per turn of the event loop when every instance ${what}`, async () => {
    harness = new Harness({ perTurn: 5 });
    const ids = ['a', 'b'];
    for (const id of ids) await harness.add(id, silent);
    for (const id of ids) harness.fill(id);
    for (let call = 0; call < 500; call += 1) harness.call('write');
    await passTurns(200);
    assert.is(waiting(), 500);
    const ends = new TurnCounter();
    harness.onEvent = (event) => {
      if (event.type === 'call.finished') ends.note();
    };
    for (const id of ids) fall(id);
    await passTurns(500);
    assert.is(waiting(), 0);
    assert.is(ends.all, what === 'breaks' ? 1_012 : 500);
    assert.ok(ends.fullest <= 5, `${ends.fullest} in one turn`);
  });
}

test('a new call does not overtake those that wait for the capacity that became free', async () => {
  harness = new Harness({ perTurn: 1 });
  await harness.add('a', silent);
  harness.fill('a');
  const waitingCall = harness.call('write');
  finishOne('a');
  finishOne('a');
  const late = harness.call('read');
  await passTurns(20);
  const asked = harness
    .backend('a')
    .exchanges.slice(-2)
    .map(({ request }) => toolOf(request));
  assert.equal([waiting(), asked], [0, ['write', 'read']]);
  for (const { subscription } of [waitingCall, late]) subscription.unsubscribe();
});

test.run();

function callOf(caller: string): Caller {
  return harness.call({ ...toolCall('write'), callerId: caller }, { timeoutMs: 60_000 });
}

function finishOne(id: string): void {
  harness.backend(id).open[0]?.result();
}

function waiting(): number {
  return harness.fleet.templates.group('t').queue.length;
}

function inFlight(): number[] {
  return harness.fleet.templates.group('t').refs.map((ref) => ref.activeCalls);
}
