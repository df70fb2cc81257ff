// An instance that is unhealthy for long: its session may be the reason, so it is opened anew. When it is probed, and
// what makes it unhealthy, is in instance.machine-health.spec.ts.

import * as assert from 'uvu/assert';
import { RPC } from '../../../src/domain/jsonrpc.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import type { ScriptedTransport } from '../../helpers/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { type Harness, onHarness, settled } from './instance-harness.ts';

const test = suite('instance machine, recovery');
const check = onHarness(test);
const WAITS = [500, 1_000, 2_000, 4_000, 8_000];

/** Unhealthy, with a session that never answers a probe again. */
async function unhealthy(harness: Harness): Promise<ScriptedTransport> {
  const transport = await harness.healthy();
  transport.onExchange = (exchange) =>
    exchange.request.method === 'ping' && exchange.refuse(RPC.internalError);
  harness.actor.send({ type: 'unreachable', reason: 'connection refused' });
  assert.is(harness.ref.state, 'unhealthy');
  return transport;
}

check('opens an unhealthy session anew after five failed probes', async (harness) => {
  const transport = await unhealthy(harness);
  for (const ms of WAITS.slice(0, -1)) await harness.pass(ms);
  assert.equal([harness.probes, transport.isClosed], [LIMITS.failedRecoveries - 1, false]);
  await harness.pass(8_000);
  assert.equal([harness.probes, transport.isClosed, harness.ref.state], [5, true, 'unhealthy']);
  assert.ok(await harness.happensAfter(500, () => harness.opener.openings.length));
  await harness.healthy();
  assert.is(harness.ref.state, 'healthy');
});

check('says that the probes were the reason, not its own closing', async (harness) => {
  await unhealthy(harness);
  for (const ms of WAITS) await harness.pass(ms);
  assert.match(harness.ref.reason ?? '', 'its probe was answered with error -32603');
  const restarts = harness.emissions.filter(({ type }) => type === 'restarting');
  assert.equal(restarts, [
    {
      type: 'restarting',
      reason: 'its probe was answered with error -32603',
      delayMs: 500,
      isPlanned: false,
    },
  ]);
});

check('answers the calls in flight when it closes that session', async (harness) => {
  await unhealthy(harness);
  const caller = harness.call();
  for (const ms of WAITS) await harness.pass(ms);
  assert.equal([caller.ends, caller.error?.delivered, harness.ref.inFlight], [1, 'unknown', 0]);
});

check('goes on opening when nobody is there any more', async (harness) => {
  await unhealthy(harness);
  for (const ms of WAITS) await harness.pass(ms);
  await harness.pass(500);
  for (const ms of [1_000, 2_000, 4_000]) {
    harness.opener.last.fail();
    await settled();
    assert.ok(await harness.happensAfter(ms, () => harness.opener.openings.length), `not after ${ms} ms`);
  }
});

test.run();
