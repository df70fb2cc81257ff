// The time of a call: its deadline; a silent call that may be repeated is sent to a second instance, too, and the first answer
// wins; an instance with silent calls is probed, and avoided when all its newest calls are silent. Time is simulated.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import type { OpenReport } from '../../../src/domain/calls/exchange.ts';
import { backendUnavailable } from '../../../src/domain/errors/backend-errors.ts';
import { GatewayError } from '../../../src/domain/errors/errors.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { type Clock, spreadClock, systemClock } from '../../../src/domain/time/clock.ts';
import { answers, errorView, Harness, type Script, silent } from '../../helpers/backends/harness.ts';
import { READ, toolCall } from '../../helpers/backends/profiles.ts';
import { suite } from '../../helpers/suite.ts';
import { pass, simulateTime } from '../../helpers/time/simulated-time.ts';
import { untimedScheduler } from '../../helpers/time/turns.ts';

const test = suite('call: time');
let harness = new Harness();

test.after.each(() => harness.close());
simulateTime(test, () => {
  harness = new Harness({ policy: { callTimeoutMs: 6_000 } });
});

const breaks: Script = (exchange) =>
  exchange.fail(backendUnavailable('it broke', { delivered: 'unknown', health: 'suspicious' }));

test('a repeatable call is hedged at a second instance after a third of its time, and the first answer wins', async () => {
  await addAll({ a: silent, b: silent });
  const call = harness.call('read');
  const { last: first } = harness.backend('a');
  mock.timers.tick(1_999);
  assert.is(harness.asked('b'), 0);
  mock.timers.tick(1);
  const { last: second } = harness.backend('b');
  const found = [first.isOpen, second.isOpen, harness.ref('a').activeCalls, harness.ref('b').activeCalls];
  assert.equal(found, [true, true, 1, 1]);
  second.result();
  assert.is(await call.end, 'b');
  assert.is(first.isCancelled, true);
  assert.equal(call.answers.length, 1);
  assert.equal(facts(), ['retried a BACKEND_TIMEOUT', 'finished a failed', 'finished b result']);
});

test('a call whose view loses its tool is neither hedged nor tried again', async () => {
  await addAll({ a: silent, b: silent });
  const inView = () => {
    const view = { hasTool: true };
    return { view, request: { ...toolCall('read'), view: 'v', mayBeSent: () => view.hasTool } };
  };
  const hedged = inView();
  const silentCall = harness.call(hedged.request);
  hedged.view.hasTool = false;
  mock.timers.tick(5_999);
  assert.is(harness.asked('b'), 0);
  mock.timers.tick(1);
  assert.is(Object(await silentCall.end).code, 'BACKEND_TIMEOUT');
  for (const [delivered, code] of [
    ['no', 'TOOL_NOT_FOUND'],
    ['unknown', 'BACKEND_UNAVAILABLE'],
  ] as const) {
    const retried = inView();
    const call = harness.call(retried.request);
    retried.view.hasTool = false;
    const [asked] = ['a', 'b'].filter((id) => harness.backend(id).open.length > 0);
    harness.backend(asked ?? '').last.fail(backendUnavailable('it broke', { delivered }));
    assert.is(Object(await call.end).code, code);
  }
});

test('a hedge that the server refuses for the request itself ends the call, as its last event', async () => {
  await addAll({ a: silent, b: silent });
  const call = harness.call('read');
  mock.timers.tick(2_000);
  const refusal = { status: 413, waitMs: undefined };
  harness.backend('b').last.fail(backendUnavailable('answered 413', { delivered: 'yes', refusal }));
  await call.end;
  const ends = harness.events.flatMap((event) =>
    event.type === 'call.finished' || event.type === 'attempt.finished'
      ? [`${event.type} ${event.instanceId} ${event.outcome}`]
      : [],
  );
  assert.equal(ends, ['attempt.finished a cancelled', 'call.finished b failed']);
});

for (const [winner, ends] of [
  ['a', ['b failed', 'c cancelled', 'a result']],
  ['b', ['a failed', 'c cancelled', 'b result']],
  ['c', ['a failed', 'b failed', 'c result']],
] as const) {
  test(`a repeatable call that two instances do not answer is sent to a third one in its last third, and ${winner} answers`, async () => {
    await addAll({ a: silent, b: silent, c: silent, d: silent });
    const call = harness.call('read');
    const [first, second, third, fourth] = ['a', 'b', 'c', 'd'].map((id) => () => {
      const { exchanges } = harness.backend(id);
      return exchanges.find(({ request }) => request.method === 'tools/call');
    });
    for (const waitMs of [2_000, 1_999]) mock.timers.tick(waitMs);
    assert.equal([second?.()?.isOpen, third?.()], [true, undefined]);
    for (const waitMs of [1, 1_999]) mock.timers.tick(waitMs);
    const sent = { a: first?.(), b: second?.(), c: third?.() };
    assert.equal([sent.a?.isOpen, sent.b?.isOpen, sent.c?.isOpen, fourth?.()], [true, true, true, undefined]);
    sent[winner]?.result();
    assert.is(await call.end, winner);
    for (const [id, exchange] of Object.entries(sent))
      assert.equal([exchange?.isCancelled, harness.ref(id).activeCalls], [id !== winner, 0]);
    assert.equal(
      facts().slice(2),
      ends.map((end) => `finished ${end}`),
    );
  });
}

test('a call is not hedged when it may not be repeated at one of the two instances', async () => {
  await harness.add('a', { script: silent, tools: [{ name: 'mixed' }] });
  await harness.add('b', { script: silent, tools: [{ ...READ, name: 'mixed' }] });
  for (let count = 0; count < 2; count += 1) harness.call('mixed');
  mock.timers.tick(5_999);
  assert.equal([harness.asked('a'), harness.asked('b')], [1, 1]);
});

test('the instance that sends the first message decides the call, even if it fails afterwards', async () => {
  await addAll({ a: silent, b: silent });
  const call = harness.call('read');
  mock.timers.tick(2_000);
  const { last } = harness.backend('a');
  last.notify('notifications/progress', { progress: 1 });
  assert.is(harness.backend('b').last.isCancelled, true);
  breaks(last);
  assert.equal(errorView(await call.end), { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' });
});

for (const [what, scripts, named] of [
  ['both are silent', { a: silent, b: silent }, 'a'],
  ['the second one breaks', { a: silent, b: breaks }, 'a'],
  ['the first one breaks', { a: breaks, b: silent }, 'b'],
  ['the first of three breaks', { a: breaks, b: silent, c: silent }, 'b'],
] as const) {
  test(`a timeout names the instance that was silent for longest: ${what}`, async () => {
    await addAll(scripts);
    const report: OpenReport = {};
    const call = harness.call({ method: 'tools/call', params: { name: 'read', arguments: {} }, report });
    for (let passedMs = 0; passedMs < 6_000; passedMs += 500) mock.timers.tick(500);
    const end = await call.end;
    assert.instance(end, GatewayError);
    const { code, facts } = end as GatewayError;
    assert.equal([code, facts.instanceId, report.sentTo?.id], ['BACKEND_TIMEOUT', named, named]);
  });
}

test('hedges of silent calls stay within the retry budget', async () => {
  await addAll({ a: silent });
  for (let call = 0; call < 40; call += 1) harness.call('read');
  mock.timers.tick(1_000);
  await harness.add('b', silent);
  mock.timers.tick(4_000);
  assert.equal([harness.asked('b'), harness.eventsOf('call.retried').length], [18, 18], '20 % of 40, and 10');
});

test('when one of two attempts fails, the other continues and a third instance is asked', async () => {
  await addAll({ a: silent, b: breaks, c: silent });
  const call = harness.call('read');
  mock.timers.tick(2_000);
  assert.equal([harness.asked('a'), harness.asked('b'), harness.asked('c')], [1, 1, 1]);
  harness.backend('a').last.result();
  assert.is(await call.end, 'a');
  assert.is(harness.backend('c').last.isCancelled, true);
});

test('when two attempts fail while the failure of a third one is handled, both count', async () => {
  await addAll({ a: silent, b: silent, c: breaks });
  const call = harness.call('read');
  mock.timers.tick(2_000);
  let retries = harness.eventsOf('call.retried').length;
  harness.onEvent = ({ type }) => {
    if (type !== 'call.retried') return;
    retries += 1;
    if (retries === 2)
      harness.backend('a').last.fail(backendUnavailable('it ended', { delivered: 'unknown' }));
  };
  harness.backend('b').last.fail(backendUnavailable('it ended', { delivered: 'unknown' }));
  assert.equal(errorView(await call.end), { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' });
  assert.equal(
    ['a', 'b', 'c'].map((id) => [harness.asked(id), harness.ref(id).activeCalls]),
    [
      [1, 0],
      [1, 0],
      [1, 0],
    ],
  );
});

test('time in the wait queue does not count as silence', async () => {
  await harness.add('a', silent);
  harness.fill('a');
  const call = harness.call({ method: 'resources/list' });
  mock.timers.tick(1_000);
  await harness.add('b', silent);
  await harness.add('c', silent);
  mock.timers.tick(1_500);
  const found = ['b', 'c'].map((id) => harness.asked(id, 'resources/list'));
  assert.equal(found, [1, 0]);
  mock.timers.tick(600);
  const seen = ['b', 'c'].map((id) => harness.asked(id, 'resources/list'));
  assert.equal(seen, [1, 1]);
  call.subscription.unsubscribe();
});

test('an ejected instance gets a repeatable call as a trial, and is readmitted when it answers', async () => {
  await addAll({ a: breaks, b: answers() });
  for (let time = 0; time < 10; time += 1) await harness.call('write').end;
  harness.rewrite('a', answers());
  const before = harness.asked('a');
  mock.timers.tick(5_000);
  assert.is(await harness.call('write').end, 'b');
  assert.is(await harness.call('read').end, 'a');
  assert.equal([before, harness.asked('a')], [5, 6]);
  const found = harness.eventsOf('instance.readmitted').map(({ instanceId }) => instanceId);
  assert.equal(found, ['a']);
});

test('a queued call does not take capacity that is yielded at an ejected instance', async () => {
  await addAll({ a: breaks, b: silent });
  for (let time = 0; time < 10; time += 1) harness.call('write', { timeoutMs: 60_000 });
  const [a, b] = [harness.ref('a'), harness.ref('b')];
  while (b.activeCalls < b.capacity) harness.call('write', { timeoutMs: 60_000 });
  const yielded: string[] = [];
  const { queue } = harness.fleet.templates.group('t');
  queue.addYielding({ target: a, yield: () => yielded.push('a') });
  const call = harness.call('write');
  queue.addYielding({ target: a, yield: () => yielded.push('a, later') });
  assert.equal([harness.eventsOf('instance.ejected').length, queue.length, yielded], [1, 1, []]);
  queue.addYielding({ target: b, yield: () => yielded.push('b') });
  assert.equal(yielded, ['b']);
  call.subscription.unsubscribe();
});

test('a call that is silent for 3 s has its instance probed, once', async () => {
  await addAll({ a: silent });
  harness.call('write', { timeoutMs: 25_000 });
  mock.timers.tick(2_900);
  assert.is(harness.asked('a', 'ping'), 0);
  for (let second = 0; second < 20; second += 1) {
    await pass(1_000);
  }
  assert.is(harness.asked('a', 'ping'), 1);
});

test('ends a call after the hard maximum, whatever progress it reports', async () => {
  await harness.add('a', silent);
  const call = harness.call('write');
  const { last } = harness.backend('a');
  for (let passedMs = 0; passedMs < LIMITS.callDefaultBoundMs; passedMs += 4_000) {
    assert.is(last.isOpen, true, `after ${passedMs} ms`);
    last.notify('notifications/progress', { progress: passedMs });
    mock.timers.tick(4_000);
  }
  assert.equal(errorView(await call.end), { code: 'BACKEND_TIMEOUT', delivered: 'unknown' });
  assert.is(last.isCancelled, true);
});

test('the hard maximum can be set, and a longer timeout counts instead of it', async () => {
  harness = new Harness({ maxCallMs: 1_000 });
  await harness.add('a', silent);
  const start = (timeoutMs: number) => {
    const { subscription } = harness.call('write', { timeoutMs });
    return { subscription, exchange: harness.backend('a').last };
  };
  const short = start(500);
  const long = start(3_000);
  const endless = start(Number.POSITIVE_INFINITY);
  for (const waitMs of [400, 400, 199]) {
    mock.timers.tick(waitMs);
    short.exchange.notify('notifications/progress', { progress: 1 });
  }
  const open = () => [short, long, endless].map(({ exchange }) => exchange.isOpen);
  assert.equal(open(), [true, true, true]);
  mock.timers.tick(1);
  assert.equal(open(), [false, true, true]);
  mock.timers.tick(1_999);
  assert.equal(open(), [false, true, true]);
  mock.timers.tick(1);
  assert.equal(open(), [false, false, true]);
  mock.timers.tick(LIMITS.callHardBoundMs - 3_001);
  assert.is(endless.subscription.closed, false);
  mock.timers.tick(1);
  assert.is(endless.subscription.closed, true);
});

test('the deadline includes time in the queue, where a timeout says that nothing was delivered', async () => {
  await harness.add('a', silent);
  harness.fill('a');
  const call = harness.call('write', { timeoutMs: 1_000 });
  mock.timers.tick(1_000);
  const expected = { code: 'BACKEND_TIMEOUT', delivered: 'no', retryAfterSeconds: 1 };
  assert.equal(errorView(await call.end), expected);
  assert.is(harness.fleet.templates.group('t').queue.length, 0);
  const found = harness.callsThat('refused').map(({ code }) => code);
  assert.equal(found, ['BACKEND_TIMEOUT']);
});

test('the deadline pauses until the client has answered the last open question', async () => {
  await harness.add('a', silent);
  const call = harness.call('write');
  const { last } = harness.backend('a');
  last.ask('roots/list');
  last.ask('roots/list');
  const [first, second] = call.answers.map(({ event }) => event);
  assert.ok(first?.kind === 'request' && second?.kind === 'request');
  mock.timers.tick(60_000);
  first.answer({ result: {} });
  first.answer({ result: {} });
  mock.timers.tick(60_000);
  second.answer({ result: {} });
  mock.timers.tick(5_999);
  assert.is(call.subscription.closed, false);
  mock.timers.tick(1);
  assert.equal(errorView(await call.end), { code: 'BACKEND_TIMEOUT', delivered: 'unknown' });
});

test('leaves no timer behind, however a call ends', async () => {
  const timers = new Set<() => void>();
  const global = spreadClock(untimedScheduler(), systemClock).alarm;
  const alarm: Clock['alarm'] = (waitMs, ring) => {
    const end = (): boolean => timers.delete(cancel);
    const cancelTimer = global(waitMs, () => end() && ring());
    const cancel = (): void => {
      if (end()) cancelTimer();
    };
    timers.add(cancel);
    return cancel;
  };
  harness = new Harness({ policy: { callTimeoutMs: 6_000 }, alarm });
  await addAll({ a: answers(), b: breaks });
  const before = timers.size;
  await harness.call('write').end;
  await harness.call('write', { instanceId: 'b' }).end;
  await harness.call('write', { instanceId: 'c' }).end;
  harness.rewrite('a', silent);
  harness.call('write').subscription.unsubscribe();
  mock.timers.tick(1_000); // the check for silent calls
  assert.is(timers.size, before);
});

test('the deadline counts from the arrival of the request', async () => {
  await harness.add('a', silent);
  const call = harness.call({ ...toolCall('write'), arrivedAtMs: Date.now() - 4_000 });
  mock.timers.tick(1_999);
  assert.is(call.subscription.closed, false);
  mock.timers.tick(1);
  assert.equal(errorView(await call.end), { code: 'BACKEND_TIMEOUT', delivered: 'unknown' });
});

test.run();

async function addAll(scripts: Readonly<Record<string, Script>>): Promise<void> {
  for (const [id, script] of Object.entries(scripts)) await harness.add(id, script);
}

/** The events of calls after they had begun. */
function facts(): string[] {
  return harness.events.flatMap((event) => {
    if (event.type === 'call.retried') return [`retried ${event.instanceId} ${event.code}`];
    if (event.type !== 'attempt.finished' && event.type !== 'call.finished') return [];
    return [`finished ${event.instanceId} ${event.outcome}`];
  });
}
