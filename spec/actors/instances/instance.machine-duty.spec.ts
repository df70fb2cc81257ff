// What an instance is told to do: drain and resume, restart, leave. Calls in flight are waited for, new ones are still
// carried: the pool, not the instance, keeps them away.

import * as assert from 'uvu/assert';
import { LIMITS } from '../../../src/domain/limits.ts';
import { suite } from '../../helpers/suite.ts';
import { onHarness, settled } from './instance-harness.ts';

const test = suite('instance machine, duty');
const check = onHarness(test);

check('restarts an idle instance at once: closes the session, opens a new one', async (harness) => {
  const transport = await harness.healthy();
  harness.ref.restart();
  assert.is(harness.ref.state, 'unhealthy');
  await settled();
  assert.equal([transport.isClosed, harness.opener.openings.length], [true, 2]);
  assert.is(harness.ref.state, 'starting');
  const told = { type: 'restarting', reason: 'it is restarted', delayMs: 0, isPlanned: true };
  assert.equal(harness.emissions.at(-1), told);
  await harness.healthy();
  assert.equal([harness.ref.state, harness.ref.snapshot(0).restarts], ['healthy', 1]);
});

check('waits for them no longer than 30 s, and answers them', async (harness) => {
  const transport = await harness.healthy();
  const caller = harness.call();
  harness.ref.restart();
  await harness.pass(LIMITS.drainMs - 1);
  assert.equal([caller.ends, transport.isClosed], [0, false]);
  await harness.pass(1);
  assert.equal([caller.ends, caller.error?.delivered, transport.isClosed], [1, 'unknown', true]);
  assert.is(harness.ref.inFlight, 0);
});

check('restarts immediately during a back-off, and waits again', async (harness) => {
  for (let round = 1; round <= 5; round += 1) {
    harness.opener.last.fail();
    await settled();
    assert.is(harness.actor.getSnapshot().context.backOffMs, 500);
    harness.ref.restart();
    await settled(); // there may be processes of single clients: it waits for their end, which comes with the next turn
    assert.is(harness.opener.openings.length, round + 1);
  }
});

check('lets the last word count: drain or resume calls a restart off', async (harness) => {
  const transport = await harness.healthy();
  const caller = harness.call();
  harness.ref.restart();
  harness.ref.drain();
  transport.exchanges[0]?.result();
  await settled();
  assert.equal([harness.ref.state, transport.isClosed, caller.error], ['draining', false, undefined]);
  harness.call();
  harness.ref.restart();
  harness.ref.resume();
  await harness.pass(LIMITS.drainMs);
  assert.equal([harness.ref.state, transport.isClosed], ['healthy', false]);
});

check('uses the time limit of the latest command to leave', async (harness) => {
  await harness.healthy();
  const caller = harness.call();
  harness.ref.leave(60_000);
  await harness.pass(1_000);
  harness.ref.leave(0);
  await harness.pass(0);
  assert.equal([caller.ends, harness.ref.state], [1, 'stopped']);
});

check('waits for a call between two rounds before it leaves, as long as it was given', async (harness) => {
  const transport = await harness.healthy();
  const reservations = [harness.ref.reserve('ann').subscribe(), harness.ref.reserve('ann').subscribe()];
  harness.ref.leave(30_000);
  reservations[0]?.unsubscribe();
  await harness.pass(29_999);
  assert.equal([harness.ref.state, transport.isClosed], ['draining', false]);
  const caller = harness.call();
  reservations[1]?.unsubscribe();
  assert.is(transport.isClosed, false, 'it is in flight by now');
  transport.last.result();
  assert.equal([caller.ends, transport.isClosed], [1, true]);
});

check(
  'waits with a restart for a call between two rounds, and no longer than for one in flight',
  async (harness) => {
    await harness.healthy();
    const reservation = harness.ref.reserve('ann').subscribe();
    harness.ref.restart();
    assert.is(harness.ref.state, 'draining');
    reservation.unsubscribe();
    await settled();
    const transport = await harness.healthy();
    harness.ref.reserve('ann').subscribe();
    harness.ref.drain();
    harness.ref.restart();
    await harness.pass(LIMITS.drainMs - 1);
    assert.is(transport.isClosed, false);
    await harness.pass(1);
    assert.is(transport.isClosed, true);
  },
);

check('stops although the closing never ends', async (harness) => {
  const transport = await harness.healthy();
  transport.closesSlowly = true;
  harness.ref.leave(0);
  await harness.pass(LIMITS.drainMs - 1);
  assert.is(harness.ref.state, 'draining');
  await harness.pass(1);
  assert.is(harness.ref.state, 'stopped');
});

test.run();
