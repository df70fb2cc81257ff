// Questions of servers under failure: clients that end, lose their rights, cancel, or answer twice, late, for somebody else.
// Each call is answered once, and nothing is left of it at the backends and in the gateway.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { suite } from '../helpers/suite.ts';
import {
  type Backend,
  LEGACY,
  LegacyClient,
  ModernClient,
  OWN,
  pass,
  RoundsHarness,
  SHARED,
  settled,
} from './rounds-harness.ts';

const test = suite('mcp: questions under failure');
let harness: RoundsHarness;

test.before.each(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
});
test.after.each(async () => {
  await harness.stop(0);
  mock.timers.reset();
});

/** What the session of a legacy client has at its server. */
const BACKENDS = {
  'in the modern conversation that it shares': SHARED,
  'in a modern conversation of its own': OWN,
  'in a legacy conversation of its own': LEGACY,
};

for (const [where, backend] of Object.entries(BACKENDS)) {
  const open = async () => {
    harness = new RoundsHarness(backend);
    await harness.add('a');
    return LegacyClient.open(harness);
  };

  for (const [what, end] of Object.entries(ENDS())) {
    test(`${where}, a call is answered once when ${what}, and its question is taken back`, async () => {
      const client = await open();
      await client.ask();
      await end.act(client);
      assert.equal([client.seen, client.answers], [end.seen(backend), end.answers]);
      assert.equal(client.takenBack, end.takesBack ? [client.questionId] : []);
      await client.reply();
      await nothingIsLeft();
      assert.is(client.answers, end.answers);
    });
  }

  test(`${where}, a question is answered once, however often`, async () => {
    const client = await open();
    await client.ask();
    const { questionId } = client;
    await client.reply();
    await client.reply(questionId);
    assert.equal([client.seen, client.answers], ['done by a', 1]);
    assert.equal(toolCalls(), backend === LEGACY ? 1 : 2);
    await nothingIsLeft();
  });

  test(`${where}, a question waits on while others are answered that nobody asked`, async () => {
    const client = await open();
    await client.ask();
    const { questionId } = client;
    for (const id of [questionId + 1, String(questionId), 0, -1, 'request-1']) await client.reply(id);
    assert.is(client.seen, undefined);
    await client.reply(questionId);
    assert.is(client.seen, 'done by a');
    await nothingIsLeft();
  });

  test(`${where}, nobody answers for another session, whose ids are the same`, async () => {
    const clients = [await open(), await LegacyClient.open(harness), await LegacyClient.open(harness, 'bob')];
    for (const client of clients) await client.ask();
    const [mine, second, third] = clients.map(({ questionId }) => questionId);
    await clients[1]?.reply(mine);
    await clients[2]?.reply(mine);
    await clients[0]?.reply(second);
    assert.equal(
      clients.map(({ seen }) => seen),
      [undefined, undefined, undefined],
    );
    await clients[2]?.reply(third);
    assert.equal(
      clients.map(({ seen }) => seen),
      [undefined, undefined, 'done by a'],
    );
    for (const client of clients) await client.reply();
    assert.equal(
      clients.map(({ answers }) => answers),
      [1, 1, 1],
    );
    await nothingIsLeft();
  });

  test(`${where}, a reply that crosses the death of the instance is of no effect`, async () => {
    const client = await open();
    await client.ask();
    harness.transports.get('a')?.at(-1)?.lose();
    await Promise.all([client.reply(), client.reply()]); // nothing has settled in between
    await pass(200);
    assert.equal([client.seen, client.answers], ['BACKEND_UNAVAILABLE', 1]);
    await nothingIsLeft();
  });
}

for (const [what, end] of Object.entries(ENDS())) {
  test(`where all templates are one, a call is answered once when ${what}`, async () => {
    harness = new RoundsHarness(SHARED);
    await harness.add('a');
    harness.template = undefined;
    const client = await (await LegacyClient.open(harness)).ask('t__write');
    await end.act(client);
    await client.reply();
    assert.equal([client.seen, client.answers], [end.seen(SHARED), end.answers]);
    assert.equal(client.takenBack, [client.questionId]);
    await nothingIsLeft();
  });
}

test('where all templates are one, a call keeps its reservation, and fails when that is lost', async () => {
  for (const [afterMs, seen] of [
    [29_000, 'done by a'],
    [31_000, 'BACKEND_UNAVAILABLE'],
  ] as const) {
    harness = new RoundsHarness(SHARED);
    await harness.add('a');
    harness.template = undefined;
    const client = await (await LegacyClient.open(harness)).ask('t__write');
    void harness.inner.fleet.remove('t', 'a', 30_000);
    await pass(afterMs);
    await client.reply();
    assert.equal([client.seen, client.answers], [seen, 1]);
    await harness.stop(0);
  }
});

for (const [what, act, seen] of [
  ['its owner may not use it any more', () => harness.changedCallers$.next('ann'), 'call_not_here'],
  ['ten minutes have passed', () => pass(10 * 60_000), 'call_not_here'],
  ['its instance has just died', () => harness.transports.get('a')?.at(-1)?.lose(), 'BACKEND_UNAVAILABLE'],
] as const) {
  test(`without a session, a call that waits is over when ${what}`, async () => {
    harness = new RoundsHarness(LEGACY);
    await harness.add('a');
    const client = await new ModernClient(harness).ask();
    await act();
    await settled();
    await nothingIsLeft();
    await client.reply();
    await client.reply();
    assert.equal([client.seen, client.answers], [seen, 2]);
  });
}

test('without a session, a call is gone on with once, and by its owner', async () => {
  harness = new RoundsHarness(LEGACY);
  await harness.add('a');
  const [mine, theirs] = [
    await new ModernClient(harness).ask(),
    await new ModernClient(harness, 'bob').ask(),
  ];
  const thief = new ModernClient(harness, 'bob');
  thief.carried = mine.carried;
  await thief.reply();
  assert.is(thief.seen, 'invalid_request_state');
  await Promise.all([mine.reply(), mine.reply()]);
  assert.equal(mine.allSeen, ['done by a', 'call_not_here']);
  await theirs.reply();
  assert.is(theirs.seen, 'done by a');
  await nothingIsLeft();
});

test.run();

/** What a modern server hears of it is nothing; a legacy one is told, and does it all the same. */
const NO_ANSWER = "Fulfilling input required by 'tools/call' failed: The client did not answer in time.";

/** Ways for a legacy client's call to end while it is asked. */
function ENDS() {
  return {
    'its session is deleted': {
      act: async (client: LegacyClient) => assert.is((await client.end()).status, 200),
      seen: () => 'SESSION_NOT_FOUND',
      answers: 1,
      takesBack: true,
    },
    'its owner may not use it any more': {
      act: async (client: LegacyClient) => {
        harness.changedCallers$.next(client.ownerId);
        await settled();
      },
      seen: () => 'SESSION_NOT_FOUND',
      answers: 1,
      takesBack: true,
    },
    'it is cancelled': {
      act: (client: LegacyClient) =>
        client.post({ method: 'notifications/cancelled', params: { requestId: 1 } }),
      seen: () => undefined,
      answers: 0,
      takesBack: true,
    },
    'its client does not answer': {
      act: () => pass(11 * 60_000),
      seen: ({ peer }: Backend) => (peer.era === 'modern' ? NO_ANSWER : 'done by a'),
      answers: 1,
      takesBack: true,
    },
  };
}

/** Calls of tools that came to the backends. */
function toolCalls(): number {
  const asked = ['a', 'b'].flatMap((id) => harness.conversations(id)).flatMap((one) => one.asked);
  return asked.filter((method) => method === 'tools/call').length;
}

async function nothingIsLeft(): Promise<void> {
  await settled();
  const waitedFor = harness.inner.fleet.all().map((ref) => ref.snapshot(1).inFlight);
  assert.equal([harness.calls, harness.inner.fleet.inFlight, waitedFor], [0, 0, waitedFor.map(() => 0)]);
}
