// One instance and its sessions: when it serves, when it is lost, when it opens again.
// Probes are in instance.machine-health.spec.ts, drain and restart in -duty, the ways to its end in -end.

import * as assert from 'uvu/assert';
import type { InstanceEmission } from '../../../src/actors/instances/instance-setup.ts';
import { ewma } from '../../../src/balancing/health-score.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { suite } from '../../helpers/suite.ts';
import { CHILD, type Harness, onHarness, settled } from './instance-harness.ts';

const test = suite('instance machine');
const check = onHarness(test);

const openings = (harness: Harness) => () => harness.opener.openings.length;

/** How long each failed opening is waited for, one after the other. */
async function waits(harness: Harness, count: number): Promise<number[]> {
  const delays: number[] = [];
  for (let round = 0; round < count; round += 1) {
    harness.opener.last.fail();
    await settled();
    const told = harness.emissions.at(-1);
    const delayMs = told?.type === 'restarting' ? told.delayMs : Number.NaN;
    assert.ok(
      await harness.happensAfter(delayMs, openings(harness)),
      `opening ${round} is not after ${delayMs} ms`,
    );
    delays.push(delayMs);
  }
  return delays;
}

check('starts, and is healthy with the finished handshake', async (harness) => {
  assert.is(harness.ref.state, 'starting');
  await harness.healthy();
  assert.equal(harness.states, ['starting', 'healthy']);
  assert.is(harness.ref.reason, null);
  assert.is(harness.ref.era, 'legacy');
});

check('refuses what comes before the handshake is finished, as not delivered', async (harness) => {
  const caller = harness.call();
  assert.equal([caller.error?.code, caller.error?.delivered], ['BACKEND_UNAVAILABLE', 'no']);
  assert.is(caller.ends, 1);
  assert.is(harness.ref.inFlight, 0);
  const transport = await harness.healthy();
  assert.equal(transport.exchanges, []);
});

check('is unhealthy with the reason when the opening fails', async (harness) => {
  harness.opener.last.fail('connection refused');
  await settled();
  assert.is(harness.ref.state, 'unhealthy');
  assert.match(harness.ref.reason ?? '', 'connection refused');
  const caller = harness.call();
  assert.equal([caller.error?.code, caller.error?.delivered], ['BACKEND_UNAVAILABLE', 'no']);
  const { requests, errors, inFlight } = harness.ref.snapshot(0);
  assert.equal([requests, errors, inFlight], [1, 1, 0]);
});

check(
  'counts an opening that fails as a failed probe, and one that succeeds as a passed one',
  async (harness) => {
    await harness.pass(40);
    harness.opener.last.fail('connection refused');
    await settled();
    const failed = harness.ref.snapshot(0);
    assert.equal([failed.consecutiveFailures, failed.restarts, harness.ref.successRate], [1, 0, 0.8]);
    assert.is(failed.lastCheck, new Date(performance.timeOrigin + 40).toISOString());
    await harness.pass(500);
    await harness.pass(10);
    await harness.healthy();
    assert.equal([harness.ref.snapshot(0).consecutiveFailures, harness.ref.successRate], [0, ewma(0.8, 1)]);
    assert.equal(harness.emissions, [
      { type: 'probed', passed: false, durationMs: 40 },
      { type: 'restarting', reason: 'connection refused', delayMs: 500, isPlanned: false },
      { type: 'probed', passed: true, durationMs: 10 },
    ]);
  },
);

check('counts no opening that was called off', async (harness) => {
  harness.ref.restart();
  await settled();
  assert.equal([harness.ref.snapshot(0).consecutiveFailures, harness.ref.successRate], [0, 1]);
});

check(
  'opens a child again after 0.5 s, doubled up to 30 s',
  async (harness) => {
    assert.equal(await waits(harness, 9), [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
  },
  { definition: CHILD, policy: { healthIntervalMs: 3_000 } },
);

check(
  'opens an endpoint again after 0.5 s, doubled up to the interval of its probes',
  async (harness) => {
    assert.equal(await waits(harness, 5), [500, 1_000, 2_000, 3_000, 3_000]);
  },
  { policy: { healthIntervalMs: 3_000 } },
);

const drawn = [0, 0.999_999];
check(
  'spreads the waits between three and five quarters',
  async (harness) => assert.equal(await waits(harness, 2), [375, 1_250]),
  { definition: CHILD, random: () => drawn.shift() ?? 0.5 },
);

check('says why and when it opens again', async (harness) => {
  (await harness.healthy()).lose('exited with code 7');
  await settled();
  const expected: InstanceEmission[] = [
    { type: 'restarting', reason: 'exited with code 7', delayMs: 500, isPlanned: false },
  ];
  assert.equal(harness.emissions.slice(1), expected);
});

check('is unhealthy at once when its session is lost, and its calls are answered', async (harness) => {
  const transport = await harness.healthy();
  transport.closesSlowly = true;
  const caller = harness.call();
  transport.lose();
  await settled();
  assert.equal([caller.ends, caller.error?.delivered], [1, 'unknown']);
  assert.equal([harness.ref.state, harness.ref.reason], ['unhealthy', 'exited with code 7']);
  assert.equal([harness.ref.inFlight, harness.ref.tools, harness.ref.era], [0, undefined, null]);
  assert.is(harness.call().error?.delivered, 'no');
});

check('does not open again before the lost session is gone for good', async (harness) => {
  const transport = await harness.healthy();
  transport.closesSlowly = true;
  transport.lose();
  await harness.pass(20_000);
  assert.is(harness.opener.openings.length, 1);
  transport.finishClosing();
  await settled();
  assert.ok(await harness.happensAfter(500, openings(harness)));
  await harness.healthy();
  assert.equal([harness.ref.state, harness.ref.snapshot(0).restarts], ['healthy', 1]);
});

check('leaves a session behind whose closing never ends', async (harness) => {
  const transport = await harness.healthy();
  transport.closesSlowly = true;
  transport.lose();
  await settled();
  await harness.pass(LIMITS.drainMs);
  assert.ok(await harness.happensAfter(500, openings(harness)));
});

check('waits longer each time a session does not live long', async (harness) => {
  for (const waitMs of [500, 1_000, 2_000, 4_000]) {
    (await harness.healthy()).lose();
    await settled();
    assert.ok(await harness.happensAfter(waitMs, openings(harness)));
  }
});

check('forgives when a session lived for 60 s', async (harness) => {
  await waits(harness, 4);
  const transport = await harness.healthy();
  transport.onExchange = (probe) => probe.result();
  await harness.pass(30_000);
  await harness.pass(30_000);
  transport.lose();
  await settled();
  assert.equal(harness.emissions.at(-1), {
    type: 'restarting',
    reason: 'exited with code 7',
    delayMs: 500,
    isPlanned: false,
  });
  assert.ok(await harness.happensAfter(500, openings(harness)));
  assert.equal(await waits(harness, 3), [1_000, 2_000, 4_000]);
});

check('opens with the definition as it was changed', async (harness) => {
  harness.ref.change({ ...harness.ref.definition, weight: 9 });
  assert.is(harness.ref.weight, 9);
  await waits(harness, 1);
  assert.is(harness.opener.last.definition.weight, 9);
});

test.run();
