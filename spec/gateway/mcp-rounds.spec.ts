// What a client sees of a call that waits for its answer when something happens to the instance: whatever the eras of both
// ends, such a call counts as one that runs, within the same grace.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { LIMITS } from '../../src/domain/limits.ts';
import type { SessionFailover } from '../../src/domain/policy.ts';
import { suite } from '../helpers/suite.ts';
import {
  type AskedClient,
  type Backend,
  LEGACY,
  LegacyClient,
  ModernClient,
  OWN,
  pass,
  RoundsHarness,
  SHARED,
} from './rounds-harness.ts';

const test = suite('mcp: calls between two rounds');
let harness: RoundsHarness;

test.before.each(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
});
test.after.each(async () => {
  await harness.stop(0);
  mock.timers.reset();
});

/** How clients and backends meet. */
const MEETINGS = {
  'a legacy client, whose modern server is shared': [SHARED, LegacyClient],
  'a legacy client, whose modern server is its own': [OWN, LegacyClient],
  'a legacy client of a legacy server': [LEGACY, LegacyClient],
  'a modern client of a legacy server': [LEGACY, ModernClient],
  'a modern client of a modern server': [SHARED, ModernClient],
} as const;
type Meeting = keyof typeof MEETINGS;
const ROUNDS: readonly Meeting[] = [
  'a legacy client, whose modern server is shared',
  'a legacy client, whose modern server is its own',
];
const RUNNING: readonly Meeting[] = [
  'a legacy client of a legacy server',
  'a modern client of a legacy server',
];
const ALL = [...ROUNDS, ...RUNNING];

const EVENTS: Readonly<Record<string, () => unknown>> = {
  'nothing happens': () => undefined,
  'its instance is drained': () => harness.inner.ref('a').drain(),
  'its instance is deregistered': () => void harness.inner.fleet.remove('t', 'a', LIMITS.drainMs),
  'its instance is replaced': () => harness.add('a'),
  'its instance is restarted': () => harness.inner.ref('a').restart(),
  'its instance is restarted while it is drained': () => {
    harness.inner.ref('a').drain();
    harness.inner.ref('a').restart();
  },
  'its instance is unhealthy': async () => {
    await harness.inner.call('refused', { instanceId: 'a', looksUpTools: false }).end;
    assert.is(harness.inner.ref('a').state, 'unhealthy');
  },
  'its instance crashes': () => harness.transports.get('a')?.at(-1)?.lose(),
  'the gateway stops': () => void harness.stop(LIMITS.graceMs),
  'the gateway stops with other calls under way': async () => {
    await (await LegacyClient.open(harness, 'bob')).ask('slow');
    void harness.stop(LIMITS.graceMs);
  },
};
const KEPT = Object.keys(EVENTS).slice(0, 6);
const BOUNDED = KEPT.slice(2);

type Row = readonly [
  events: readonly string[],
  meetings: readonly Meeting[],
  failovers: readonly SessionFailover[],
  /** Ms between the event and the answer of the client. */
  afterMs: number,
  seenBefore: string | undefined,
  seenAfter: string,
];

const EACH: readonly SessionFailover[] = ['never', 'auto', 'always'];
const STAYING: readonly SessionFailover[] = ['never', 'auto'];
const LATE = LIMITS.drainMs + 1_000;

const UNHEALTHY = ['its instance is unhealthy'];
const CRASHES = ['its instance crashes'];
const STOPS = ['the gateway stops', 'the gateway stops with other calls under way'];
const LEGACY_BOTH: readonly Meeting[] = ['a legacy client of a legacy server'];
const MODERN_TO_LEGACY: readonly Meeting[] = ['a modern client of a legacy server'];
const MODERN_BOTH: readonly Meeting[] = ['a modern client of a modern server'];
const GONE = 'BACKEND_UNAVAILABLE';

const TABLE: readonly Row[] = [
  // Within the grace it goes on where it is, also where the session might move.
  [KEPT, ALL, EACH, 29_000, undefined, 'done by a'],
  // An unhealthy one may still answer: who has nowhere else to go asks it.
  [UNHEALTHY, ROUNDS, STAYING, 0, undefined, 'done by a'],
  [UNHEALTHY, ROUNDS, ['always'], 0, undefined, 'done by b'],
  [UNHEALTHY, [...RUNNING, ...MODERN_BOTH], EACH, 0, undefined, 'done by a'],
  // A session that may not move tells its call at once that its place is gone; so does a call that runs.
  [BOUNDED, [...ROUNDS, ...LEGACY_BOTH], STAYING, LATE, GONE, GONE],
  [CRASHES, [...ROUNDS, ...LEGACY_BOTH], STAYING, 0, GONE, GONE],
  // One that may move asks elsewhere with the answer; a call that ran is not repeated, since it wrote.
  [BOUNDED, ROUNDS, ['always'], LATE, undefined, 'done by b'],
  [CRASHES, ROUNDS, ['always'], 0, undefined, 'done by b'],
  // A client without a session hears of it when it comes back.
  [BOUNDED, MODERN_TO_LEGACY, ['auto'], LATE, undefined, GONE],
  [CRASHES, MODERN_TO_LEGACY, ['auto'], 0, undefined, GONE],
  // Nothing waits here for a client that carries the state of a modern server itself: that server has it while it is there.
  [
    ['nothing happens', 'its instance is drained', 'its instance is replaced'],
    ...([MODERN_BOTH, ['auto'], LATE, undefined, 'done by a'] as const),
  ],
  [['its instance is deregistered'], MODERN_BOTH, ['auto'], LATE, undefined, 'instance_gone'],
  // A gateway that stops takes no new request: no next round, and no client that comes back.
  [STOPS, ROUNDS, EACH, 0, 'SHUTTING_DOWN', 'SHUTTING_DOWN'],
  [STOPS, MODERN_TO_LEGACY, ['auto'], 0, undefined, 'call_not_here'],
  // A call that runs, and has only to be answered, has the grace.
  [['the gateway stops'], LEGACY_BOTH, EACH, 24_000, undefined, 'done by a'],
  [['the gateway stops'], LEGACY_BOTH, EACH, 26_000, GONE, GONE],
];

for (const [events, meetings, failovers, afterMs, seenBefore, seenAfter] of TABLE) {
  for (const event of events) {
    for (const meeting of meetings) {
      for (const failover of failovers) {
        const when = `${event} ${afterMs / 1_000} s before it answers`;
        test(`${meeting} with failover ${failover} sees ${seenAfter} when ${when}`, async () => {
          const [backend, Client] = MEETINGS[meeting];
          const client = await asked(backend, Client, failover);
          await EVENTS[event]?.();
          await pass(afterMs);
          const before = client.seen;
          await client.reply();
          assert.equal([before, client.seen, client.answers], [seenBefore, seenAfter, 1]);
          assert.equal([harness.calls, harness.inner.fleet.inFlight], others(event), 'nothing of it is left');
        });
      }
    }
  }
}

test('a legacy client is asked nothing more when as many calls of its caller wait as may; others are', async () => {
  harness = new RoundsHarness(SHARED);
  await harness.add('a');
  const many = await LegacyClient.open(harness);
  const share = LIMITS.parkedCalls * LIMITS.ownerShare;
  for (let count = 0; count < share; count += 1) await many.ask('write', 100 + count);
  const oneMore = await (await LegacyClient.open(harness)).ask();
  const other = await (await LegacyClient.open(harness, 'bob')).ask();
  assert.equal([many.seen, oneMore.seen, other.seen], [undefined, 'QUEUE_FULL', undefined]);
  assert.is(harness.inner.ref('a').snapshot(1).inFlight, share + 1);
  await many.reply();
  await oneMore.ask();
  assert.equal([many.seen, oneMore.seen], ['done by a', undefined]);
});

test.run();

/** A client that has called, and was asked, on `a`, with `b` beside it. */
async function asked(
  backend: Backend,
  Client: typeof LegacyClient | typeof ModernClient,
  failover: SessionFailover,
): Promise<AskedClient> {
  harness = new RoundsHarness(backend, failover);
  await harness.add('a');
  const client = Client === LegacyClient ? await LegacyClient.open(harness) : new ModernClient(harness);
  if (client instanceof LegacyClient) await harness.add('b');
  await client.ask();
  if (client instanceof ModernClient) await harness.add('b');
  return client;
}

/** Calls at the backends, and in flight, that have nothing to do with it. */
function others(event: string): number[] {
  return event.endsWith('with other calls under way') ? [1, 1] : [0, 0];
}
