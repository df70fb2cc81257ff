// When an instance is probed, and what makes it healthy or unhealthy. The question itself is in probe.spec.ts.
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
const probes = (stage: Harness) => () => stage.probes;
const passes = (transport: ScriptedTransport): void => {
  transport.onExchange = (exchange) => exchange.request.method === 'ping' && exchange.result();
};
const fails = (transport: ScriptedTransport): void => {
  transport.onExchange = (exchange) =>
    exchange.request.method === 'ping' && exchange.refuse(RPC.internalError);
};

/** Healthy, then unhealthy by two failed probes. */
async function unhealthy(stage: Harness): Promise<ScriptedTransport> {
  const transport = await stage.healthy();
  fails(transport);
  for (const ms of [INTERVAL, 1_000]) await stage.pass(ms);
  assert.is(stage.ref.state, 'unhealthy');
  return transport;
}

check('probes at the interval of its template', async (stage) => {
  passes(await stage.healthy());
  for (let round = 0; round < 3; round += 1) assert.ok(await stage.happensAfter(INTERVAL, probes(stage)));
  assert.equal(stage.states, ['starting', 'healthy']);
});

check('takes a changed interval at once', async (stage) => {
  passes(await stage.healthy());
  await stage.pass(20_000);
  stage.ref.govern({ ...stage.actor.getSnapshot().context.policy, healthIntervalMs: 5_000 });
  for (let round = 0; round < 2; round += 1) assert.ok(await stage.happensAfter(5_000, probes(stage)));
});

check('does not put off its probe when the interval stays as it is', async (stage) => {
  passes(await stage.healthy());
  await stage.pass(20_000);
  stage.ref.govern({ ...stage.actor.getSnapshot().context.policy, maxRetries: 0 });
  assert.ok(await stage.happensAfter(10_000, probes(stage)));
  assert.is(stage.actor.getSnapshot().context.policy.maxRetries, 0);
});

check('stays healthy after one failed probe and asks again within a second', async (stage) => {
  fails(await stage.healthy());
  assert.ok(await stage.happensAfter(INTERVAL, probes(stage)));
  assert.equal(
    [stage.ref.state, stage.ref.reason, stage.ref.snapshot(0).consecutiveFailures],
    ['healthy', null, 1],
  );
  assert.ok(await stage.happensAfter(1_000, probes(stage)));
  assert.is(stage.ref.state, 'unhealthy');
  assert.match(stage.ref.reason ?? '', 'its probe was answered with error -32603');
});

check(
  'asks again after the interval itself when that is shorter than a second',
  async (stage) => {
    fails(await stage.healthy());
    for (let round = 0; round < 2; round += 1) assert.ok(await stage.happensAfter(300, probes(stage)));
    assert.is(stage.ref.state, 'unhealthy');
  },
  { policy: { healthIntervalMs: 300 } },
);

check('forgets a failed probe when the next one passes', async (stage) => {
  const transport = await stage.healthy();
  for (let round = 0; round < 3; round += 1) {
    fails(transport);
    await stage.pass(INTERVAL);
    passes(transport);
    assert.ok(await stage.happensAfter(1_000, probes(stage)));
    assert.is(stage.ref.snapshot(0).consecutiveFailures, 0);
  }
  assert.equal(stage.states, ['starting', 'healthy']);
  transport.lose('exited with code 7');
  await settled();
  assert.is(stage.ref.reason, 'exited with code 7');
});

check('does not keep the reason of a probe that failed before one that passed', async (stage) => {
  const transport = await stage.healthy();
  fails(transport);
  await stage.pass(INTERVAL);
  passes(transport);
  await stage.pass(1_000);
  stage.ref.drain();
  assert.is(stage.ref.reason, null);
});

check(
  'probes an unhealthy instance after 0.5 s, doubled up to the interval',
  async (stage) => {
    const transport = await stage.healthy();
    fails(transport);
    stage.actor.send({ type: 'unreachable', reason: 'connection refused' });
    for (const waitMs of [500, 1_000, 2_000, 3_000, 3_000]) {
      assert.ok(await stage.happensAfter(waitMs, probes(stage)), `not after ${waitMs} ms`);
    }
    assert.is(stage.ref.state, 'unhealthy');
  },
  { policy: { healthIntervalMs: 3_000 } },
);

check('is healthy again with the first probe that passes, and probed at the interval', async (stage) => {
  const transport = await unhealthy(stage);
  await stage.pass(500);
  passes(transport);
  await stage.pass(1_000);
  assert.equal(
    [stage.ref.state, stage.ref.reason, stage.ref.snapshot(0).consecutiveFailures],
    ['healthy', null, 0],
  );
  assert.ok(await stage.happensAfter(INTERVAL, probes(stage)));
});

check('tells of every probe, of which the handshake is the first', async (stage) => {
  const transport = await unhealthy(stage);
  passes(transport);
  await stage.pass(500);
  assert.equal(
    stage.emissions.map((emission) => emission.type === 'probed' && emission.passed),
    [true, false, false, true],
  );
});

check('does not probe while calls in flight are answered', async (stage) => {
  const transport = await stage.healthy();
  const caller = stage.call();
  for (let round = 0; round < 5; round += 1) {
    await stage.pass(INTERVAL - 1);
    transport.exchanges[0]?.notify('notifications/progress');
    await stage.pass(1);
  }
  assert.is(stage.probes, 0);
  assert.is(caller.events.length, 5);
  assert.is(stage.ref.snapshot(0).lastCheck, new Date(performance.timeOrigin + 5 * INTERVAL).toISOString());
});

check('probes when the calls in flight said nothing since the last time', async (stage) => {
  const transport = await stage.healthy();
  stage.call();
  await stage.pass(1);
  transport.exchanges[0]?.notify('notifications/progress');
  await stage.pass(INTERVAL - 1);
  assert.is(stage.probes, 0);
  assert.ok(await stage.happensAfter(INTERVAL, probes(stage)));
});

check('probes when answers came but no call is in flight any more', async (stage) => {
  const transport = await stage.healthy();
  stage.call();
  await stage.pass(INTERVAL - 1);
  transport.last.result();
  await stage.pass(1);
  assert.is(stage.probes, 1);
});

check('does not take what was said before a failed probe for a sign of life', async (stage) => {
  const transport = await stage.healthy();
  stage.call();
  await stage.pass(INTERVAL - 5_000);
  transport.exchanges[0]?.notify('notifications/progress');
  fails(transport);
  stage.actor.send({ type: 'suspected' });
  await settled();
  await stage.pass(1_000);
  assert.equal([stage.probes, stage.ref.state], [2, 'unhealthy']);
});

check('passes a probe that fails while something else is heard', async (stage) => {
  const transport = await stage.healthy();
  await stage.pass(INTERVAL);
  const probe = transport.last;
  await stage.pass(9_000);
  transport.tell('notifications/message');
  await stage.pass(1_000);
  probe.refuse(RPC.internalError);
  await settled();
  assert.is(stage.ref.state, 'healthy');
  assert.equal(stage.emissions.at(-1), { type: 'probed', passed: true, durationMs: 10_000 });
  assert.is(stage.ref.latencyMs, undefined, 'the silence was no answer');
});

check('probes at once when a call met something suspicious, but at most once a second', async (stage) => {
  const transport = await stage.healthy();
  passes(transport);
  const suspect = async (): Promise<void> => {
    stage.call();
    transport.last.fail(backendUnavailable('it sent garbage', { delivered: 'unknown', suspicious: true }));
    await settled();
  };
  await stage.pass(999);
  await suspect();
  assert.is(stage.probes, 0, 'the handshake was a probe, less than a second ago');
  await stage.pass(1);
  for (let round = 0; round < 5; round += 1) await suspect();
  assert.is(stage.probes, 1);
  await stage.pass(1_000);
  await suspect();
  assert.is(stage.probes, 2);
});

check('does not probe twice at the same time', async (stage) => {
  await stage.healthy();
  await stage.pass(INTERVAL);
  for (let second = 0; second < 5; second += 1) {
    stage.actor.send({ type: 'suspected' });
    await stage.pass(1_000);
  }
  assert.is(stage.probes, 1);
});

check(
  'is unhealthy at once when nothing answers at its address, and healthy with the next probe',
  async (stage) => {
    const transport = await stage.healthy();
    stage.call();
    transport.last.fail(backendUnavailable('connection refused', { delivered: 'no', unreachable: true }));
    assert.is(stage.ref.state, 'unhealthy');
    assert.match(stage.ref.reason ?? '', 'connection refused');
    fails(transport);
    for (const waitMs of [500, 1_000, 2_000]) assert.ok(await stage.happensAfter(waitMs, probes(stage)));
    passes(transport);
    await stage.pass(4_000);
    assert.is(stage.ref.state, 'healthy');
  },
);

check('is unhealthy at once also while it is probed', async (stage) => {
  const transport = await stage.healthy();
  await stage.pass(INTERVAL);
  const probe = transport.last;
  stage.actor.send({ type: 'unreachable', reason: 'connection refused' });
  assert.is(stage.ref.state, 'unhealthy');
  probe.result();
  await settled();
  assert.is(stage.ref.state, 'unhealthy', 'the answer belongs to a probe that was given up');
});

check('is not in doubt because of what calls are answered', async (stage) => {
  const transport = await stage.healthy();
  for (let round = 0; round < 20; round += 1) {
    await stage.pass(1_000);
    stage.call();
    transport.last.refuse(RPC.internalError);
    stage.call();
    transport.last.result({ isError: true, content: [] });
    stage.call().subscription?.unsubscribe();
  }
  assert.equal([stage.ref.state, stage.probes], ['healthy', 0]);
});

test.run();
