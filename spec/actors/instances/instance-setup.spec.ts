// What the machine's table only names: the target of a probe, which back-off fits, what may be changed on the way.
// When each of them applies is in instance.machine.spec.ts and its neighbours.

import * as assert from 'uvu/assert';
import { probeInput } from '../../../src/actors/instances/instance-setup.ts';
import { suite } from '../../helpers/suite.ts';
import { CHILD, definition, type Harness, onHarness, settled } from './instance-harness.ts';

const test = suite('instance setup');
const check = onHarness(test);

/** The wait after the tenth opening that failed. */
async function longestWait(harness: Harness): Promise<number> {
  for (let round = 0; round < 10; round += 1) {
    harness.opener.last.fail();
    await settled();
    await harness.pass(1_000_000);
  }
  return harness.actor.getSnapshot().context.backOffMs;
}

const policy = { healthIntervalMs: 7_000, probeTimeoutMs: 1_234 };

check('does not probe without a session', async ({ actor }) => {
  assert.throws(() => probeInput(actor.getSnapshot().context), /without a session/);
});

for (const [kind, options, waitMs] of [
  ['an endpoint', definition(), 7_000],
  ['a program', CHILD, 30_000],
  ['an endpoint whose program the gateway runs', definition({ command: 'serve' }), 30_000],
] as const) {
  check(
    `waits at most ${waitMs / 1_000} s to open ${kind} again`,
    async (harness) => assert.is(await longestWait(harness), waitMs),
    { definition: options, policy },
  );
}

check('takes a new policy and a new definition in every state', async (harness) => {
  const change = (weight: number): void => {
    const { context } = harness.actor.getSnapshot();
    harness.ref.change({ ...harness.ref.definition, weight });
    harness.ref.govern({ ...context.policy, probeTimeoutMs: weight });
    const changed = harness.actor.getSnapshot();
    assert.equal([harness.ref.weight, changed.context.policy.probeTimeoutMs], [weight, weight]);
  };
  change(2);
  await harness.healthy();
  change(3);
  harness.ref.drain();
  change(4);
  harness.opener.transports[0]?.lose();
  await settled();
  change(5);
  assert.equal(harness.states, ['starting', 'healthy', 'draining']);
});

test.run();
