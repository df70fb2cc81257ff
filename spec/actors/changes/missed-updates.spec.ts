// Updates of resources that a client may have missed while no backend was subscribed for it: it gets one of each of its resources,
// once a backend is subscribed again. For clients and backends of both eras, over HTTP and in programs.

import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { ChangeFeed } from '../../../src/actors/changes/change-feed.ts';
import { backendUnavailable } from '../../../src/domain/errors/backend-errors.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import type { ServerMessage } from '../../../src/domain/mcp/client.ts';
import type { ListChange } from '../../../src/domain/mcp/mcp.ts';
import { ask, Harness, listenTo, resultOf } from '../../helpers/backends/harness.ts';
import { FULL, FULL_MODERN, HTTP, modernProfile, STDIO } from '../../helpers/backends/profiles.ts';
import type { ScriptedExchange, ScriptedTransport } from '../../helpers/backends/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { pass, settled, simulatedClock, simulateTime } from '../../helpers/time/simulated-time.ts';
import { passTurns, untimedScheduler } from '../../helpers/time/turns.ts';

const test = suite('missed updates');
const UPDATED = 'notifications/resources/updated';
const URIS = ['x:1', 'x:2'];
const CELLS = [
  { name: 'a legacy program', fields: STDIO, handshake: FULL },
  { name: 'a modern program', fields: STDIO, handshake: FULL_MODERN },
  { name: 'a legacy backend over HTTP', fields: HTTP, handshake: FULL },
  { name: 'a modern backend over HTTP', fields: HTTP, handshake: FULL_MODERN },
  { name: 'a program of another node', fields: STDIO, handshake: FULL, isElsewhere: true },
];

let harness = new Harness();
let listChanged$ = new Subject<ListChange>();

simulateTime(test, () => {
  harness = new Harness();
  listChanged$ = new Subject();
});
test.after.each(() => harness.close());

for (const { name, ...cell } of CELLS) {
  const backend = { ...cell, acknowledges: false };
  test(`a session that moves to ${name} gets an update of each resource, once that is subscribed`, async () => {
    const session = await harness.openOnA({ ...backend, script: agrees }, { ...backend, script: waits });
    for (const uri of URIS) await resultOf(ask(session, { method: 'resources/subscribe', params: { uri } }));
    const { messages } = listenTo(session);
    await settled();
    assert.equal(updated(messages), [], 'it has missed nothing');
    harness.backend('a').disconnect();
    await settled();
    assert.equal(updated(messages), [], 'not before the backend is subscribed');
    for (const exchange of pending(harness.backend('b'))) agree(exchange);
    await settled();
    assert.equal(updated(messages).toSorted(), URIS);
  });

  test(`a client without a session gets an update of each resource when ${name} is back`, async () => {
    const ref = await harness.add('a', { ...backend, script: agrees });
    const { messages } = modernClient(URIS);
    await settled();
    harness.rewrite('a', waits);
    assert.equal(updated(messages), [], 'it has missed nothing');
    ref.restart();
    await settled();
    await pass(LIMITS.restartFirstMs);
    assert.equal(updated(messages), [], 'not before the backend is subscribed');
    for (const exchange of pending(harness.backend('a'))) agree(exchange);
    await settled();
    assert.equal(updated(messages).toSorted(), URIS);
  });
}

test('clients of both eras get an update of each resource when a modern backend is subscribed again', async () => {
  await harness.add('a', { fields: HTTP, handshake: FULL_MODERN, acknowledges: false, script: agrees });
  const session = await harness.openSession();
  const uri = 'x:1';
  await resultOf(ask(session, { method: 'resources/subscribe', params: { uri } }));
  const received = [listenTo(session).messages, modernClient(['x:1', 'x:2']).messages];
  await settled();
  const seen = () => received.map(updated);
  for (const loss of ['complete', 'result'] as const) {
    for (const messages of received) messages.splice(0);
    harness.rewrite('a', waits);
    const [listening] = harness.backend('a').open;
    listening?.[loss]();
    await pass(LIMITS.restartLongestMs);
    assert.equal(seen(), [[], []], 'it is not subscribed yet');
    for (const exchange of pending(harness.backend('a'))) agree(exchange);
    await settled();
    assert.equal(seen(), [['x:1'], ['x:1', 'x:2']]);
  }
});

test('so they do when it refused the resources at first, and when it agreed later than they were told', async () => {
  await harness.add('a', { fields: HTTP, handshake: FULL_MODERN, acknowledges: false, script: agrees });
  await settled();
  const [lists] = harness.backend('a').open;
  harness.rewrite('a', (exchange) => (isOfResources(exchange) ? exchange.refuse(-32602) : agrees(exchange)));
  const { messages } = modernClient(['x:1']);
  await settled();
  harness.rewrite('a', agrees);
  await pass(LIMITS.restartFirstMs);
  assert.equal(updated(messages.splice(0)), ['x:1']);
  assert.is(lists?.isCancelled, true);

  harness.rewrite('a', waits);
  const session = await harness.openSession();
  const late = listenTo(session);
  const subscribed = ask(session, { method: 'resources/subscribe', params: { uri: 'x:2' } });
  await pass(LIMITS.backgroundMs);
  await resultOf(subscribed);
  assert.equal(updated(late.messages), []);
  for (const exchange of pending(harness.backend('a'))) agree(exchange);
  await settled();
  assert.equal(updated(late.messages), ['x:2']);
});

test('a request that a legacy program did not answer leads to an update once it agrees', async () => {
  await harness.add('a', { fields: STDIO, handshake: FULL, script: waits });
  const clients = [modernClient(['x:1']), modernClient(['x:1', 'x:2'])];
  await settled();
  const [first, second] = pending(harness.backend('a'));
  first?.fail(backendUnavailable('reset', { delivered: 'unknown' }));
  second?.result();
  await pass(5_000);
  for (const exchange of pending(harness.backend('a'))) agree(exchange);
  await settled();
  assert.equal(
    clients.map(({ messages }) => updated(messages)),
    [['x:1'], ['x:1']],
  );
});

test('a conversation over HTTP that ended, or could not be opened, leads to an update of each resource', async () => {
  await harness.add('a', { fields: HTTP, handshake: FULL, script: agrees });
  harness.backend('a').thrownByOpenConversation = new Error('no conversation');
  const { messages } = modernClient(URIS);
  await settled();
  harness.backend('a').thrownByOpenConversation = undefined;
  await pass(500);
  assert.equal(updated(messages.splice(0)), URIS);
  await pass(1_000);
  harness.conversations('a').at(-1)?.disconnect();
  await pass(1_000);
  assert.equal(updated(messages), URIS);
});

test('a stream of a legacy backend over HTTP that was open again leads to an update of each resource', async () => {
  await harness.add('a', { fields: HTTP, handshake: FULL, script: agrees });
  const session = await harness.openSession();
  for (const uri of URIS) await resultOf(ask(session, { method: 'resources/subscribe', params: { uri } }));
  const received = [listenTo(session).messages, modernClient(URIS).messages];
  await settled();
  for (const conversation of harness.conversations('a')) conversation.resumed$.next();
  await settled();
  assert.equal(received.map(updated), [URIS, URIS]);
});

test('after a break of its own stream a session gets a change of each list that its server announces', async () => {
  const capabilities = { ...FULL.capabilities, tools: {}, prompts: { listChanged: true } };
  await harness.add('a', { fields: HTTP, handshake: { ...FULL, capabilities }, script: agrees });
  const { messages } = listenTo(await harness.openSession());
  await settled();
  messages.splice(0);
  harness.conversations('a')[0]?.resumed$.next();
  await settled();
  assert.equal(
    messages.map(({ method }) => method),
    ['notifications/prompts/list_changed', 'notifications/resources/list_changed'],
  );
});

test('a further instance brings no updates, and many that restart bring them once per second', async () => {
  for (const id of ['a', 'b', 'c']) await harness.add(id, { fields: STDIO, handshake: FULL, script: agrees });
  const { messages } = modernClient(URIS);
  await settled();
  await harness.add('d', { fields: STDIO, handshake: FULL, script: agrees });
  assert.equal(updated(messages), []);
  for (const id of ['a', 'b', 'c']) harness.ref(id).restart();
  await settled();
  assert.equal(updated(messages.splice(0)), URIS);
  await pass(1_000);
  assert.equal(updated(messages.splice(0)), URIS);
  await harness.fleet.remove('t', 'a', 0);
  await pass(1_000);
  assert.equal(updated(messages), []);
  await harness.add('e', { fields: STDIO, handshake: FULL, script: agrees });
  assert.equal(updated(messages), URIS, 'it may be in the place of the one that was removed');
});

test('sends the updates in tasks, until a client leaves or a further break begins them anew', async () => {
  harness.close();
  harness = new Harness({ perTurn: 2 });
  await harness.add('a', { fields: STDIO, handshake: FULL_MODERN, acknowledges: false, script: agrees });
  await passTurns(40);
  const uris = Array.from({ length: 40 }, (_, n) => `x:${n}`);
  const session = await harness.openSession();
  const { messages, subscription } = listenTo(session);
  const asked = uris.map((uri) => ask(session, { method: 'resources/subscribe', params: { uri } }));
  for (const each of asked) await resultOf(each);
  await passTurns(40);
  const counts: number[] = [];
  const breakOff = async (turns: number): Promise<void> => {
    harness.backend('a').open.at(-1)?.complete();
    await pass(LIMITS.restartLongestMs);
    for (let turn = 0; turn < turns; turn += 1) {
      counts.push(updated(messages).length);
      await passTurns(1);
    }
  };
  await breakOff(2);
  await breakOff(40);
  const all = updated(messages);
  assert.equal(all.slice(-40), uris);
  assert.ok(all.length < 80, 'the second break begins them anew');
  const rises = counts.slice(1).map((count, turn) => count - (counts[turn] ?? 0));
  assert.ok(Math.max(...rises.slice(2)) <= 2, `${counts}`);
  messages.splice(0);
  await breakOff(0);
  subscription.unsubscribe();
  const before = messages.length;
  await passTurns(40);
  assert.is(messages.length, before);
});

test.run();

function modernClient(uris: readonly string[]) {
  const { statelessConversations, fleet } = harness;
  const feed = new ChangeFeed({
    fleet: {
      templates: fleet.templates,
      added$: fleet.added$,
      listChanged$,
    },
    statelessConversations,
    scheduler: untimedScheduler(Number.POSITIVE_INFINITY),
    random: () => 0.5,
    clock: simulatedClock,
  });
  const messages: ServerMessage[] = [];
  const wanted = { resources: new Set(uris) };
  const changes$ = feed.changes('t', { id: 'ann' }, modernProfile(), wanted);
  return { messages, subscription: changes$.subscribe((message) => messages.push(message)) };
}

/** The resources of which there was an update. */
function updated(messages: readonly ServerMessage[]): string[] {
  return messages.flatMap(({ method, params }) => (method === UPDATED ? String(params.uri) : []));
}

function isSubscription({ request: { method } }: ScriptedExchange): boolean {
  return method === 'resources/subscribe' || method === 'subscriptions/listen';
}

function agree(exchange: ScriptedExchange): void {
  if (exchange.request.method === 'resources/subscribe') exchange.result();
  else exchange.notify('notifications/subscriptions/acknowledged');
}

/** Subscribes at once, and answers everything else. */
function agrees(exchange: ScriptedExchange): void {
  if (isSubscription(exchange)) agree(exchange);
  else exchange.result();
}

/** Subscribes to resources when the spec agrees. */
function waits(exchange: ScriptedExchange): void {
  if (!isOfResources(exchange)) agrees(exchange);
}

function isOfResources({ request: { params } }: ScriptedExchange): boolean {
  return (params?.uri ?? Object(params?.notifications).resourceSubscriptions) !== undefined;
}

/** The open subscriptions to resources that the backend has not agreed to. */
function pending(backend: ScriptedTransport): ScriptedExchange[] {
  return [backend, ...backend.conversations].flatMap(({ open }) => open.filter(isOfResources));
}
