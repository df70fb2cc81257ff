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
async function unhealthy(stage: Harness): Promise<ScriptedTransport> {
  const transport = await stage.healthy();
  transport.onExchange = (exchange) =>
    exchange.request.method === 'ping' && exchange.refuse(RPC.internalError);
  stage.actor.send({ type: 'unreachable', reason: 'connection refused' });
  assert.is(stage.ref.state, 'unhealthy');
  return transport;
}

check('opens an unhealthy session anew after five failed probes', async (stage) => {
  const transport = await unhealthy(stage);
  for (const ms of WAITS.slice(0, -1)) await stage.pass(ms);
  assert.equal([stage.probes, transport.isClosed], [LIMITS.failedRecoveries - 1, false]);
  await stage.pass(8_000);
  assert.equal([stage.probes, transport.isClosed, stage.ref.state], [5, true, 'unhealthy']);
  assert.ok(await stage.happensAfter(500, () => stage.opener.openings.length));
  await stage.healthy();
  assert.is(stage.ref.state, 'healthy');
});

check('says that the probes were the reason, not its own closing', async (stage) => {
  await unhealthy(stage);
  for (const ms of WAITS) await stage.pass(ms);
  assert.match(stage.ref.reason ?? '', 'its probe was answered with error -32603');
  const restarts = stage.emissions.filter(({ type }) => type === 'restarting');
  assert.equal(restarts, [
    {
      type: 'restarting',
      reason: 'its probe was answered with error -32603',
      delayMs: 500,
      isPlanned: false,
    },
  ]);
});

check('answers the calls in flight when it closes that session', async (stage) => {
  await unhealthy(stage);
  const caller = stage.call();
  for (const ms of WAITS) await stage.pass(ms);
  assert.equal([caller.ends, caller.error?.delivered, stage.ref.inFlight], [1, 'unknown', 0]);
});

check('counts anew when a probe passed in between', async (stage) => {
  const transport = await unhealthy(stage);
  const refuse = transport.onExchange;
  for (const ms of WAITS.slice(0, -1)) await stage.pass(ms);
  transport.onExchange = (exchange) => exchange.result();
  await stage.pass(8_000);
  assert.is(stage.ref.state, 'healthy');
  transport.onExchange = refuse;
  stage.actor.send({ type: 'unreachable', reason: 'connection refused' });
  for (const ms of WAITS.slice(0, -1)) await stage.pass(ms);
  assert.is(transport.isClosed, false);
  await stage.pass(8_000);
  assert.is(transport.isClosed, true);
});

check('goes on opening when nobody is there any more', async (stage) => {
  await unhealthy(stage);
  for (const ms of WAITS) await stage.pass(ms);
  await stage.pass(500);
  for (const ms of [1_000, 2_000, 4_000]) {
    stage.opener.last.fail();
    await settled();
    assert.ok(await stage.happensAfter(ms, () => stage.opener.openings.length), `not after ${ms} ms`);
  }
});

test.run();
