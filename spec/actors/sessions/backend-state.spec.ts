// What a session tells its instance of its client, and again after a move: the log level, subscriptions, and subscriptions that several
// sessions share.

import * as assert from 'uvu/assert';
import type { ClientSession } from '../../../src/actors/sessions/client-session.ts';
import type { ExchangeRequest } from '../../../src/domain/calls/exchange.ts';
import { answers, ask, codeOf, Harness, listenTo, resultOf, silent } from '../../helpers/backends/harness.ts';
import { ASKABLE, FULL, FULL_MODERN, HTTP, PLAIN, STDIO } from '../../helpers/backends/profiles.ts';
import { suite } from '../../helpers/suite.ts';
import { pass, settled, simulateTime } from '../../helpers/time/simulated-time.ts';
import { passTurns } from '../../helpers/time/turns.ts';

const test = suite('client session: backend state');
let harness = new Harness();

simulateTime(test, () => {
  harness = new Harness();
});
test.after.each(() => harness.close());

const LEVEL: ExchangeRequest = { method: 'logging/setLevel', params: { level: 'debug' } };
const subscribe = (uri: string): ExchangeRequest => ({ method: 'resources/subscribe', params: { uri } });
const unsubscribe = (uri: string): ExchangeRequest => ({ method: 'resources/unsubscribe', params: { uri } });

test('sends its log level and subscriptions in a dedicated conversation, and again after a move', async () => {
  for (const id of ['a', 'b']) await harness.add(id, { handshake: FULL, fields: HTTP, script: answers({}) });
  const session = await harness.openSession();
  const [from, to] = harness.conversations('a').length > 0 ? ['a', 'b'] : ['b', 'a'];
  for (const request of [LEVEL, subscribe('x:1'), unsubscribe('x:1'), subscribe('x:2')]) {
    await resultOf(ask(session, request));
  }
  assert.is(session.value.logLevel, 'debug');
  harness.backend(from).disconnect();
  await settled();
  await resultOf(ask(session, 'read'));
  const [conversation] = harness.conversations(to);
  const sent = conversation?.exchanges.map(({ request }) => request);
  assert.equal([sent?.slice(0, 2), conversation?.asked.at(-1)], [[LEVEL, subscribe('x:2')], 'tools/call']);
});

test('does not send a log level or subscription again that its backend refused', async () => {
  await harness.add('a', { handshake: FULL, fields: HTTP, script: (exchange) => exchange.refuse(-32602) });
  const session = await harness.openSession();
  assert.is(await resultOf(ask(session, LEVEL)), -32602);
  assert.is(await resultOf(ask(session, subscribe('x:1'))), -32602);
  assert.is(session.value.logLevel, undefined);
  harness.conversations('a')[0]?.disconnect();
  ask(session, 'read');
  await settled();
  assert.equal(harness.conversations('a')[1]?.asked, ['tools/call']);
});

test('remembers no log level that there is not, though its backend agreed', async () => {
  await harness.add('a', { handshake: FULL, fields: HTTP, script: answers({}) });
  const session = await harness.openSession();
  const level = 'debug'.repeat(1_000);
  assert.equal(await resultOf(ask(session, { method: 'logging/setLevel', params: { level } })), {});
  assert.is(session.value.logLevel, undefined);
});

test('refuses a subscription when all URIs of its client together are too long', async () => {
  await harness.add('a', { handshake: FULL_MODERN });
  const session = await harness.openSession();
  const uriOf = (at: number) => `x:${at}${'x'.repeat(8_000)}`;
  for (let at = 0; at < 32; at += 1) assert.equal(await resultOf(ask(session, subscribe(uriOf(at)))), {});
  assert.is(await resultOf(ask(session, subscribe(uriOf(32)))), -32602);
  assert.equal(await resultOf(ask(session, subscribe(uriOf(0)))), {});
  assert.is(session.value.uris.length, 32);
});

test('fails a log level when no dedicated process can be opened, and stays bound', async () => {
  await harness.add('a', { handshake: FULL });
  const session = await harness.openSession();
  harness.backend('a').thrownByOpenConversation = new Error('no room');
  const call = ask(session, LEVEL);
  const other = ask(session, 'read');
  assert.is((await call.end) instanceof Error, true);
  assert.is(await resultOf(other), 'a');
  assert.is(session.isShared, true);
});

test('calls wait for the dedicated process in which a log level is being set', async () => {
  await harness.add('a', { handshake: FULL });
  const session = await harness.openSession();
  await harness.add('b', { handshake: FULL });
  const { thaw } = harness.freeze('a');
  const calls = [ask(session, LEVEL), ask(session, 'write')];
  thaw();
  for (const { end } of calls) assert.is(await end, 'a');
  assert.equal(harness.conversations('a')[0]?.asked, ['logging/setLevel', 'tools/call']);
});

test('accepts a log level without effect where the template shares its processes', async () => {
  harness.setPolicy({ processSharing: 'shared' });
  await harness.add('a', { handshake: FULL });
  const session = await harness.openSession(ASKABLE);
  assert.equal(await resultOf(ask(session, LEVEL)), {});
  assert.is(session.value.logLevel, 'debug');
  assert.is(session.isShared, true);
  assert.is(harness.backend('a').asked.includes('logging/setLevel'), false);
});

test('passes on the refusal when a process without logging refuses a log level', async () => {
  await harness.add('a', { script: (exchange) => exchange.refuse(-32601) });
  const session = await harness.openSession();
  assert.is(await resultOf(ask(session, LEVEL)), -32601);
  assert.is(session.isShared, true);
});

test('answers log level and subscriptions for a dedicated modern process, and listens there', async () => {
  harness.setPolicy({ processSharing: 'isolated' });
  for (const id of ['a', 'b']) await harness.add(id, { handshake: FULL_MODERN, fields: STDIO });
  const session = await harness.openSession();
  const [from, to] = harness.conversations('a').length > 0 ? ['a', 'b'] : ['b', 'a'];
  const { messages, subscription } = listenTo(session);
  await settled();
  for (const request of [LEVEL, subscribe('x:1'), unsubscribe('x:1'), subscribe('x:2')]) {
    assert.equal(await resultOf(ask(session, request)), {});
  }
  assert.is(session.value.logLevel, 'debug');
  const questions = (id: string) =>
    harness.conversations(id)[0]?.open.map(({ request }) => request.params) ?? [];
  const wanted = { notifications: { resourcesListChanged: true, resourceSubscriptions: ['x:2'] } };
  assert.equal(questions(from), [wanted]);
  harness.conversations(from)[0]?.open[0]?.notify('notifications/resources/updated', { uri: 'x:2' });
  assert.equal(messages.splice(0).length, 1);
  harness.ref(from).drain();
  await settled();
  await resultOf(ask(session, 'read'));
  assert.equal(questions(to), [wanted]);
  const found = harness.conversations(to)[0]?.asked.filter((method) => method.startsWith('logging'));
  assert.equal(found, []);
  subscription.unsubscribe();
  assert.equal(questions(to), []);
});

test('refuses an unknown log level, a missing uri, and a subscription after 1,000', async () => {
  await harness.add('a', { handshake: FULL_MODERN });
  const session = await harness.openSession();
  assert.is(await resultOf(ask(session, { method: 'logging/setLevel', params: { level: 'loud' } })), -32602);
  assert.is(await resultOf(ask(session, { method: 'resources/subscribe', params: {} })), -32602);
  for (let n = 0; n < 1_000; n += 1) await resultOf(ask(session, subscribe(`x:${n}`)));
  assert.is(await resultOf(ask(session, subscribe('x:1000'))), -32602);
  assert.equal(await resultOf(ask(session, subscribe('x:999'))), {});
});

test('subscribes once at a shared process for all sessions, and unsubscribes after the last', async () => {
  await harness.add('a', { handshake: FULL, script: answers({}) });
  const [one, other] = [await harness.openSession(), await harness.openSession()];
  for (const session of [one, other, one]) assert.equal(await resultOf(ask(session, subscribe('x:1'))), {});
  assert.equal(asked('a'), ['resources/subscribe']);
  await resultOf(ask(one, unsubscribe('x:1')));
  assert.equal(asked('a'), ['resources/subscribe']);
  await other.close();
  await settled();
  assert.equal(asked('a'), ['resources/subscribe', 'resources/unsubscribe']);
  assert.is(harness.subscribed, 0);
});

test('refuses subscriptions above the share of their owner at a shared process, but not those of others', async () => {
  await harness.add('a', { handshake: FULL, script: answers({}) });
  for (let n = 0; n < 2_500; n += 500) {
    const session = await harness.openSession();
    for (let own = n; own < n + 500; own += 1) await resultOf(ask(session, subscribe(`x:${own}`)));
  }
  const [ann, bob] = [await harness.openSession(), await harness.openSession(PLAIN, 'bob')];
  assert.is(codeOf(await ask(ann, subscribe('x:more')).end), 'QUEUE_FULL');
  assert.equal(await resultOf(ask(ann, subscribe('x:1'))), {});
  assert.equal(await resultOf(ask(bob, subscribe('x:more'))), {});
});

for (const loss of ['lose', 'drain'] as const) {
  test(`subscribes at the shared process it moved to (${loss}), and leaves no subscription at the old one`, async () => {
    const options = { handshake: FULL, script: answers({}) };
    const session = await harness.openOnA(options, options);
    await resultOf(ask(session, subscribe('x:1')));
    const received = listenTo(session);
    if (loss === 'lose') harness.backend('a').disconnect();
    else harness.ref('a').drain();
    await settled();
    assert.equal(asked('b'), ['resources/subscribe']);
    received.messages.splice(0); // what it may have missed
    harness.backend('b').sendNotification('notifications/resources/updated', { uri: 'x:1' });
    assert.is(received.messages.length, 1);
    await session.close();
    await settled();
    assert.is(harness.subscribed, 0);
  });
}

test('subscribes at its new instance, too, when the old one answers after the move', async () => {
  harness.setPolicy({ sessionFailover: 'always' });
  const options = { handshake: FULL, fields: HTTP };
  const answersMost: typeof silent = (exchange) =>
    exchange.request.params?.uri === 'x:2' ? undefined : answers({})(exchange);
  const session = await harness.openOnA({ ...options, script: silent }, { ...options, script: answersMost });
  const [before] = harness.conversations('a');
  const calls = ['x:1', 'x:2'].map((uri) => ask(session, subscribe(uri)));
  before?.open[0]?.result();
  harness.ref('a').drain();
  await resultOf(ask(session, 'read'));
  before?.open[0]?.result();
  for (const call of calls) assert.equal(await resultOf(call), {});
  const there = harness.conversations('b')[0]?.exchanges.map(({ request }) => request.params?.uri);
  assert.equal(there, ['x:1', undefined, 'x:2']);
  const unanswered = harness.conversations('b')[0]?.last;
  await pass(30_000);
  assert.is(unanswered?.isCancelled, true);
});

test('ends the subscription at a modern backend with the last resource', async () => {
  await harness.add('a', { handshake: { ...FULL_MODERN, capabilities: { resources: { subscribe: true } } } });
  const session = await harness.openSession();
  const { subscription } = listenTo(session);
  await resultOf(ask(session, subscribe('x:1')));
  assert.equal(open('a'), ['subscriptions/listen']);
  await resultOf(ask(session, unsubscribe('x:1')));
  await settled();
  assert.equal(open('a'), []);
  subscription.unsubscribe();
});

test('leaves no subscription behind when its caller left before the answer', async () => {
  await harness.add('a', { handshake: FULL, script: () => undefined });
  const session = await harness.openSession();
  const call = ask(session, subscribe('x:1'));
  call.subscription.unsubscribe();
  harness.backend('a').last.result({});
  await settled();
  assert.is(uris(session), 0);
  harness.backend('a').open[0]?.result({});
  await settled();
  assert.is(harness.subscribed, 0);
});

test('of a subscription and its end that are under way together, the later one counts', async () => {
  await harness.add('a', { handshake: FULL, fields: HTTP, script: silent });
  const session = await harness.openSession();
  const calls = [subscribe('x:1'), unsubscribe('x:1'), unsubscribe('x:2'), subscribe('x:2')].map((request) =>
    ask(session, request),
  );
  await settled();
  for (const exchange of (harness.conversations('a')[0]?.open ?? []).toReversed()) exchange.result({});
  for (const call of calls) assert.equal(await resultOf(call), {});
  assert.equal(session.value.uris, ['x:2']);
});

test('releases a subscription that a shared process grants after its end', async () => {
  await harness.add('a', { handshake: FULL, script: silent });
  const session = await harness.openSession();
  const late = ask(session, subscribe('x:1'));
  assert.equal(await resultOf(ask(session, unsubscribe('x:1'))), {});
  harness.backend('a').last.result({});
  assert.equal(await resultOf(late), {});
  await settled();
  assert.equal([session.value.uris, asked('a').at(-1)], [[], 'resources/unsubscribe']);
});

test('gets an update that many sessions share in one of several turns, unless it stops listening', async () => {
  harness.close();
  harness = new Harness({ perTurn: 2 });
  await harness.add('a', { handshake: FULL });
  const listeners: ReturnType<typeof listenTo>[] = [];
  for (let count = 0; count < 5; count += 1) {
    const session = await harness.openSession();
    await resultOf(ask(session, subscribe('x:1')));
    listeners.push(listenTo(session));
  }
  await settled();
  harness.backend('a').sendNotification('notifications/resources/updated', { uri: 'x:1' });
  const received = () => listeners.map(({ messages }) => messages.length);
  assert.equal(received(), [1, 0, 0, 0, 0], 'the feed takes a task of its own');
  listeners[3]?.subscription.unsubscribe();
  await passTurns(3);
  assert.equal(received(), [1, 1, 1, 0, 1]);
});

test.run();

/** Methods of the requests that wait for an answer. */
function open(id: string): string[] {
  return harness.backend(id).open.map(({ request }) => request.method);
}

function asked(id: string): string[] {
  return harness.backend(id).asked.filter((method) => method.startsWith('resources/'));
}

/** Number of updates that the session receives. */
function uris(session: ClientSession): number {
  const received = listenTo(session);
  harness.backend('a').sendNotification('notifications/resources/updated', { uri: 'x:1' });
  received.subscription.unsubscribe();
  return received.messages.length;
}
