// Dedicated conversations and processes of one instance: shared, bounded, warm, and ended.

import { mock } from 'node:test';
import { setImmediate as settled } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import {
  DedicatedConversations,
  type DedicatedConversationsOptions,
} from '../../../src/actors/instances/dedicated-conversations.ts';
import { ANONYMOUS, grantPrincipalId } from '../../../src/domain/accounts/principal.ts';
import { backendUnavailable } from '../../../src/domain/errors/backend-errors.ts';
import type { GatewayEvent } from '../../../src/domain/events/events.ts';
import type { TransportKind } from '../../../src/domain/instances/transport-kinds.ts';
import { QUESTION_REFUSALS } from '../../../src/domain/mcp/client.ts';
import { spreadClock } from '../../../src/domain/time/clock.ts';
import type { Conversation } from '../../../src/transports/transport.ts';
import { PLAIN } from '../../helpers/backends/profiles.ts';
import { ScriptedTransport } from '../../helpers/backends/scripted-transport.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { simulatedClock, simulateTime } from '../../helpers/time/simulated-time.ts';
import { untimedScheduler } from '../../helpers/time/turns.ts';

const test = suite('dedicated conversations');
type Open = () => Promise<Conversation | undefined>;
simulateTime(test);
function setUp(transport: TransportKind = 'stdio') {
  const opener = { next: Promise.resolve<Conversation | undefined>(undefined) };
  const events: GatewayEvent[] = [];
  const conversations = make(transport, () => opener.next, { emit: (event) => void events.push(event) });
  const use = (opened: Promise<Conversation | undefined>, idleMs?: number) => {
    opener.next = opened;
    const idle = idleMs === undefined ? {} : { idleMs };
    return conversations.use({ ownerId: 'user:1', profile: PLAIN, ...idle });
  };
  const open = async (opened: Promise<Conversation | undefined>) => use(opened).conversation.opening;
  return { conversations, events, use, open };
}

test('reports why a conversation could not be opened, unless its use had ended', async () => {
  const { events, open, use } = setUp();
  const failure = () => Promise.reject(backendUnavailable('exited with code 1', { delivered: 'no' }));
  const { conversation, end } = use(failure());
  end();
  assert.is(await codeOf(conversation.opening), 'BACKEND_UNAVAILABLE');
  assert.equal(events, []);
  assert.is(await codeOf(open(failure())), 'BACKEND_UNAVAILABLE');
  const [event] = events;
  assert.is(event?.type, 'upstream.failed');
  const { code, reason } = Object(event);
  assert.is(code, 'BACKEND_UNAVAILABLE');
  assert.match(reason, 'exited with code 1');
});

test('ends an idle conversation to make room for a new one, of the same owner where its share is full', async () => {
  const processes: ScriptedTransport[] = [];
  const dedicatedBounds = { processes: 9, share: 0.25 }; // 8 for each
  const open = async () => {
    processes.push(new ScriptedTransport());
    return processes.at(-1);
  };
  const conversations = make('stdio', open, { dedicatedBounds });
  const take = (id: string, idleMs?: number) =>
    conversations.use({ ownerId: id, profile: PLAIN, ...(idleMs === undefined ? {} : { idleMs }) });
  const mine = Array.from({ length: 8 }, () => take('ann', 60_000));
  take('di', 60_000).end();
  await settled();
  const refused = (id: string, idleMs?: number) => codeOf((async () => take(id, idleMs))());
  assert.equal([await refused('ann'), await refused('ann', 60_000)], ['QUEUE_FULL', 'QUEUE_FULL']);
  const other = take('bo');
  await settled();
  assert.is(await refused('cy'), 'QUEUE_FULL');
  for (const process of processes) process.closesSlowly = true;
  mine[3]?.end();
  const session = take('ann');
  await settled();
  assert.equal([processes[3]?.isClosed, processes.length], [true, 10], 'it waits until the other has ended');
  processes[3]?.finishClosing();
  assert.is(await session.conversation.opening, processes[10]);
  other.end();
  assert.is(await refused('cy'), 'QUEUE_FULL', 'one that is ending counts until its end');
  processes[9]?.finishClosing();
  await settled();
  take('cy');
  assert.is(conversations.remainingConversations, 0);
  for (const process of processes) process.finishClosing();
  await conversations.end();
});

test('a conversation that one client of a user left makes room for another client of that user', async () => {
  const { processes, opened, open } = makeProcesses(9, 0.25);
  const clients = Array.from({ length: 9 }, (_, n) => grantPrincipalId(`${n}`, 'ann'));
  for (const ownerId of clients.slice(0, 8)) {
    const { conversation, end } = processes.use({ ownerId, profile: PLAIN, idleMs: 60_000 });
    await conversation.opening;
    end();
  }
  await open(clients[8] ?? '');
  await open('bo');
  assert.equal(
    [opened.map(({ isClosed }) => isClosed).indexOf(true), processes.remainingConversations],
    [0, 0],
  );
});

test('the total of all owners is limited', async () => {
  const { processes, opened, open } = makeProcesses(3);
  for (const ownerId of ['ann', 'bo', 'cy']) await open(ownerId);
  const refusal = await open('dee').catch((thrown: unknown) => thrown);
  assert.match(String(refusal), '; setting sessions.max_processes)');
  opened[1]?.disconnect();
  await settled();
  assert.is(processes.remainingConversations, 1);
  await open('dee');
  assert.is(await codeOf(open(ANONYMOUS.id)), 'QUEUE_FULL');
  assert.is(processes.remainingConversations, 0);
});

test('a refused or failed opening makes room for others', async () => {
  const { processes, openWith, open } = makeProcesses(1);
  const fail = () => Promise.reject(backendUnavailable('no', { delivered: 'no' }));
  assert.is(await codeOf(openWith('ann', fail)), 'BACKEND_UNAVAILABLE');
  assert.is(await openWith('ann', async () => undefined), undefined);
  await open('ann');
  assert.is(await codeOf(open('ann')), 'QUEUE_FULL');
  assert.is(processes.remainingConversations, 0);
});

test('waits for a log level at most five seconds, sets it once, and accepts a refusal', async () => {
  const { use } = setUp();
  const backend = new ScriptedTransport({ capabilities: { logging: {} } });
  const { conversation } = use(Promise.resolve(backend), 60_000);
  await settled();
  const late = conversation.requireLogLevel('error');
  assert.is(conversation.requireLogLevel('error'), late);
  await settled();
  mock.timers.tick(5_000);
  await late;
  assert.is(backend.last.isCancelled, true);
  assert.is(conversation.requireLogLevel('alert'), undefined);
  const refused = conversation.requireLogLevel('info');
  await settled();
  backend.last.refuse(-32601);
  await refused;
  await conversation.close();
});

test('asks for a log level again that could not be set, beside calls that do not wait for it', async () => {
  const { use } = setUp();
  const backend = new ScriptedTransport({ capabilities: { logging: {} } });
  const { conversation } = use(Promise.resolve(backend), 60_000);
  await settled();
  const failed = conversation.requireLogLevel('error');
  await settled();
  backend.last.fail(backendUnavailable('it was too busy', { delivered: 'no' }));
  await failed;
  assert.is(conversation.requireLogLevel('error'), undefined);
  await settled();
  assert.equal([backend.asked.length, backend.last.isOpen], [2, true]);
  assert.is(conversation.requireLogLevel('error'), undefined, 'one request at a time');
  backend.last.result();
  await settled();
  assert.is(conversation.requireLogLevel('alert'), undefined);
  assert.is(backend.asked.length, 2);
  await conversation.close();
});

test('refuses questions of the backend during a request of the gateway itself', async () => {
  const { use } = setUp();
  const backend = new ScriptedTransport();
  const { conversation } = use(Promise.resolve(backend), 60_000);
  await conversation.requiredOpening;
  const { answer } = conversation.feed?.subscribe('x:1') ?? {};
  await settled(); // requests about one resource are sent in turn
  backend.last.ask('roots/list');
  assert.equal(backend.last.replies, [QUESTION_REFUSALS.noCall]);
  backend.last.result();
  assert.is((await answer)?.kind, 'result');
  await conversation.close();
});

test.run();

function make(transport: TransportKind, open: Open, options: Partial<DedicatedConversationsOptions> = {}) {
  const scheduler = untimedScheduler();
  return new DedicatedConversations({
    definition: { template: 't', id: 'i', serverId: 's', transport },
    emit: () => {},
    clock: spreadClock(scheduler, simulatedClock),
    scheduler,
    transport: () => ({ openConversation: open }),
    ...options,
  });
}

function makeProcesses(processes: number, share = 1) {
  const opened: ScriptedTransport[] = [];
  const start = async () => {
    const process = new ScriptedTransport();
    opened.push(process);
    return process;
  };
  let next: () => Promise<ScriptedTransport | undefined> = start;
  const conversations = make('stdio', () => next(), { dedicatedBounds: { processes, share } });
  const openWith = async (id: string, how: typeof next) => {
    next = how;
    return conversations.use({ ownerId: id, profile: PLAIN }).conversation.opening;
  };
  const open = (ownerId: string) => openWith(ownerId, start);
  return { processes: conversations, opened, open, openWith };
}
