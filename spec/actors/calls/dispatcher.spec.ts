// Who may call what, and the one promise of the dispatcher that all balancing rests on: choosing and counting are one
// synchronous block. What becomes of a single call is in call.spec.ts.

import * as assert from 'uvu/assert';
import type { StrategyName } from '../../../src/domain/policy.ts';
import { answers, fails, Harness, settled, silent, told } from '../../helpers/failing-backend.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('dispatcher');
const IDS = ['a', 'b', 'c', 'd'];
let harness = new Harness();

test.before.each(() => {
  harness = new Harness();
});
test.after.each(() => harness.close());

test('says when no instance is registered, or none can be called', async () => {
  const expected = { code: 'NO_HEALTHY_INSTANCE', delivered: 'no', retryAfterSeconds: 2 };
  assert.equal(told(await harness.call('write').end), expected);
  await harness.add('a', answers());
  await harness.add('b', answers());
  harness.ref('a').drain();
  harness.ref('b').drain();
  assert.equal(told(await harness.call('write').end), expected);
  assert.equal(refusals(), ['NO_HEALTHY_INSTANCE', 'NO_HEALTHY_INSTANCE']);
});

test('refuses every call once the gateway closes', async () => {
  await harness.add('a', answers());
  harness.isAccepting = false;
  assert.equal(told(await harness.call('write').end), {
    code: 'SHUTTING_DOWN',
    delivered: 'no',
    retryAfterSeconds: 5,
  });
  assert.is(harness.asked('a'), 0);
});

test('chooses and counts in one block: a burst is spread as if the calls came one by one', async () => {
  await govern('least_connections');
  for (const id of IDS) await harness.add(id, silent);
  for (let call = 0; call < 1_000; call += 1) harness.call('write');
  assert.equal(inFlight(), [250, 250, 250, 250]);
});

for (const [strategy, shares] of [
  ['round_robin', [25, 25, 25, 25]],
  ['least_connections', [25, 25, 25, 25]],
  ['weighted_round_robin', [10, 20, 30, 40]],
] as const) {
  test(`follows ${strategy}`, async () => {
    await govern(strategy);
    for (const [index, id] of IDS.entries()) {
      await harness.add(id, silent, { fields: { weight: index + 1 } });
    }
    for (let call = 0; call < 100; call += 1) harness.call('write');
    assert.equal(inFlight(), shares);
  });
}

test('leaves no instance out when half of them fail each call', async () => {
  await harness.add('a', fails('no'));
  await harness.add('b', answers());
  await harness.add('c', fails('no'));
  await harness.add('d', answers());
  const ends = await Promise.all(Array.from({ length: 100 }, () => harness.call('write').end));
  assert.equal([...new Set(ends)].sort(), ['b', 'd']);
  await settled();
  assert.equal(inFlight(), [0, 0, 0, 0]);
});

test.run();

function govern(strategy: StrategyName): Promise<void> {
  const closed = harness.close();
  harness = new Harness({ strategy });
  return closed;
}

function inFlight(): number[] {
  return harness.fleet.refs('t').map((ref) => ref.inFlight);
}

function refusals(): string[] {
  return harness.told('exchange.refused').map(({ code }) => code);
}
