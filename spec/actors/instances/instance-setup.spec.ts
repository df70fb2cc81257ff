// What the machine's table only names: the target of a probe, which back-off fits, what may be changed on the way.
// When each of them applies is in instance.machine.spec.ts and its neighbours.

import * as assert from 'uvu/assert';
import { probeInput } from '../../../src/actors/instances/instance-setup.ts';
import { suite } from '../../helpers/suite.ts';
import { onHarness, settled } from './instance-harness.ts';

const test = suite('instance setup');
const check = onHarness(test);

check('does not probe without a session', async ({ actor }) => {
  assert.throws(() => probeInput(actor.getSnapshot().context), /without a session/);
});

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
