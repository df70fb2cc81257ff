// A caller may go away at any moment: what it started is cancelled, nothing is counted any more, no timer is left.

import { mock } from 'node:test';
import { take } from 'rxjs';
import * as assert from 'uvu/assert';
import { Dispatcher } from '../../../src/actors/calls/dispatcher.ts';
import { RetryBudget } from '../../../src/actors/calls/retry.ts';
import { backendUnavailable } from '../../../src/domain/error-catalogue.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { answers, fails, Harness, listen, settled, silent, toolCall } from '../../helpers/failing-backend.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('call: cancelling');
let harness = new Harness();

test.before.each(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
  harness = new Harness();
});
test.after.each(() => {
  mock.timers.reset();
  return harness.close();
});

test('starts nothing before somebody subscribes, and once more for each who does', async () => {
  await harness.add('a', answers());
  const answers$ = harness.dispatcher.exchange('t', toolCall('write'));
  assert.is(harness.asked('a'), 0);
  assert.equal(await Promise.all([listen(answers$).end, listen(answers$).end]), ['a', 'a']);
  assert.is(harness.asked('a'), 2);
});

test('cancels on the backend when the caller goes before the answer', async () => {
  const ref = await harness.add('a', silent);
  const call = harness.call('write');
  assert.is(ref.inFlight, 1);
  call.subscription.unsubscribe();
  assert.is(ref.inFlight, 0);
  assert.is(harness.backend('a').last.isCancelled, true);
  await nothingIsLeft();
});

test('cancels when the caller goes after a notification', async () => {
  const ref = await harness.add('a', silent);
  const answers$ = harness.dispatcher.exchange('t', toolCall('write')).pipe(take(1));
  const caller = listen(answers$);
  harness.backend('a').last.notify('notifications/progress');
  assert.is(await caller.end, 'a');
  assert.is(ref.inFlight, 0);
  assert.is(harness.backend('a').last.isCancelled, true);
  await nothingIsLeft();
});

test('does not cancel what was answered already', async () => {
  await harness.add('a', answers());
  const call = harness.call('write');
  await call.end;
  call.subscription.unsubscribe();
  assert.is(harness.backend('a').last.isCancelled, false);
  await nothingIsLeft();
});

test('cancels the second try as well as the first', async () => {
  await harness.add('a', fails('no'));
  await harness.add('b', silent);
  const call = harness.call('write');
  assert.equal([harness.ref('a').inFlight, harness.ref('b').inFlight], [0, 1]);
  call.subscription.unsubscribe();
  assert.is(harness.backend('b').last.isCancelled, true);
  await nothingIsLeft();
});

test('starts no second try when the caller goes while it is told of it', async () => {
  await harness.add('a', silent);
  await harness.add('b', silent);
  const { fleet } = harness;
  const dispatcher = new Dispatcher({
    fleet,
    budget: new RetryBudget(Date.now),
    now: Date.now,
    alarm: () => () => undefined,
    emit: ({ type }) => type === 'exchange.retried' && call.subscription.unsubscribe(),
    isAccepting: () => true,
  });
  const call = listen(dispatcher.exchange('t', toolCall('write')));
  harness.backend('a').last.fail(backendUnavailable('it broke', { delivered: 'no' }));
  assert.equal([harness.asked('b'), harness.ref('a').inFlight, harness.ref('b').inFlight], [0, 0, 0]);
  await nothingIsLeft();
});

test('leaves the waiting line', async () => {
  await harness.add('a', silent);
  const others = Array.from({ length: LIMITS.inFlightPerInstance }, () => harness.call('write'));
  const call = harness.call('write');
  call.subscription.unsubscribe();
  assert.is(harness.fleet.group('t').queue.length, 0);
  for (const { subscription } of others) subscription.unsubscribe();
  assert.is(harness.asked('a'), 256);
  await nothingIsLeft();
});

test('does not run a tool whose caller goes while it is looked up', async () => {
  await harness.add('a', answers());
  harness.rewrite('a', answers(), [{ name: 'new' }]);
  mock.timers.tick(LIMITS.toolListAgeMs);
  const call = harness.call('new');
  call.subscription.unsubscribe();
  await settled();
  assert.equal([harness.asked('a', 'tools/list'), harness.asked('a')], [2, 0]);
  await nothingIsLeft();
});

test('can go while it is told of the answer', async () => {
  const ref = await harness.add('a', silent);
  let ends = 0;
  const subscription = harness.dispatcher.exchange('t', toolCall('write')).subscribe({
    next: () => subscription.unsubscribe(),
    error: () => {
      ends += 1;
    },
    complete: () => {
      ends += 1;
    },
  });
  harness.backend('a').last.result();
  assert.equal([ref.inFlight, ends], [0, 0]);
  assert.equal(
    harness.told('exchange.finished').map(({ outcome }) => outcome),
    ['result'],
  );
  await nothingIsLeft();
});

test('gives its place to the next in line', async () => {
  await harness.add('a', silent);
  const others = Array.from({ length: LIMITS.inFlightPerInstance }, () => harness.call('write'));
  harness.call('read');
  others[17]?.subscription.unsubscribe();
  assert.equal(harness.backend('a').last.request, toolCall('read'));
  assert.is(harness.ref('a').inFlight, 256);
});

test.run();

/** Long after: no deadline rang, nobody was asked, nothing is counted. */
async function nothingIsLeft(): Promise<void> {
  const before = harness.events.length;
  const asked = harness.fleet.refs('t').map(({ id }) => harness.asked(id));
  for (let minute = 0; minute < 11; minute += 1) {
    mock.timers.tick(60_000);
    await settled();
  }
  const after = harness.events.slice(before).filter(({ type }) => type.startsWith('exchange.'));
  assert.equal(after, []);
  assert.equal(
    harness.fleet.refs('t').map(({ id, inFlight }) => [harness.asked(id), inFlight]),
    asked.map((count) => [count, 0]),
  );
}
