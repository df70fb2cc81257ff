// A caller may go away at any moment: what it started is cancelled, nothing is counted any more, no timer is left.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { Dispatcher } from '../../../src/actors/calls/dispatcher.ts';
import { RetryBudget } from '../../../src/actors/calls/retry.ts';
import { backendUnavailable } from '../../../src/domain/error-catalogue.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { answers, Harness, listen, settled, silent, toolCall } from '../../helpers/failing-backend.ts';
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
