// When an instance is probed, and what makes it healthy or unhealthy. The question itself is in call-counter.spec.ts.
// Sessions that end are in instance.machine.spec.ts.

import * as assert from 'uvu/assert';
import { backendUnavailable } from '../../../src/domain/error-catalogue.ts';
import { RPC } from '../../../src/domain/jsonrpc.ts';
import type { ScriptedTransport } from '../../helpers/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { type Harness, onHarness, settled } from './instance-harness.ts';

const test = suite('instance machine, health');
const check = onHarness(test);

const INTERVAL = 30_000;
const probes = (harness: Harness) => () => harness.probes;
const passes = (transport: ScriptedTransport): void => {
  transport.onExchange = (exchange) => exchange.request.method === 'ping' && exchange.result();
};
const fails = (transport: ScriptedTransport): void => {
  transport.onExchange = (exchange) =>
    exchange.request.method === 'ping' && exchange.refuse(RPC.internalError);
};

/** Healthy, then unhealthy by two failed probes. */
async function unhealthy(harness: Harness): Promise<ScriptedTransport> {
  const transport = await harness.healthy();
  fails(transport);
  for (const ms of [INTERVAL, 1_000]) await harness.pass(ms);
  assert.is(harness.ref.state, 'unhealthy');
  return transport;
}

check('does not put off its probe when the interval stays as it is', async (harness) => {
  passes(await harness.healthy());
  await harness.pass(20_000);
  harness.ref.setPolicy({ ...harness.actor.getSnapshot().context.policy, maxRetries: 0 });
  assert.ok(await harness.happensAfter(10_000, probes(harness)));
  assert.is(harness.actor.getSnapshot().context.policy.maxRetries, 0);
});

check('emits every probe, of which the handshake is the first', async (harness) => {
  const transport = await unhealthy(harness);
  passes(transport);
  await harness.pass(500);
  const found = harness.emissions.map((emission) => emission.type === 'probed' && emission.passed);
  assert.equal(found, [true, false, false, true]);
});

check('probes when the calls in flight said nothing since the last time', async (harness) => {
  const transport = await harness.healthy();
  harness.call();
  await harness.pass(1);
  transport.exchanges[0]?.notify('notifications/progress');
  await harness.pass(INTERVAL - 1);
  assert.is(harness.probes, 0);
  assert.ok(await harness.happensAfter(INTERVAL, probes(harness)));
});

check('passes a failed probe when another message came meanwhile', async (harness) => {
  const transport = await harness.healthy();
  await harness.pass(INTERVAL);
  const probe = transport.last;
  await harness.pass(9_000);
  transport.tell('notifications/message');
  await harness.pass(1_000);
  probe.refuse(RPC.internalError);
  await settled();
  assert.is(harness.ref.state, 'healthy');
  assert.equal(harness.emissions.at(-1), { type: 'probed', passed: true, durationMs: 10_000 });
  assert.is(harness.ref.latencyMs, undefined, 'the silence was no answer');
});

check('probes at once when a call met something suspicious, but at most once a second', async (harness) => {
  const transport = await harness.healthy();
  passes(transport);
  const suspect = async (): Promise<void> => {
    harness.call();
    transport.last.fail(backendUnavailable('it sent garbage', { delivered: 'unknown', suspicious: true }));
    await settled();
  };
  await harness.pass(999);
  await suspect();
  assert.is(harness.probes, 0, 'the handshake was a probe, less than a second ago');
  await harness.pass(1);
  for (let round = 0; round < 5; round += 1) await suspect();
  assert.is(harness.probes, 1);
  await harness.pass(1_000);
  await suspect();
  assert.is(harness.probes, 2);
});

test.run();
