// The handle of one instance: what it shows, and the conversations and subscriptions that it opens. Its streams are in
// instance-streams.spec.ts, its calls in instance-exchanges.spec.ts; what the instance decides is in instance.machine.spec.ts.

import * as assert from 'uvu/assert';
import { backendUnavailable } from '../../../src/domain/error-catalogue.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { onHarness, openOwn, settled } from './instance-harness.ts';

const PROFILE = { protocolVersion: '2025-11-25', capabilities: { roots: {} }, clientInfo: {} };
const test = suite('instance ref');
const check = onHarness(test);

check('opens no conversation without a session, and none goes on in the next one', async (harness) => {
  const open = () => codeOf(openOwn(harness.ref, PROFILE));
  assert.is(await open(), 'BACKEND_UNAVAILABLE');
  const transport = await harness.healthy();
  const upstream = await openOwn(harness.ref, PROFILE);
  transport.lose();
  await settled();
  assert.is(await open(), 'BACKEND_UNAVAILABLE');
  await harness.pass(1_000);
  await harness.healthy();
  const caller = harness.call(undefined, undefined, upstream);
  assert.equal([caller.error?.code, caller.error?.delivered], ['BACKEND_UNAVAILABLE', 'no']);
  assert.is(harness.ref.state, 'healthy');
});

check(
  'doubts an instance at whose address nothing answers when a conversation is opened',
  async (harness) => {
    const transport = await harness.healthy();
    transport.thrownByOpenUpstream = backendUnavailable('refused', { delivered: 'no', unreachable: true });
    await codeOf(openOwn(harness.ref, PROFILE));
    assert.is(harness.ref.state, 'unhealthy');
  },
);

check('hands subscriptions to its session, and refuses them without one', async (harness) => {
  const refused: unknown[] = [];
  harness.ref
    .listen({ method: 'subscriptions/listen' })
    .subscribe({ error: (error) => refused.push(error.delivered) });
  assert.equal(refused, ['no']);
  const transport = await harness.healthy();
  const subscription = harness.ref.listen({ method: 'subscriptions/listen' }).subscribe();
  assert.equal([transport.open.length, harness.ref.inFlight], [1, 0]);
  subscription.unsubscribe();
  assert.is(transport.open.length, 0);
});

check('shows what is true of the instance', async (harness) => {
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
    reason: null,
    restarts: 0,
    requests: 2,
    errors: 0,
    era: 'legacy',
    pid: 4711,
    stderr: ['a line'],
    unmatchedMessages: 3,
  });
  assert.equal(
    [harness.ref.latencyMs, harness.ref.successRate, harness.ref.capacity],
    [40, 1, LIMITS.inFlightPerInstance],
  );
});

check('shows nothing of a backend that was never there', async ({ ref }) => {
  const { state, healthy, lastCheck, latencyMs, era, pid, stderr, unmatchedMessages } = ref.snapshot(0);
  assert.equal(
    [state, healthy, lastCheck, latencyMs, era, pid, unmatchedMessages],
    ['starting', false, null, null, null, null, 0],
  );
  assert.equal(stderr, []);
});

test.run();
