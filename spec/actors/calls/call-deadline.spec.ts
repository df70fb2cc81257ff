// How long one call may take: until the first answer, anew after progress, never longer than the hard maximum. Time is
// simulated and passes only when the spec says so.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { LIMITS } from '../../../src/domain/limits.ts';
import { answers, fails, Harness, settled, silent, told } from '../../helpers/failing-backend.ts';
import { suite } from '../../helpers/suite.ts';

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

test('ends a call that is not answered within the timeout of the template', async () => {
  const ref = await harness.add('a', silent);
  const call = harness.call('write');
  const { last } = harness.backend('a');
  mock.timers.tick(4_999);
  assert.is(ref.inFlight, 1);
  mock.timers.tick(1);
  assert.equal(told(await call.end), { code: 'BACKEND_TIMEOUT', delivered: 'unknown' });
  assert.is(ref.inFlight, 0);
  assert.is(last.isCancelled, true);
});

test('prefers the timeout of the caller to that of the template', async () => {
  await harness.add('a', silent);
  const call = harness.call('write', { timeoutMs: 100 });
  mock.timers.tick(100);
  const end = await call.end;
  assert.equal(told(end), { code: 'BACKEND_TIMEOUT', delivered: 'unknown' });
  assert.match(end instanceof Error ? end.message : end, '0.1 s');
});

test('starts the time anew at every notification', async () => {
  await harness.add('a', silent);
  const call = harness.call('write');
  const { last } = harness.backend('a'); // afterwards that is a probe: the call is silent for 3 s
  for (let step = 0; step < 10; step += 1) {
    mock.timers.tick(4_000);
    last.notify('notifications/progress', { progress: step });
  }
  mock.timers.tick(4_999);
  assert.is(last.isOpen, true);
  mock.timers.tick(1);
  assert.equal(told(await call.end), { code: 'BACKEND_TIMEOUT', delivered: 'unknown' });
  assert.is(call.answers.length, 10);
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

test('ends a silent call after the hard maximum when its timeout is longer', async () => {
  await harness.add('a', silent);
  const call = harness.call('write', { timeoutMs: 3_600_000 });
  const { last } = harness.backend('a');
  mock.timers.tick(LIMITS.callLongestMs - 1);
  assert.is(last.isOpen, true);
  mock.timers.tick(1);
  assert.equal(told(await call.end), { code: 'BACKEND_TIMEOUT', delivered: 'unknown' });
});

test('does not give a call that goes on to another instance more time', async () => {
  await harness.add('a', silent);
  await harness.add('b', silent);
  const call = harness.call('read');
  mock.timers.tick(3_000);
  fails('unknown')(harness.backend('a').last);
  const { last } = harness.backend('b');
  assert.is(last.request.method, 'tools/call');
  mock.timers.tick(2_000);
  assert.equal(told(await call.end), { code: 'BACKEND_TIMEOUT', delivered: 'unknown' });
  assert.is(last.isCancelled, true);
});

test('does not repeat a call that took too long', async () => {
  await harness.add('a', silent);
  await harness.add('b', answers());
  const call = harness.call('read');
  mock.timers.tick(5_000);
  assert.equal(told(await call.end), { code: 'BACKEND_TIMEOUT', delivered: 'unknown' });
  assert.is(harness.asked('b'), 0);
});

test('tells a timeout as a failure of the instance, with its code', async () => {
  const ref = await harness.add('a', silent);
  harness.call('write');
  mock.timers.tick(5_000);
  assert.equal(
    harness.told('exchange.finished').map(({ outcome, code, durationMs }) => [outcome, code, durationMs]),
    [['failed', 'BACKEND_TIMEOUT', 5_000]],
  );
  assert.is(harness.told('exchange.refused').length, 0);
  assert.ok(ref.successRate < 1);
  assert.is(ref.snapshot(0).errors, 1);
});

test('has an instance probed that let a call wait too long', async () => {
  await harness.add('a', silent);
  harness.call('write');
  mock.timers.tick(5_000);
  await settled();
  assert.is(harness.asked('a', 'ping'), 1);
  assert.is(harness.ref('a').state, 'healthy');
});

test('says nothing about the instance when the caller went away in time', async () => {
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

test('rings no more once the call was answered', async () => {
  await harness.add('a', answers());
  const call = harness.call('write');
  assert.is(await call.end, 'a');
  mock.timers.tick(20_000);
  assert.equal(
    harness.told('exchange.finished').map(({ outcome }) => outcome),
    ['result'],
  );
});

test('counts the time in the waiting line, and says then that nothing was delivered', async () => {
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

test('does not say so when it had been sent to an instance before', async () => {
  await harness.add('b', silent);
  fill('b');
  await harness.add('a', silent);
  const call = harness.call('read', { timeoutMs: 1_000 });
  fails('unknown')(harness.backend('a').last);
  assert.is(harness.fleet.group('t').queue.length, 1);
  mock.timers.tick(1_000);
  assert.equal(told(await call.end), { code: 'BACKEND_TIMEOUT', delivered: 'unknown' });
});

test.run();

function fill(id: string): void {
  const { capacity } = harness.ref(id);
  for (let place = 0; place < capacity; place += 1) {
    harness.call('write', { instanceId: id, timeoutMs: 60_000 });
  }
}
