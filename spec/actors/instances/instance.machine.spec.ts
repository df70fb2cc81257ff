// The states of an instance: sessions that end, when an instance is probed and what makes it healthy or unhealthy, and its
// commands: drain and resume, restart, leave. The instance waits for calls in flight and still serves new ones: the pool, not
// the instance, keeps those away.

import * as assert from 'uvu/assert';
import { ewma } from '../../../src/balancing/health-score.ts';
import { DEFAULT_POLICY } from '../../../src/balancing/policy.ts';
import { backendUnavailable } from '../../../src/domain/errors/backend-errors.ts';
import type { HttpRefusal } from '../../../src/domain/errors/errors.ts';
import { exitedWith } from '../../../src/domain/instances/found-instances.ts';
import { JsonText } from '../../../src/domain/json/json.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { RPC } from '../../../src/domain/mcp/jsonrpc.ts';
import type { ScriptedTransport } from '../../helpers/backends/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { settled } from '../../helpers/time/simulated-time.ts';
import { type InstanceHarness, onHarness } from './instance-harness.ts';

const test = suite('instance machine');
const check = onHarness(test);
const openings = (harness: InstanceHarness) => () => harness.scripted.openings.length;
const probes = (harness: InstanceHarness) => () => harness.probes;
/** The back-off after each failed opening, one after the other. */
async function waits(harness: InstanceHarness, count: number): Promise<number[]> {
  const delays: number[] = [];
  for (let round = 0; round < count; round += 1) {
    harness.scripted.last.fail();
    await settled();
    const reported = harness.emissions.at(-1);
    const delayMs = reported?.type === 'instance.restarting' ? reported.delayMs : Number.NaN;
    assert.ok(
      await harness.happensAfter(delayMs, openings(harness)),
      `opening ${round} is not after ${delayMs} ms`,
    );
    delays.push(delayMs);
  }
  return delays;
}
const INTERVAL = 30_000;
const passes = (transport: ScriptedTransport): void => {
  transport.onExchange = (exchange) => exchange.request.method === 'ping' && exchange.result();
};
const fails = (transport: ScriptedTransport, refusal?: HttpRefusal): void => {
  transport.onExchange = (exchange) => {
    if (exchange.request.method !== 'ping') return;
    if (refusal === undefined) exchange.refuse(RPC.internalError);
    else exchange.fail(backendUnavailable('refused', { delivered: 'yes', refusal }));
  };
};
const answered = (status: number, waitMs?: number): HttpRefusal => ({ status, waitMs });
const WAITS = [500, 1_000, 2_000, 4_000, 8_000];
/** Unhealthy, with a session that refuses each probe from now on: by default with JSON-RPC, else over HTTP. */
async function unhealthy(harness: InstanceHarness, refusal?: HttpRefusal): Promise<ScriptedTransport> {
  const transport = await harness.healthy();
  fails(transport, refusal);
  harness.actor.send({ type: 'unreachable', reason: 'connection refused' });
  assert.is(harness.ref.state, 'unhealthy');
  return transport;
}
const fault = new TypeError('a fault of the transport');

check(
  'counts an opening that fails as a failed probe, and one that succeeds as a passed one',
  async (harness) => {
    await harness.pass(40);
    harness.scripted.last.fail('connection refused');
    await settled();
    const failed = harness.ref.snapshot(0);
    assert.equal([failed.consecutiveFailures, failed.restarts, harness.ref.successRate], [1, 0, 0.8]);
    assert.is(failed.lastCheck, new Date(performance.timeOrigin + 40).toISOString());
    await harness.pass(500);
    await harness.pass(10);
    await harness.healthy();
    assert.equal([harness.ref.snapshot(0).consecutiveFailures, harness.ref.successRate], [0, ewma(0.8, 1)]);
    assert.equal(harness.emissions, [
      { type: 'probe.finished', passed: false, durationMs: 40 },
      { type: 'instance.restarting', reason: 'connection refused', delayMs: 500, isPlanned: false },
      { type: 'probe.finished', passed: true, durationMs: 10 },
    ]);
  },
);

check('is unhealthy at once when its session is lost, and its calls are answered', async (harness) => {
  const transport = await harness.healthy();
  transport.closesSlowly = true;
  const caller = harness.call();
  transport.disconnect();
  await settled();
  assert.equal([caller.ends, caller.error?.delivered], [1, 'unknown']);
  assert.equal([harness.ref.state, harness.ref.reason], ['unhealthy', 'exited with code 7']);
  assert.equal(
    [harness.ref.activeCalls, harness.ref.tools, harness.ref.handshake],
    [0, undefined, undefined],
  );
  assert.is(harness.call().error?.delivered, 'no');
});

check('opens a new session although the old one never finishes closing', async (harness) => {
  const transport = await harness.healthy();
  transport.closesSlowly = true;
  transport.disconnect();
  await settled();
  await harness.pass(LIMITS.drainMs);
  assert.ok(await harness.happensAfter(500, openings(harness)));
});

check('resets the back-off after a session that lived for 60 s', async (harness) => {
  await waits(harness, 4);
  const transport = await harness.healthy();
  transport.onExchange = (probe) => probe.result();
  await harness.pass(30_000);
  await harness.pass(30_000);
  transport.disconnect();
  await settled();
  assert.equal(harness.emissions.at(-1), {
    type: 'instance.restarting',
    reason: 'exited with code 7',
    delayMs: 500,
    isPlanned: false,
  });
  assert.ok(await harness.happensAfter(500, openings(harness)));
  assert.equal(await waits(harness, 3), [1_000, 2_000, 4_000]);
});

check(
  'asks a server that refuses lastingly ever more rarely, and at once when it is restarted',
  async (harness) => {
    for (const status of [401, 403, 404, 410, 401, 401, 401, 401, 401, 401, 401]) {
      harness.scripted.last.fail('refused', { refusal: answered(status) });
      await settled();
      const { backOffMs } = harness.actor.getSnapshot().context;
      const next = performance.timeOrigin + harness.clock.now() + backOffMs;
      assert.is(harness.ref.snapshot(0).nextAttemptAt, new Date(next).toISOString());
      assert.ok(await harness.happensAfter(backOffMs, openings(harness)));
      assert.is(harness.ref.snapshot(0).nextAttemptAt, null);
    }
    harness.scripted.last.fail('refused', { refusal: answered(401) });
    await settled();
    assert.is(harness.actor.getSnapshot().context.backOffMs, 600_000);
    harness.ref.restart();
    await settled();
    assert.is(harness.ref.state, 'starting');
    harness.scripted.last.fail('refused', { refusal: answered(503) });
    await settled();
    assert.is(harness.actor.getSnapshot().context.backOffMs, 500, 'another failure is tried again soon');
  },
);

check('waits as long as a server asks for', async (harness) => {
  harness.scripted.last.fail('busy', { refusal: answered(503, 90_000) });
  await settled();
  assert.is(harness.ref.isStarting, false);
  assert.ok(await harness.happensAfter(90_000, openings(harness)));
});

for (const isJsonRpc of [false, true])
  check(
    `opens a session whose probes are refused lastingly ever more rarely, JSON-RPC: ${isJsonRpc}`,
    async (harness) => {
      const waitedMs: number[] = [];
      for (let session = 0; session < 12; session += 1) {
        const transport = await unhealthy(harness, answered(401));
        if (isJsonRpc)
          transport.onExchange = (exchange) =>
            exchange.request.method === 'ping' &&
            exchange.end({
              kind: 'error',
              error: { code: -32001, message: 'no' },
              refusal: { status: 401, waitMs: undefined },
            });
        for (let probe = 0; !transport.isClosed && probe < 20; probe += 1) await harness.pass(INTERVAL);
        waitedMs.push(harness.actor.getSnapshot().context.backOffMs);
        await harness.pass(LIMITS.refusedLongestMs);
      }
      assert.equal(
        [...waitedMs].sort((one, other) => one - other),
        waitedMs,
      );
      assert.is(waitedMs.at(-1), LIMITS.refusedLongestMs);
    },
  );

check('waits between failed probes as a server asks for, until it answers', async (harness) => {
  harness.scripted.last.fail('busy', { refusal: answered(503, 90_000) });
  await settled();
  await harness.pass(90_000);
  const transport = await unhealthy(harness, answered(429, 90_000));
  assert.ok(await harness.happensAfter(500, probes(harness)), 'the wait before the opening is over');
  assert.ok(await harness.happensAfter(90_000, probes(harness)));
  passes(transport);
  await harness.pass(90_000);
  assert.is(harness.ref.state, 'healthy');
});

check('starts a program that ends after each answered call, without a failure, at once', async (harness) => {
  const serve = async (isAnswered: boolean, exitCode: number): Promise<number> => {
    const transport = await harness.healthy();
    harness.call();
    if (isAnswered) transport.last.result();
    transport.disconnect(exitedWith(exitCode));
    await settled();
    const { backOffMs } = harness.actor.getSnapshot().context;
    await harness.pass(backOffMs);
    assert.is(harness.ref.state, 'starting');
    return backOffMs;
  };
  for (let call = 0; call < 6; call += 1) assert.is(await serve(true, 0), 0);
  assert.is(await serve(false, 0), 500, 'its call was not answered');
  assert.is(await serve(true, 1), 1_000);
});

check('reopens an unhealthy session after five failed probes', async (harness) => {
  const transport = await unhealthy(harness);
  for (const ms of WAITS.slice(0, -1)) await harness.pass(ms);
  assert.equal([harness.probes, transport.isClosed], [4, false]);
  await harness.pass(8_000);
  assert.equal([harness.probes, transport.isClosed, harness.ref.state], [5, true, 'unhealthy']);
  assert.ok(await harness.happensAfter(500, () => harness.scripted.openings.length));
  await harness.healthy();
  assert.is(harness.ref.state, 'healthy');
});

check('names the failed probes as the reason of a reopening, not its own closing', async (harness) => {
  await unhealthy(harness);
  for (const ms of WAITS) await harness.pass(ms);
  assert.match(harness.ref.reason ?? '', 'its probe was answered with error -32603');
  const restarts = harness.emissions.filter(({ type }) => type === 'instance.restarting');
  assert.equal(restarts, [
    {
      type: 'instance.restarting',
      reason: 'its probe was answered with error -32603',
      delayMs: 500,
      isPlanned: false,
    },
  ]);
});

check('answers the caller when the transport throws, and serves the next call', async (harness) => {
  const transport = await harness.healthy();
  transport.thrownByExchange = fault;
  const caller = harness.call();
  assert.equal([caller.ends, caller.error?.code, caller.error?.delivered], [1, 'INTERNAL_ERROR', 'unknown']);
  transport.thrownByExchange = undefined;
  const next = harness.call();
  transport.last.result();
  const found = [next.ends, next.error, harness.ref.activeCalls, harness.ref.state];
  assert.equal(found, [1, undefined, 0, 'healthy']);
});

check('answers the caller when an exchange ends without an answer', async (harness) => {
  const transport = await harness.healthy();
  const caller = harness.call();
  transport.last.complete();
  const { delivered, facts } = caller.error ?? {};
  assert.equal(
    [caller.ends, delivered, facts?.health, harness.ref.activeCalls],
    [1, 'unknown', 'suspicious', 0],
  );
});

check('answers the caller once when an exchange is answered twice', async (harness) => {
  const transport = await harness.healthy();
  const caller = harness.call();
  const { last } = transport;
  last.emit({ kind: 'result', result: JsonText.ofValue({ n: 1 }) });
  last.emit({ kind: 'result', result: JsonText.ofValue({ n: 2 }) });
  last.fail(fault);
  assert.equal([caller.events.length, caller.ends, caller.error], [1, 1, undefined]);
  const found = caller.endings.map(({ outcome }) => outcome);
  assert.equal(found, ['result']);
});

check('is restarted although its old session never finishes closing', async (harness) => {
  const transport = await harness.healthy();
  transport.closesSlowly = true;
  harness.ref.restart();
  await harness.pass(LIMITS.drainMs);
  assert.is(harness.scripted.openings.length, 2);
  transport.finishClosing();
  await harness.healthy();
  assert.is(harness.ref.state, 'healthy');
});

check('is draining again after a restart while draining', async (harness) => {
  const transport = await harness.healthy();
  const caller = harness.call();
  harness.ref.drain();
  harness.ref.restart();
  transport.exchanges[0]?.result();
  await settled();
  assert.equal([caller.error, harness.scripted.openings.length], [undefined, 2]);
  await harness.healthy();
  assert.is(harness.ref.state, 'draining');
  harness.ref.resume();
  assert.is(harness.ref.state, 'healthy');
});

check('emits every probe, of which the handshake is the first', async (harness) => {
  const transport = await harness.healthy();
  fails(transport);
  for (const ms of [INTERVAL, 1_000]) await harness.pass(ms);
  assert.is(harness.ref.state, 'unhealthy');
  passes(transport);
  await harness.pass(500);
  const found = harness.emissions.map((emission) => emission.type === 'probe.finished' && emission.passed);
  assert.equal(found, [true, false, false, true]);
});

check('is unhealthy after one probe whose connection is refused', async (harness) => {
  const transport = await harness.healthy();
  await harness.pass(INTERVAL);
  transport.last.fail(backendUnavailable('connection refused', { delivered: 'no', health: 'unreachable' }));
  await settled();
  assert.equal([harness.ref.state, harness.ref.reason], ['unhealthy', 'connection refused']);
});

check('probes one interval after the last message of a call in flight', async (harness) => {
  const transport = await harness.healthy();
  harness.call();
  await harness.pass(10_000);
  transport.exchanges[0]?.notify('notifications/progress');
  assert.ok(await harness.happensAfter(INTERVAL, probes(harness)));
});

check('probes one interval after the last answer, whatever else the backend sends', async (harness) => {
  const transport = await harness.healthy();
  harness.call();
  await harness.pass(20_000);
  transport.last.result();
  await harness.pass(INTERVAL - 1);
  assert.is(harness.probes, 0, 'the answer of a call that is over');
  transport.sendNotification('notifications/message');
  assert.ok(await harness.happensAfter(1, probes(harness)));
});

check('a change of the policy neither delays the next probe nor makes one', async (harness) => {
  await harness.healthy();
  await harness.pass(20_000);
  harness.ref.setPolicy({ ...DEFAULT_POLICY, maxRetries: 1 });
  assert.ok(await harness.happensAfter(10_000, probes(harness)));
});

check('passes a failed probe when another message came meanwhile', async (harness) => {
  const transport = await harness.healthy();
  await harness.pass(INTERVAL);
  const probe = transport.last;
  await harness.pass(9_000);
  transport.sendNotification('notifications/message');
  await harness.pass(1_000);
  probe.refuse(RPC.internalError);
  await settled();
  assert.is(harness.ref.state, 'healthy');
  assert.equal(harness.emissions.at(-1), { type: 'probe.finished', passed: true, durationMs: 10_000 });
  assert.is(harness.ref.latencyMs, undefined, 'the silence was no answer');
});

check('probes at once when a call met something suspicious, but at most once a second', async (harness) => {
  const transport = await harness.healthy();
  passes(transport);
  const suspect = async (): Promise<void> => {
    harness.call();
    transport.last.fail(
      backendUnavailable('it sent garbage', { delivered: 'unknown', health: 'suspicious' }),
    );
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

check('restarts an idle instance at once: closes the session, opens a new one', async (harness) => {
  const transport = await harness.healthy();
  harness.ref.restart();
  assert.is(harness.ref.state, 'unhealthy');
  await settled();
  assert.equal([transport.isClosed, harness.scripted.openings.length], [true, 2]);
  assert.is(harness.ref.state, 'starting');
  const reported = { type: 'instance.restarting', reason: 'it is restarting', delayMs: 0, isPlanned: true };
  assert.equal(harness.emissions.at(-1), reported);
  await harness.healthy();
  assert.equal([harness.ref.state, harness.ref.snapshot(0).restarts], ['healthy', 1]);
});

check('a restart waits at most 30 s for calls in flight, and answers them', async (harness) => {
  const transport = await harness.healthy();
  const caller = harness.call();
  harness.ref.restart();
  await harness.pass(LIMITS.drainMs - 1);
  assert.equal([caller.ends, transport.isClosed], [0, false]);
  await harness.pass(1);
  assert.equal([caller.ends, caller.error?.delivered, transport.isClosed], [1, 'unknown', true]);
  assert.is(harness.ref.activeCalls, 0);
});

check('restarts immediately during a back-off, which then starts from the beginning', async (harness) => {
  for (let round = 1; round <= 5; round += 1) {
    harness.scripted.last.fail();
    await settled();
    assert.is(harness.actor.getSnapshot().context.backOffMs, 500);
    harness.ref.restart();
    await settled(); // there may be dedicated processes: it waits for their end, which comes with the next turn
    assert.is(harness.scripted.openings.length, round + 1);
  }
});

check('a drain or resume cancels a restart that waits for calls', async (harness) => {
  const transport = await harness.healthy();
  const caller = harness.call();
  harness.ref.restart();
  harness.ref.drain();
  transport.exchanges[0]?.result();
  await settled();
  assert.equal([harness.ref.state, transport.isClosed, caller.error], ['draining', false, undefined]);
  harness.ref.resume();
  harness.call();
  harness.ref.drain();
  harness.ref.restart();
  harness.ref.drain();
  await harness.pass(LIMITS.drainMs);
  assert.equal([harness.ref.state, transport.isClosed], ['draining', false], 'a second drain');
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

check('waits for a call between two rounds before it leaves, within its time limit', async (harness) => {
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
  'a restart waits for a call between two rounds as long as for one in flight, at most 30 s',
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

check('stops after 30 s although its session never finishes closing', async (harness) => {
  const transport = await harness.healthy();
  transport.closesSlowly = true;
  harness.ref.leave(0);
  await harness.pass(LIMITS.drainMs - 1);
  assert.is(harness.ref.state, 'draining');
  await harness.pass(1);
  assert.is(harness.ref.state, 'stopped');
});

test.run();
