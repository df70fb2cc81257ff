// One instance through its handle: calls and streams, reservations, its snapshot and its events.

import type { Observable } from 'rxjs';
import * as assert from 'uvu/assert';
import { DEFAULT_POLICY } from '../../../src/balancing/policy.ts';
import { ANONYMOUS } from '../../../src/domain/accounts/principal.ts';
import { asGatewayError } from '../../../src/domain/errors/errors.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { openOwn } from '../../helpers/backends/harness.ts';
import { HTTP, STDIO } from '../../helpers/backends/profiles.ts';
import { ScriptedTransport } from '../../helpers/backends/scripted-transport.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { settled } from '../../helpers/time/simulated-time.ts';
import { type InstanceHarness, onHarness } from './instance-harness.ts';

const test = suite('instance');
const check = onHarness(test);
/** The wait after the tenth opening that failed. */
async function longestWait(harness: InstanceHarness): Promise<number> {
  for (let round = 0; round < 10; round += 1) {
    harness.scripted.last.fail();
    await settled();
    await harness.pass(1_000_000);
  }
  return harness.actor.getSnapshot().context.backOffMs;
}
const policy = { healthIntervalMs: 7_000, probeTimeoutMs: 1_234 };

check('opens conversations only while it has a session, and none survives it', async (harness) => {
  const open = () => codeOf(openOwn(harness.ref));
  assert.is(await open(), 'BACKEND_UNAVAILABLE');
  const transport = await harness.healthy();
  const conversation = await openOwn(harness.ref);
  transport.disconnect();
  await settled();
  assert.is(await open(), 'BACKEND_UNAVAILABLE');
  await harness.pass(1_000);
  await harness.healthy();
  const caller = harness.call(undefined, undefined, conversation);
  assert.equal([caller.error?.code, caller.error?.delivered], ['BACKEND_UNAVAILABLE', 'no']);
  assert.is(harness.ref.state, 'healthy');
});

check('its snapshot shows state, traffic and process of the instance', async (harness) => {
  const transport = await harness.healthy();
  harness.call();
  await harness.pass(40);
  transport.last.result();
  harness.call();
  assert.equal(harness.ref.snapshot(87.5), {
    id: 'a',
    serverId: 'a',
    template: 't',
    state: 'healthy',
    healthy: true,
    inFlight: 1,
    weight: 1,
    score: 87.5,
    latencyMs: 40,
    consecutiveFailures: 0,
    ejection: null,
    lastCheck: new Date(performance.timeOrigin).toISOString(),
    nextAttemptAt: null,
    reason: null,
    restarts: 0,
    era: 'legacy',
    pid: 4711,
    stderr: ['a line'],
  });
  const found = [harness.ref.latencyMs, harness.ref.successRate, harness.ref.capacity];
  assert.equal(found, [40, 1, LIMITS.inFlightPerInstance]);
});

check('a call uses no capacity while its backend waits for the client', async (harness) => {
  const transport = await harness.healthy();
  const { events, leave } = harness.call();
  const counts = () => [
    harness.ref.activeCalls,
    harness.ref.calls.underWay,
    harness.ref.snapshot(0).inFlight,
  ];
  transport.last.ask('roots/list');
  transport.last.ask('elicitation/create');
  assert.equal(counts(), [0, 1, 1]);
  for (const event of events) {
    assert.equal(counts(), [0, 1, 1]);
    if (event.kind === 'request') event.answer({ result: {} });
  }
  assert.equal(counts(), [1, 1, 1]);
  assert.is(transport.last.replies.length, 2);
  transport.last.ask('roots/list');
  leave();
  assert.equal(counts(), [0, 0, 0]);
  for (const event of events) if (event.kind === 'request') event.answer({ result: {} });
  assert.equal(counts(), [0, 0, 0]);
});

check('answers a question itself when too many calls wait for that client', async (harness) => {
  const transport = await harness.healthy();
  const call = (caller: string) => {
    const { events } = harness.call({ method: 'tools/call', callerId: caller });
    transport.last.ask('roots/list');
    return [events.length, transport.last.replies.length];
  };
  for (let count = 0; count < LIMITS.callsAwaitingClient / 4; count += 1)
    assert.equal(call('user:ann'), [1, 0]);
  assert.equal(call('user:ann'), [0, 1]);
  assert.equal(call('user:bob'), [1, 0]);
  assert.is(harness.ref.activeCalls, 1);
});

for (const [kind, fields, waitMs] of [
  ['an endpoint', HTTP, 7_000],
  ['a program', STDIO, 30_000],
  ['an endpoint whose program the gateway runs', { ...HTTP, command: 'serve' }, 30_000],
] as const) {
  check(
    `waits at most ${waitMs / 1_000} s to open ${kind} again`,
    async (harness) => assert.is(await longestWait(harness), waitMs),
    { fields, policy },
  );
}

check('shows stderr of a program that is starting, and why it has not answered so far', async (harness) => {
  const seen = () => {
    const { pid, stderr, reason } = harness.ref.snapshot(7);
    return { pid, stderr, reason };
  };
  harness.scripted.last.start({ pid: 7, stderr: ['loading'] });
  assert.equal(seen(), { pid: 7, stderr: ['loading'], reason: 'it is still starting' });
  harness.scripted.last.start({ pid: 7, stderr: [] });
  assert.equal(seen(), { pid: 7, stderr: [], reason: null });
  harness.scripted.last.start({
    pid: 8,
    stderr: ['hello'],
    oddOutput: { lines: 150, idsAsText: 0, arrays: 0 },
  });
  const reason = 'it is still starting, and wrote 150 lines other than JSON-RPC';
  assert.equal(seen(), { pid: 8, stderr: ['hello'], reason });
  const failed = { pid: null, stderr: ['why'], reason: 'it never answered' };
  harness.scripted.last.fail(failed.reason, { stderr: failed.stderr });
  await settled();
  assert.equal(seen(), failed);
  await harness.pass(harness.actor.getSnapshot().context.backOffMs);
  assert.equal(seen(), failed);
  harness.scripted.last.start({ pid: 9, stderr: [], oddOutput: { lines: 1, idsAsText: 0, arrays: 0 } });
  assert.equal(seen(), { ...failed, pid: 9 }, 'what it failed of last says more');
  await harness.healthy();
  assert.equal(seen().reason, null);
});

check('counts a start that failed as a restart, and opens with the start limit in force', async (harness) => {
  const restarts = () => harness.ref.snapshot(0).restarts;
  assert.is(harness.scripted.last.hooks?.startTimeoutMs, 300_000);
  harness.ref.setPolicy({ ...DEFAULT_POLICY, startTimeoutMs: 900_000 });
  harness.scripted.last.start({ pid: 7, stderr: [] });
  assert.is(restarts(), 0);
  harness.scripted.last.fail('no handshake within 300 s');
  await settled();
  assert.is(restarts(), 1);
  await harness.pass(harness.actor.getSnapshot().context.backOffMs);
  assert.is(harness.scripted.last.hooks?.startTimeoutMs, 900_000);
  harness.scripted.last.fail('it is not started: there is no folder');
  await settled();
  assert.is(restarts(), 1, 'nothing was started');
  await harness.pass(harness.actor.getSnapshot().context.backOffMs);
  harness.scripted.last.start({ pid: 8, stderr: [] });
  await harness.healthy();
  assert.is(restarts(), 1);
});

check('ends a reservation with its session, and no longer counts it', async (harness) => {
  const ends: string[] = [];
  const reservation = (name: string) =>
    harness.ref.reserve('ann').subscribe({ complete: () => ends.push(name) });
  reservation('before the first session');
  const transport = await harness.healthy();
  reservation('lost');
  harness.ref.drain();
  harness.ref.resume();
  assert.equal(ends, ['before the first session']);
  transport.disconnect();
  await settled();
  reservation('while there is none');
  assert.equal(ends, ['before the first session', 'lost', 'while there is none']);
  assert.is(harness.ref.snapshot(1).inFlight, 0);
});

check(
  'a reservation in a dedicated process outlives the shared session and ends with the instance',
  async (harness) => {
    const first = await harness.healthy(
      Object.assign(new ScriptedTransport(), { conversationsAreIndependent: true }),
    );
    const own = await openOwn(harness.ref);
    const reservation = harness.ref.reserve('ann', own).subscribe();
    first.disconnect();
    await harness.pass(500);
    await harness.healthy();
    assert.equal([reservation.closed, harness.ref.snapshot(1).inFlight], [false, 1]);
    harness.ref.leave(0);
    await harness.pass(1);
    assert.is(reservation.closed, true);
    assert.is(harness.ref.reserve('ann', own).subscribe().closed, true);
  },
  { fields: STDIO },
);

check('bounds reservations, except for a continued call', async (harness) => {
  await harness.healthy();
  const all = Array.from({ length: LIMITS.callsAwaitingClient }, () =>
    harness.ref.reserve(ANONYMOUS.id).subscribe(),
  );
  assert.match(refusalOf(harness.ref.reserve('bob')), /^QUEUE_FULL unknown: Too many calls \(1000\)/);
  const next = harness.ref.reserve(ANONYMOUS.id, undefined, true).subscribe();
  assert.equal([next.closed, harness.ref.snapshot(1).inFlight], [false, LIMITS.callsAwaitingClient + 1]);
  for (const reservation of [...all, next]) reservation.unsubscribe();
  assert.is(refusalOf(harness.ref.reserve('bob')), 'none');
});

test.run();

/** Why a reservation is refused at once; `none`: it is not. */
function refusalOf(stay$: Observable<never>): string {
  let refusal = 'none';
  const subscription = stay$.subscribe({
    error: (thrown: unknown) => {
      const { code, delivered, message } = asGatewayError(thrown);
      refusal = `${code} ${delivered}: ${message}`;
    },
  });
  subscription.unsubscribe();
  return refusal;
}
