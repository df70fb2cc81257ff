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

const openings = (stage: Harness) => () => stage.opener.openings.length;

/** How long each failed opening is waited for, one after the other. */
async function waits(stage: Harness, count: number): Promise<number[]> {
  const delays: number[] = [];
  for (let round = 0; round < count; round += 1) {
    stage.opener.last.fail();
    await settled();
    const told = stage.emissions.at(-1);
    const delayMs = told?.type === 'restarting' ? told.delayMs : Number.NaN;
    assert.ok(
      await stage.happensAfter(delayMs, openings(stage)),
      `opening ${round} is not after ${delayMs} ms`,
    );
    delays.push(delayMs);
  }
  return delays;
}

check('starts, and is healthy with the finished handshake', async (stage) => {
  assert.is(stage.ref.state, 'starting');
  await stage.healthy();
  assert.equal(stage.states, ['starting', 'healthy']);
  assert.is(stage.ref.reason, null);
  assert.is(stage.ref.era, 'legacy');
});

check('refuses what comes before the handshake is finished, as not delivered', async (stage) => {
  const caller = stage.call();
  assert.equal([caller.error?.code, caller.error?.delivered], ['BACKEND_UNAVAILABLE', 'no']);
  assert.is(caller.ends, 1);
  assert.is(stage.ref.inFlight, 0);
  const transport = await stage.healthy();
  assert.equal(transport.exchanges, []);
});

check('is unhealthy with the reason when the opening fails', async (stage) => {
  stage.opener.last.fail('connection refused');
  await settled();
  assert.is(stage.ref.state, 'unhealthy');
  assert.match(stage.ref.reason ?? '', 'connection refused');
  const caller = stage.call();
  assert.equal([caller.error?.code, caller.error?.delivered], ['BACKEND_UNAVAILABLE', 'no']);
  const { requests, errors, inFlight } = stage.ref.snapshot(0);
  assert.equal([requests, errors, inFlight], [1, 1, 0]);
});

check(
  'counts an opening that fails as a failed probe, and one that succeeds as a passed one',
  async (stage) => {
    await stage.pass(40);
    stage.opener.last.fail('connection refused');
    await settled();
    const failed = stage.ref.snapshot(0);
    assert.equal([failed.consecutiveFailures, failed.restarts, stage.ref.successRate], [1, 0, 0.8]);
    assert.is(failed.lastCheck, new Date(performance.timeOrigin + 40).toISOString());
    await stage.pass(500);
    await stage.pass(10);
    await stage.healthy();
    assert.equal([stage.ref.snapshot(0).consecutiveFailures, stage.ref.successRate], [0, ewma(0.8, 1)]);
    assert.equal(stage.emissions, [
      { type: 'probed', passed: false, durationMs: 40 },
      { type: 'restarting', reason: 'connection refused', delayMs: 500, isPlanned: false },
      { type: 'probed', passed: true, durationMs: 10 },
    ]);
  },
);

check('counts no opening that was called off', async (stage) => {
  stage.ref.restart();
  await settled();
  assert.equal([stage.ref.snapshot(0).consecutiveFailures, stage.ref.successRate], [0, 1]);
});

check(
  'opens a child again after 0.5 s, doubled up to 30 s',
  async (stage) => {
    assert.equal(await waits(stage, 9), [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
  },
  { definition: CHILD, policy: { healthIntervalMs: 3_000 } },
);

check(
  'opens an endpoint again after 0.5 s, doubled up to the interval of its probes',
  async (stage) => {
    assert.equal(await waits(stage, 5), [500, 1_000, 2_000, 3_000, 3_000]);
  },
  { policy: { healthIntervalMs: 3_000 } },
);

const drawn = [0, 0.999_999];
check(
  'spreads the waits between three and five quarters',
  async (stage) => assert.equal(await waits(stage, 2), [375, 1_250]),
  { definition: CHILD, random: () => drawn.shift() ?? 0.5 },
);

check('says why and when it opens again', async (stage) => {
  (await stage.healthy()).lose('exited with code 7');
  await settled();
  const expected: InstanceEmission[] = [
    { type: 'restarting', reason: 'exited with code 7', delayMs: 500, isPlanned: false },
  ];
  assert.equal(stage.emissions.slice(1), expected);
});

check('is unhealthy at once when its session is lost, and its calls are answered', async (stage) => {
  const transport = await stage.healthy();
  transport.closesSlowly = true;
  const caller = stage.call();
  transport.lose();
  await settled();
  assert.equal([caller.ends, caller.error?.delivered], [1, 'unknown']);
  assert.equal([stage.ref.state, stage.ref.reason], ['unhealthy', 'exited with code 7']);
  assert.equal([stage.ref.inFlight, stage.ref.tools, stage.ref.era], [0, undefined, null]);
  assert.is(stage.call().error?.delivered, 'no');
});

check('does not open again before the lost session is gone for good', async (stage) => {
  const transport = await stage.healthy();
  transport.closesSlowly = true;
  transport.lose();
  await stage.pass(20_000);
  assert.is(stage.opener.openings.length, 1);
  transport.finishClosing();
  await settled();
  assert.ok(await stage.happensAfter(500, openings(stage)));
  await stage.healthy();
  assert.equal([stage.ref.state, stage.ref.snapshot(0).restarts], ['healthy', 1]);
});

check('leaves a session behind whose closing never ends', async (stage) => {
  const transport = await stage.healthy();
  transport.closesSlowly = true;
  transport.lose();
  await settled();
  await stage.pass(LIMITS.drainMs);
  assert.ok(await stage.happensAfter(500, openings(stage)));
});

check('waits longer each time a session does not live long', async (stage) => {
  for (const waitMs of [500, 1_000, 2_000, 4_000]) {
    (await stage.healthy()).lose();
    await settled();
    assert.ok(await stage.happensAfter(waitMs, openings(stage)));
  }
});

check('forgives when a session lived for 60 s', async (stage) => {
  await waits(stage, 4);
  const transport = await stage.healthy();
  transport.onExchange = (probe) => probe.result();
  await stage.pass(30_000);
  await stage.pass(30_000);
  transport.lose();
  await settled();
  assert.equal(stage.emissions.at(-1), {
    type: 'restarting',
    reason: 'exited with code 7',
    delayMs: 500,
    isPlanned: false,
  });
  assert.ok(await stage.happensAfter(500, openings(stage)));
  assert.equal(await waits(stage, 3), [1_000, 2_000, 4_000]);
});

check('opens with the definition as it was changed', async (stage) => {
  stage.ref.change({ ...stage.ref.definition, weight: 9 });
  assert.is(stage.ref.weight, 9);
  await waits(stage, 1);
  assert.is(stage.opener.last.definition.weight, 9);
});

test.run();
