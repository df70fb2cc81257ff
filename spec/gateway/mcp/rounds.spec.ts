// Calls whose server asks its client, under failure. What a client receives for a call that waits for its reply when the
// instance fails or changes: in all combinations of eras such a call counts as in flight, with the same grace time. And
// clients that disconnect, lose permissions, cancel, or reply twice, late, or for another session. Each call is answered
// once, and no state of it is left at the backends and in the gateway.

import * as assert from 'uvu/assert';
import type { TemplatePolicy } from '../../../src/balancing/policy.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import type { BackendOptions } from '../../helpers/backends/harness.ts';
import { suite } from '../../helpers/suite.ts';
import { pass, settled, simulateTime } from '../../helpers/time/simulated-time.ts';
import {
  type AskedClient,
  LEGACY,
  LegacyClient,
  ModernClient,
  OWN,
  RoundsHarness,
  SHARED,
} from './rounds-harness.ts';

const test = suite('mcp: calls between two rounds');
let harness: RoundsHarness;

simulateTime(test);
test.after.each(() => harness.stop(0));

/** A gateway with the instance `a`. */
async function start(backend: BackendOptions, failover?: TemplatePolicy['sessionFailover']): Promise<void> {
  harness = new RoundsHarness(backend, failover);
  await harness.add('a');
}

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
    await harness.inner.call('refused', { instanceId: 'a' }).end;
    assert.is(harness.inner.ref('a').state, 'unhealthy');
  },
  'its instance crashes': () => harness.inner.backend('a').disconnect(),
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
  failovers: readonly TemplatePolicy['sessionFailover'][],
  /** Ms between the event and the answer of the client. */
  afterMs: number,
  seenBefore: string | undefined,
  seenAfter: string,
];

const EACH: readonly TemplatePolicy['sessionFailover'][] = ['never', 'auto', 'always'];
const STAYING: readonly TemplatePolicy['sessionFailover'][] = ['never', 'auto'];
const LATE = LIMITS.drainMs + 1_000;

const UNHEALTHY = ['its instance is unhealthy'];
const CRASHES = ['its instance crashes'];
const STOPS = ['the gateway stops', 'the gateway stops with other calls under way'];
const LEGACY_BOTH: readonly Meeting[] = ['a legacy client of a legacy server'];
const MODERN_TO_LEGACY: readonly Meeting[] = ['a modern client of a legacy server'];
const MODERN_BOTH: readonly Meeting[] = ['a modern client of a modern server'];
const GONE = 'BACKEND_UNAVAILABLE';

const TABLE: readonly Row[] = [
  // Within the grace time the call continues at its instance, also where the session might move.
  [KEPT, ALL, EACH, 29_000, undefined, 'done by a'],
  // An unhealthy instance may still answer: a call that cannot move asks it.
  [UNHEALTHY, ROUNDS, STAYING, 0, undefined, 'done by a'],
  [UNHEALTHY, ROUNDS, ['always'], 0, undefined, 'done by b'],
  [UNHEALTHY, [...RUNNING, ...MODERN_BOTH], EACH, 0, undefined, 'done by a'],
  // A session that may not move fails its call at once when the instance is removed; a call in flight fails, too.
  [BOUNDED, [...ROUNDS, ...LEGACY_BOTH], STAYING, LATE, GONE, GONE],
  [CRASHES, [...ROUNDS, ...LEGACY_BOTH], STAYING, 0, GONE, GONE],
  // A session that may move asks elsewhere with the answer; a call in flight is not repeated, as it is not safe.
  [BOUNDED, ROUNDS, ['always'], LATE, undefined, 'done by b'],
  [CRASHES, ROUNDS, ['always'], 0, undefined, 'done by b'],
  // A client without a session learns of it at its retry.
  [BOUNDED, MODERN_TO_LEGACY, ['auto'], LATE, undefined, GONE],
  [CRASHES, MODERN_TO_LEGACY, ['auto'], 0, undefined, GONE],
  // Nothing waits for a client that carries the state of a modern server: its retry works while that server exists.
  [
    ['nothing happens', 'its instance is drained', 'its instance is replaced'],
    ...([MODERN_BOTH, ['auto'], LATE, undefined, 'done by a'] as const),
  ],
  [['its instance is deregistered'], MODERN_BOTH, ['auto'], LATE, undefined, 'instance_gone'],
  // A gateway that stops accepts no new request: no next round, and no retry.
  [STOPS, ROUNDS, EACH, 0, 'SHUTTING_DOWN', 'SHUTTING_DOWN'],
  [STOPS, MODERN_TO_LEGACY, ['auto'], 0, undefined, 'call_lost'],
  // A call in flight, which only needs its answer, has the grace time.
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
          assert.equal([harness.calls, harness.inner.fleet.underWay], others(event), 'nothing of it is left');
        });
      }
    }
  }
}

test('a legacy client is not asked when its owner has the maximum of waiting calls; others are', async () => {
  await start(SHARED);
  const many = await LegacyClient.open(harness);
  const share = LIMITS.callsAwaitingClient * LIMITS.ownerShare;
  for (let count = 0; count < share; count += 1) await many.ask('write', 100 + count);
  const oneMore = await (await LegacyClient.open(harness)).ask();
  const other = await (await LegacyClient.open(harness, 'bob')).ask();
  assert.equal([many.seen, oneMore.seen, other.seen], [undefined, 'QUEUE_FULL', undefined]);
  assert.is(harness.inner.ref('a').snapshot(1).inFlight, share + 1);
  await many.reply();
  await oneMore.ask();
  assert.equal([many.seen, oneMore.seen], ['done by a', undefined]);
});

// --- questions --------------------------------------------------------------------------------------------------------

/** The conversation of a legacy client's session with its server. */
const BACKENDS = {
  'in a shared modern conversation': SHARED,
  'in a dedicated modern conversation': OWN,
  'in a dedicated legacy conversation': LEGACY,
};

for (const [where, backend] of Object.entries(BACKENDS)) {
  const open = async () => {
    await start(backend);
    return LegacyClient.open(harness);
  };

  for (const [what, end] of Object.entries(ENDS())) {
    test(`${where}, a call is answered once when ${what}, and its question is taken back`, async () => {
      const client = await open();
      await client.ask();
      await end.act(client);
      assert.equal([client.seen, client.answers], [end.seen(backend), end.answers]);
      assert.equal(client.takenBack, [client.questionId]);
      await client.reply();
      await nothingIsLeft();
      assert.is(client.answers, end.answers);
    });
  }

  test(`${where}, only the first reply to a question counts`, async () => {
    const client = await open();
    await client.ask();
    const { questionId } = client;
    await client.reply();
    await client.reply(questionId);
    assert.equal([client.seen, client.answers], ['done by a', 1]);
    assert.equal(toolCalls(), backend === LEGACY ? 1 : 2);
    await nothingIsLeft();
  });

  test(`${where}, replies with unknown ids do not answer a question`, async () => {
    const client = await open();
    await client.ask();
    const { questionId } = client;
    for (const id of [questionId + 1, `0${questionId}`, ` ${questionId}`, 0, -1, 'request-1'])
      await client.reply(id);
    assert.is(client.seen, undefined);
    await client.reply(questionId);
    assert.is(client.seen, 'done by a');
    await nothingIsLeft();
  });

  test(`${where}, a reply does not answer the question of another session with the same ids`, async () => {
    const clients = [await open(), await LegacyClient.open(harness), await LegacyClient.open(harness, 'bob')];
    for (const client of clients) await client.ask();
    const [mine, second, third] = clients.map(({ questionId }) => questionId);
    await clients[1]?.reply(mine);
    await clients[2]?.reply(mine);
    await clients[0]?.reply(second);
    const all = (field: 'seen' | 'answers') => clients.map((client) => client[field]);
    assert.equal(all('seen'), [undefined, undefined, undefined]);
    await clients[2]?.reply(third);
    assert.equal(all('seen'), [undefined, undefined, 'done by a']);
    for (const client of clients) await client.reply();
    assert.equal(all('answers'), [1, 1, 1]);
    await nothingIsLeft();
  });

  test(`${where}, a reply that crosses the death of the instance has no effect`, async () => {
    const client = await open();
    await client.ask();
    harness.inner.backend('a').disconnect();
    await Promise.all([client.reply(), client.reply()]); // nothing has settled in between
    await pass(200);
    assert.equal([client.seen, client.answers], ['BACKEND_UNAVAILABLE', 1]);
    await nothingIsLeft();
  });
}

for (const [what, end] of Object.entries(ENDS())) {
  test(`at /mcp, a call is answered once when ${what}`, async () => {
    const client = await askedWhereAllAreOne();
    await end.act(client);
    await client.reply();
    assert.equal([client.seen, client.answers], [end.seen(SHARED), end.answers]);
    assert.equal(client.takenBack, [client.questionId]);
    await nothingIsLeft();
  });
}

test('at /mcp, a call keeps its reservation, and fails when that is lost', async () => {
  for (const [afterMs, seen] of [
    [29_000, 'done by a'],
    [31_000, 'BACKEND_UNAVAILABLE'],
  ] as const) {
    const client = await askedWhereAllAreOne();
    void harness.inner.fleet.remove('t', 'a', 30_000);
    await pass(afterMs);
    await client.reply();
    assert.equal([client.seen, client.answers], [seen, 1]);
    await harness.stop(0);
  }
});

for (const [what, act, seen] of [
  ['its owner may no longer use it', () => harness.changedCallers$.next('ann'), 'call_lost'],
  ['its hard maximum is over', () => pass(LIMITS.callDefaultBoundMs), 'BACKEND_TIMEOUT'],
  ['its instance has just died', () => harness.inner.backend('a').disconnect(), 'BACKEND_UNAVAILABLE'],
] as const) {
  test(`without a session, a waiting call ends when ${what}`, async () => {
    await start(LEGACY);
    const client = await new ModernClient(harness).ask();
    await act();
    await settled();
    await nothingIsLeft();
    await client.reply();
    await client.reply();
    assert.equal([client.seen, client.answers], [seen, 2]);
  });
}

test('without a session, a call is continued once, and only by its owner', async () => {
  await start(LEGACY);
  const [mine, theirs] = [
    await new ModernClient(harness).ask(),
    await new ModernClient(harness, 'bob').ask(),
  ];
  const thief = new ModernClient(harness, 'bob');
  thief.carried = mine.carried;
  await thief.reply();
  assert.is(thief.seen, 'invalid_request_state');
  await Promise.all([mine.reply(), mine.reply()]);
  assert.equal(mine.allSeen, ['done by a', 'call_lost']);
  await theirs.reply();
  assert.is(theirs.seen, 'done by a');
  await nothingIsLeft();
});

for (const template of ['t', undefined])
  test(`a question waits as long as a call may take, at ${template ?? 'all templates'}`, async () => {
    harness = new RoundsHarness(SHARED, 'never', 30 * 60_000);
    harness.template = template;
    await harness.add('a');
    const client = await (await LegacyClient.open(harness)).ask(
      template === undefined ? 't__write' : 'write',
    );
    await pass(29 * 60_000);
    await client.reply();
    assert.is(client.seen, 'done by a');
    await client.ask(template === undefined ? 't__write' : 'write', 2);
    await pass(31 * 60_000);
    assert.is(client.seen, NO_ANSWER);
  });

test.run();

/** A client that has called, and was asked, on `a`, with `b` beside it. */
async function asked(
  backend: BackendOptions,
  Client: typeof LegacyClient | typeof ModernClient,
  failover: TemplatePolicy['sessionFailover'],
): Promise<AskedClient> {
  await start(backend, failover);
  const client = Client === LegacyClient ? await LegacyClient.open(harness) : new ModernClient(harness);
  if (client instanceof LegacyClient) await harness.add('b');
  await client.ask();
  if (client instanceof ModernClient) await harness.add('b');
  return client;
}

async function askedWhereAllAreOne(): Promise<LegacyClient> {
  await start(SHARED);
  harness.template = undefined;
  return (await LegacyClient.open(harness)).ask('t__write');
}

/** Unrelated calls at the backends, and in flight. */
function others(event: string): number[] {
  return event.endsWith('with other calls under way') ? [1, 1] : [0, 0];
}

/** A modern server does not learn that its client did not answer; a legacy one does, and acts all the same. */
const NO_ANSWER = "Fulfilling input required by 'tools/call' failed: The client did not answer in time.";

/** Ways for a legacy client's call to end while it is asked. */
function ENDS() {
  return {
    'its session is deleted': {
      act: async (client: LegacyClient) => assert.is((await client.end()).status, 200),
      seen: () => 'SESSION_NOT_FOUND',
      answers: 1,
    },
    'its owner may no longer use it': {
      act: async (client: LegacyClient) => {
        harness.changedCallers$.next(client.ownerId);
        await settled();
      },
      seen: () => 'SESSION_NOT_FOUND',
      answers: 1,
    },
    'it is cancelled': {
      act: (client: LegacyClient) =>
        client.post({ method: 'notifications/cancelled', params: { requestId: 1 } }),
      seen: () => undefined,
      answers: 0,
    },
    'its client does not answer': {
      act: () => pass(11 * 60_000),
      seen: ({ handshake }: BackendOptions) => (handshake?.era === 'modern' ? NO_ANSWER : 'done by a'),
      answers: 1,
    },
  };
}

/** The tool calls that the backends received. */
function toolCalls(): number {
  const asked = ['a', 'b'].flatMap((id) => harness.conversations(id)).flatMap((one) => one.asked);
  return asked.filter((method) => method === 'tools/call').length;
}

async function nothingIsLeft(): Promise<void> {
  await settled();
  const waitedFor = harness.inner.fleet.ownRefs().map((ref) => ref.snapshot(1).inFlight);
  assert.equal([harness.calls, harness.inner.fleet.underWay, waitedFor], [0, 0, waitedFor.map(() => 0)]);
}
