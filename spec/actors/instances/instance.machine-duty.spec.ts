// What an instance is told to do: drain and resume, restart, leave. Calls in flight are waited for, new ones are still
// carried: the pool, not the instance, keeps them away.

import * as assert from 'uvu/assert';
import { LIMITS } from '../../../src/domain/limits.ts';
import { suite } from '../../helpers/suite.ts';
import { onHarness, settled } from './instance-harness.ts';

const test = suite('instance machine, duty');
const check = onHarness(test);

check('drains at once, and serves again at once', async (stage) => {
  await stage.healthy();
  stage.ref.drain();
  assert.is(stage.ref.state, 'draining');
  stage.ref.resume();
  assert.is(stage.ref.state, 'healthy');
  assert.equal(stage.states, ['starting', 'healthy', 'draining', 'healthy']);
});

check('lets its calls finish while it drains, and keeps its session', async (stage) => {
  const transport = await stage.healthy();
  const caller = stage.call();
  stage.ref.drain();
  await stage.pass(120_000);
  assert.equal([caller.ends, stage.ref.inFlight], [0, 1]);
  transport.exchanges[0]?.result();
  assert.equal([caller.ends, caller.error, stage.ref.inFlight], [1, undefined, 0]);
  assert.is(transport.isClosed, false);
});

check('carries a call that was given to it while it drains', async (stage) => {
  const transport = await stage.healthy();
  stage.ref.drain();
  const caller = stage.call();
  transport.last.result();
  assert.equal([caller.ends, caller.error], [1, undefined]);
});

check('comes back from draining as what it is by then', async (stage) => {
  const transport = await stage.healthy();
  stage.ref.drain();
  transport.lose();
  await settled();
  assert.is(stage.ref.state, 'draining');
  stage.ref.resume();
  assert.is(stage.ref.state, 'unhealthy');
});

check('opens a lost session again while it drains', async (stage) => {
  const transport = await stage.healthy();
  stage.ref.drain();
  transport.lose();
  await settled();
  await stage.pass(500);
  await stage.healthy();
  assert.is(stage.ref.state, 'draining');
  stage.ref.resume();
  assert.is(stage.ref.state, 'healthy');
});

check('restarts an idle instance at once: closes the session, opens a new one', async (stage) => {
  const transport = await stage.healthy();
  stage.ref.restart();
  assert.is(stage.ref.state, 'unhealthy');
  await settled();
  assert.equal([transport.isClosed, stage.opener.openings.length], [true, 2]);
  assert.is(stage.ref.state, 'starting');
  const told = { type: 'restarting', reason: 'it is restarted', delayMs: 0, isPlanned: true };
  assert.equal(stage.emissions.at(-1), told);
  await stage.healthy();
  assert.equal([stage.ref.state, stage.ref.snapshot(0).restarts], ['healthy', 1]);
});

check('waits for calls in flight before it restarts', async (stage) => {
  const transport = await stage.healthy();
  const callers = [stage.call(), stage.call()];
  stage.ref.restart();
  assert.is(stage.ref.state, 'draining');
  transport.exchanges[0]?.result();
  await stage.pass(10_000);
  assert.is(transport.isClosed, false);
  transport.exchanges[1]?.result();
  await settled();
  assert.equal(
    callers.map(({ ends, error }) => [ends, error]),
    [
      [1, undefined],
      [1, undefined],
    ],
  );
  assert.is(transport.isClosed, true);
  assert.is(stage.opener.openings.length, 2);
});

check('waits for them no longer than 30 s, and answers them', async (stage) => {
  const transport = await stage.healthy();
  const caller = stage.call();
  stage.ref.restart();
  await stage.pass(LIMITS.drainMs - 1);
  assert.equal([caller.ends, transport.isClosed], [0, false]);
  await stage.pass(1);
  assert.equal([caller.ends, caller.error?.delivered, transport.isClosed], [1, 'unknown', true]);
  assert.is(stage.ref.inFlight, 0);
});

check('restarts at once while it waits to open again, and waits anew', async (stage) => {
  for (let round = 1; round <= 5; round += 1) {
    stage.opener.last.fail();
    await settled();
    assert.is(stage.actor.getSnapshot().context.backOffMs, 500);
    stage.ref.restart();
    await settled(); // there may be processes of single clients: it waits for their end, which comes with the next turn
    assert.is(stage.opener.openings.length, round + 1);
  }
});

check('does not hold a restart by hand against the instance', async (stage) => {
  for (let round = 1; round <= 5; round += 1) {
    await stage.healthy();
    stage.ref.restart();
    await settled();
    assert.is(stage.opener.openings.length, round + 1);
  }
});

check('restarts once, however often it is told to', async (stage) => {
  const transport = await stage.healthy();
  stage.call();
  for (let time = 0; time < 3; time += 1) stage.ref.restart();
  transport.exchanges[0]?.result();
  await settled();
  await stage.pass(500);
  await stage.healthy();
  await stage.pass(10_000);
  assert.is(stage.opener.openings.length, 2);
});

check('lets the last word count: drain or resume calls a restart off', async (stage) => {
  const transport = await stage.healthy();
  const caller = stage.call();
  stage.ref.restart();
  stage.ref.drain();
  transport.exchanges[0]?.result();
  await settled();
  assert.equal([stage.ref.state, transport.isClosed, caller.error], ['draining', false, undefined]);
  stage.call();
  stage.ref.restart();
  stage.ref.resume();
  await stage.pass(LIMITS.drainMs);
  assert.equal([stage.ref.state, transport.isClosed], ['healthy', false]);
});

check('leaves at once when it carries nothing', async (stage) => {
  const transport = await stage.healthy();
  stage.ref.leave(60_000);
  assert.is(stage.ref.state, 'draining');
  await settled();
  assert.equal([stage.ref.state, transport.isClosed], ['stopped', true]);
});

check('leaves when its last call ended', async (stage) => {
  const transport = await stage.healthy();
  const caller = stage.call();
  stage.ref.leave(60_000);
  await stage.pass(59_999);
  assert.equal([stage.ref.state, transport.isClosed], ['draining', false]);
  transport.exchanges[0]?.result();
  await settled();
  assert.equal([stage.ref.state, transport.isClosed, caller.error], ['stopped', true, undefined]);
});

check('leaves after the time it was given, and answers what is left', async (stage) => {
  const transport = await stage.healthy();
  const caller = stage.call();
  stage.ref.leave(2_000);
  await stage.pass(1_999);
  assert.equal([stage.ref.state, caller.ends], ['draining', 0]);
  await stage.pass(1);
  assert.equal([stage.ref.state, transport.isClosed], ['stopped', true]);
  assert.equal(
    [caller.ends, caller.error?.code, caller.error?.delivered],
    [1, 'BACKEND_UNAVAILABLE', 'unknown'],
  );
});

check('lets calls finish within that time also when it was about to restart', async (stage) => {
  const transport = await stage.healthy();
  const caller = stage.call();
  stage.ref.restart();
  stage.ref.leave(60_000);
  await stage.pass(59_999);
  assert.equal([caller.ends, transport.isClosed], [0, false]);
  transport.exchanges[0]?.result();
  await settled();
  assert.equal([caller.error, stage.ref.state], [undefined, 'stopped']);
});

check('takes the newer time when it is told twice to leave', async (stage) => {
  await stage.healthy();
  const caller = stage.call();
  stage.ref.leave(60_000);
  await stage.pass(1_000);
  stage.ref.leave(0);
  await stage.pass(0);
  assert.equal([caller.ends, stage.ref.state], [1, 'stopped']);
});

check('does not come back once it leaves', async (stage) => {
  const transport = await stage.healthy();
  const caller = stage.call();
  stage.ref.leave(10_000);
  stage.ref.resume();
  stage.ref.restart();
  stage.ref.drain();
  assert.is(stage.ref.state, 'draining');
  await stage.pass(9_999);
  assert.equal([transport.isClosed, caller.ends], [false, 0]);
  await stage.pass(1);
  assert.is(stage.ref.state, 'stopped');
});

check('does not open a lost session again once it has left', async (stage) => {
  const transport = await stage.healthy();
  transport.closesSlowly = true;
  stage.ref.leave(0);
  await settled();
  assert.is(stage.ref.state, 'draining');
  transport.finishClosing();
  await stage.pass(60_000);
  assert.equal([stage.ref.state, stage.opener.openings.length], ['stopped', 1]);
});

check('waits for a call between two rounds before it leaves, as long as it was given', async (stage) => {
  const transport = await stage.healthy();
  const reservations = [stage.ref.reserve('ann').subscribe(), stage.ref.reserve('ann').subscribe()];
  stage.ref.leave(30_000);
  reservations[0]?.unsubscribe();
  await stage.pass(29_999);
  assert.equal([stage.ref.state, transport.isClosed], ['draining', false]);
  const caller = stage.call();
  reservations[1]?.unsubscribe();
  assert.is(transport.isClosed, false, 'it is in flight by now');
  transport.last.result();
  assert.equal([caller.ends, transport.isClosed], [1, true]);
});

check('leaves without a call whose client does not answer', async (stage) => {
  const transport = await stage.healthy();
  let isOver = false;
  stage.ref.reserve('ann').subscribe({ complete: () => (isOver = true) });
  stage.ref.leave(1_000);
  await stage.pass(999);
  assert.equal([isOver, transport.isClosed], [false, false]);
  await stage.pass(1);
  assert.equal([isOver, transport.isClosed, stage.ref.state], [true, true, 'stopped']);
});

check(
  'waits with a restart for a call between two rounds, and no longer than for one in flight',
  async (stage) => {
    await stage.healthy();
    const reservation = stage.ref.reserve('ann').subscribe();
    stage.ref.restart();
    assert.is(stage.ref.state, 'draining');
    reservation.unsubscribe();
    await settled();
    const transport = await stage.healthy();
    stage.ref.reserve('ann').subscribe();
    stage.ref.drain();
    stage.ref.restart();
    await stage.pass(LIMITS.drainMs - 1);
    assert.is(transport.isClosed, false);
    await stage.pass(1);
    assert.is(transport.isClosed, true);
  },
);

test.run();
