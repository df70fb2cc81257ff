// One instance and its sessions: when it serves, when it is lost, when it opens again.
// Probes are in instance.machine-health.spec.ts, drain and restart in -duty, the ways to its end in -end.

import * as assert from 'uvu/assert';
import type { InstanceEmission } from '../../../src/actors/instances/instance-setup.ts';
import { ewma } from '../../../src/balancing/health-score.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { suite } from '../../helpers/suite.ts';
import { type Harness, onHarness, settled } from './instance-harness.ts';

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

check('leaves a session behind whose closing never ends', async (harness) => {
  const transport = await harness.healthy();
  transport.closesSlowly = true;
  transport.lose();
  await settled();
  await harness.pass(LIMITS.drainMs);
  assert.ok(await harness.happensAfter(500, openings(harness)));
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
