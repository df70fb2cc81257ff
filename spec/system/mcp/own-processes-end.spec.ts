// Dedicated processes outlive the shared one, but end with each command of an operator that ends their instance, in any state
// of the shared process. Counted among the processes of the machine.

import * as assert from 'uvu/assert';
import { eventually } from '../../helpers/eventually.ts';
import { isAnswer, isQuestion, type LegacyClient, requestText, textOf } from '../../helpers/mcp-client.ts';
import type { OpenStream } from '../../helpers/mcp-wire.ts';
import { canFindProcesses, isRunning, NO_PROCESSES } from '../../helpers/processes.ts';
import { suite } from '../../helpers/suite.ts';
import {
  allGone,
  count,
  type OwnHarness,
  ownTests,
  pidOf,
  QUESTION,
  SAID_YES,
  said,
  YES,
} from './own-processes.ts';

const suited = suite('the end of dedicated processes', { timeoutMs: 60_000 });
const test = ownTests(suited.needs(canFindProcesses, NO_PROCESSES));

const LOST = '404 -32001';
const isNone = (pids: readonly number[]) => pids.length === 0;

/** The states of the shared process. */
const STATES: Readonly<Record<string, (harness: OwnHarness) => unknown>> = {
  runs: () => {},
  'died just now': (harness) => harness.kill(harness.sharedPid()),
  'waits to be started': (harness) => harness.lose(),
  'fails at every start': (harness) => harness.lose().then(() => harness.triesLater()),
  'came back': (harness) => harness.loseAndRegain(),
};

/** Commands of an operator; `isOver` if the instance does not come back. */
const ENDS: Readonly<
  Record<string, { readonly act: (harness: OwnHarness) => Promise<void>; readonly isOver: boolean }>
> = {
  'a restart': { act: (harness) => harness.command('restart'), isOver: false },
  'a replacement': { act: (harness) => harness.add('a', { isAwaited: false }), isOver: false },
  'a deregistration': { act: (harness) => harness.command('deregister'), isOver: true },
  'the end of the gateway': { act: (harness) => harness.app.close(), isOver: true },
};

for (const [what, { act, isOver }] of Object.entries(ENDS)) {
  for (const [state, reach] of Object.entries(STATES)) {
    test(`${what} ends all dedicated processes when the shared one ${state}`, {}, async (harness) => {
      await harness.add();
      const clients = [await harness.client(), await harness.client()];
      const own = await Promise.all(clients.map(pidOf));
      await reach(harness);
      assert.equal(own.map(isRunning), [true, true], 'they are there until then');
      const before = harness.processes();
      await act(harness);
      await allGone(before);
      harness.unbar();
      if (isOver) return assert.equal(await eventually(async () => harness.processes(), isNone), []);
      await harness.regain();
      assert.equal(await Promise.all(clients.map((client) => count(client))), [LOST, LOST]);
      await harness.settlesAt(0);
    });
  }
}

// Source: docs/guides/mcp-sessions.md, "When the instance is gone".
test('a restart without a shared process waits for a call that waits for its client', {}, async (harness) => {
  await harness.add();
  const client = await harness.client();
  const pid = await pidOf(client);
  const call = await ask(client);
  await harness.lose();
  await harness.command('restart');
  await reply(client, call);
  assert.match(textOf(await call.sees(isAnswer)), SAID_YES);
  await allGone([pid]);
  await harness.regain();
  assert.is(await count(client), LOST);
});

for (const [state, reach] of Object.entries(STATES)) {
  test(`failover never: a drained session finishes its call, then gets 404, when the shared process ${state}`, {}, async (harness) => {
    const [client, pid] = await openedAtA(harness);
    const call = await ask(client);
    await reach(harness);
    await harness.command('drain');
    await reply(client, call);
    assert.match(textOf(await call.sees(isAnswer)), SAID_YES);
    assert.is(await count(client), LOST);
    await allGone([pid]);
  });

  test(`failover always: a drained session moves and leaves no process when the shared one ${state}`, {
    policy: { sessionFailover: 'always' },
  }, async (harness) => {
    const [client, pid] = await openedAtA(harness);
    await reach(harness);
    await harness.command('drain');
    assert.is(said(await client.call('name')), 'b');
    await allGone([pid]);
  });
}

for (const [state, reach] of Object.entries(STATES)) {
  test(`without another instance, a drained session gets 503 until resume when the shared process ${state}`, {}, async (harness) => {
    await harness.add();
    const client = await harness.client();
    const pid = await pidOf(client);
    await reach(harness);
    await harness.command('drain');
    assert.is(await count(client), '200 503');
    await harness.command('resume');
    assert.equal([await count(client), await pidOf(client)], ['1', pid]);
  });
}

suited.run();

/** A session with a process of `a`, and another instance to which it could move. */
async function openedAtA(harness: OwnHarness): Promise<readonly [client: LegacyClient, pid: number]> {
  await harness.add('a');
  const client = await harness.client();
  const pid = await pidOf(client);
  await harness.add('b');
  return [client, pid];
}

/** Begins a call, up to its question. */
async function ask(client: LegacyClient): Promise<OpenStream> {
  const body = requestText('under way', 'tools/call', { name: 'ask', arguments: QUESTION });
  const call = await client.wire.stream(client.path, { headers: client.headers, body });
  await call.sees(isQuestion);
  return call;
}

/** Answers that question. */
async function reply(client: LegacyClient, { messages }: OpenStream): Promise<void> {
  const { id } = messages.find(isQuestion) ?? {};
  await client.send(JSON.stringify({ jsonrpc: '2.0', id, result: YES }));
}
