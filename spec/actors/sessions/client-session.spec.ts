// A session of a legacy client: its messages and notifications, the calls of an absent client, and the client state that it sends
// to its instance, again after a move: log level, subscriptions, and subscriptions that several sessions share.

import * as assert from 'uvu/assert';
import type { ClientSession } from '../../../src/actors/sessions/client-session.ts';
import type { SessionLists } from '../../../src/actors/sessions/session-deps.ts';
import type { ExchangeRequest } from '../../../src/domain/calls/exchange.ts';
import { sessionFingerprint } from '../../../src/domain/sessions/session-fingerprint.ts';
import {
  answers,
  ask,
  codeOf,
  errorView,
  fails,
  Harness,
  listenTo,
  resultOf,
  silent,
} from '../../helpers/backends/harness.ts';
import { ASKABLE, FULL, FULL_MODERN, HTTP, PLAIN, STDIO } from '../../helpers/backends/profiles.ts';
import { suite } from '../../helpers/suite.ts';
import { pass, settled, simulateTime } from '../../helpers/time/simulated-time.ts';
import { passTurns } from '../../helpers/time/turns.ts';

const test = suite('client session');
let harness = new Harness();

simulateTime(test, () => {
  harness = new Harness();
});
test.after.each(() => harness.close());

test('when closed, answers its calls, ends its streams and refuses new calls', async () => {
  await harness.add('a', { script: () => undefined });
  const [session, unheard] = [await harness.openSession(), await harness.openSession()];
  const caller = ask(session, 'read');
  const received = listenTo(session);
  const ends: string[] = [];
  session.ended$.subscribe((reason) => ends.push(reason));
  await session.close();
  await unheard.close();
  for (const { ended$ } of [session, unheard]) ended$.subscribe((reason) => ends.push(reason));
  assert.equal(codeOf(await caller.end), 'SESSION_NOT_FOUND');
  assert.is(received.subscription.closed, true);
  assert.equal(ends, ['closed', 'closed', 'closed']);
  assert.equal(codeOf(await ask(session, 'read').end), 'SESSION_NOT_FOUND');
  assert.is(listenTo(session).subscription.closed, true);
  assert.is(harness.ref('a').activeCalls, 0);
});

test('sends list requests, and no others, through the lists of its template', async () => {
  await harness.add('a');
  const asked: string[] = [];
  const lists: SessionLists = {
    exchangeIn: (session, { method }, load) => {
      asked.push(`${method} of ${session.value.ownerId}`);
      return load();
    },
    withNotices: (messages$) => messages$,
  };
  const session = await harness.sessions.open('t', 'ann', PLAIN, { lists });
  await resultOf(ask(session, { method: 'tools/list' }));
  await resultOf(ask(session, 'read'));
  assert.equal(asked, ['tools/list of ann']);
});

test('forwards roots and custom notifications in a dedicated conversation, and none in a shared one', async () => {
  await harness.add('a', { script: silent });
  const [own, shared] = [await harness.openSession(ASKABLE), await harness.openSession(PLAIN)];
  const { subscription } = ask(shared, 'read');
  for (const session of [own, shared]) {
    session.notify('notifications/roots/list_changed', {});
    session.notify('notifications/custom', { n: 1 });
  }
  const errorView = (notified: readonly { readonly method: string }[] = []) =>
    notified.map(({ method }) => method);
  assert.equal(errorView(harness.conversations('a')[0]?.notified), [
    'notifications/roots/list_changed',
    'notifications/custom',
  ]);
  assert.equal(errorView(harness.backend('a').notified), []);
  subscription.unsubscribe();
});

test('forwards only custom notifications to a modern backend', async () => {
  harness.setPolicy({ processSharing: 'isolated' });
  await harness.add('a', { handshake: FULL_MODERN, fields: STDIO });
  const session = await harness.openSession();
  for (const name of ['roots/list_changed', 'progress', 'custom'])
    session.notify(`notifications/${name}`, {});
  assert.equal(harness.conversations('a')[0]?.notified, [{ method: 'notifications/custom', params: {} }]);
});

test('forwards custom notifications to a shared program while its call is the only one there', async () => {
  await harness.add('a', { script: silent, fields: { transport: 'stdio', command: 'serve' } });
  const [session, other] = [await harness.openSession(PLAIN), await harness.openSession(PLAIN, 'another')];
  const custom = (from: typeof session, n: number): void => {
    from.notify('notifications/vendor', { n });
    from.notify('notifications/roots/list_changed', {});
  };
  custom(session, 1);
  const call = ask(session, 'read');
  custom(session, 2);
  custom(other, 3);
  const second = ask(other, 'read');
  custom(session, 4);
  custom(other, 5);
  second.subscription.unsubscribe();
  custom(session, 6);
  call.subscription.unsubscribe();
  harness.rewrite('a', fails('no'));
  const pausing = ask(session, 'read');
  harness.rewrite('a', silent);
  const third = ask(other, 'read');
  custom(session, 7);
  for (const { subscription } of [pausing, third]) subscription.unsubscribe();
  assert.equal(
    harness.backend('a').notified,
    [2, 6].map((n) => ({ method: 'notifications/vendor', params: { n } })),
  );
});

test('buffers the messages of a dedicated process without a listener, up to a bound', async () => {
  await harness.add('a');
  const session = await harness.openSession(ASKABLE);
  const [own] = harness.conversations('a');
  own?.ask('roots/list');
  for (let n = 0; n < 64; n += 1) own?.sendNotification('notifications/message', { n });
  assert.equal(own?.replies, [{ error: { code: -32603, message: 'The client does not listen.' } }]);
  const received = listenTo(session);
  own?.sendNotification('notifications/message', { n: 64 });
  assert.equal(
    received.messages.map(({ params }) => params.n),
    Array.from({ length: 65 }, (_, n) => n),
  );
  received.subscription.unsubscribe();
  own?.sendNotification('notifications/message', { n: 65 });
  assert.is(listenTo(session).messages.length, 1);
});

test('listens to an HTTP backend only while its client does', async () => {
  await harness.add('a', { fields: HTTP });
  const session = await harness.openSession(PLAIN);
  const [own] = harness.conversations('a');
  own?.sendNotification('notifications/message', { n: 0 });
  const received = listenTo(session);
  own?.sendNotification('notifications/message', { n: 1 });
  received.subscription.unsubscribe();
  own?.sendNotification('notifications/message', { n: 2 });
  const again = listenTo(session);
  own?.sendNotification('notifications/message', { n: 3 });
  const found = [received, again].map(({ messages }) => messages.map(({ params }) => params.n));
  assert.equal(found, [[1], [3]]);
});

test('gets only the messages of a shared process that concern all clients', async () => {
  await harness.add('a', { handshake: FULL });
  const received = [await harness.openSession(), await harness.openSession()].map(listenTo);
  harness.backend('a').sendNotification('notifications/tools/list_changed');
  harness.backend('a').sendNotification('notifications/message', { data: 'of nobody' });
  harness.backend('a').sendNotification('notifications/resources/updated', { uri: 'file:///x' });
  for (const { messages } of received) {
    const found = messages.map(({ method }) => method);
    assert.equal(found, ['notifications/tools/list_changed']);
  }
});

test('ends the calls of an absent client one by one when other calls wait for capacity', async () => {
  await harness.add('a', { script: silent });
  const session = await harness.openSession(PLAIN, 'ann');
  const calls = Array.from({ length: 256 }, () => ask(session, 'write'));
  session.setAway(true);
  assert.equal([session.calls, harness.ref('a').activeCalls], [256, 256], 'no call waits');
  const other = harness.call('write');
  assert.equal([session.calls, harness.ref('a').activeCalls], [255, 256]);
  const end = await calls[0]?.end;
  assert.equal(errorView(end ?? ''), { code: 'QUEUE_FULL', delivered: 'unknown' });
  assert.equal(harness.backend('a').exchanges.filter(({ isCancelled }) => isCancelled).length, 1);
  session.setAway(false);
  const late = harness.call('write');
  assert.equal([session.calls, harness.ref('a').activeCalls], [255, 256], 'its client is back');
  session.setAway(true);
  assert.equal([session.calls, harness.fleet.group('t').queue.length], [254, 0]);
  for (const { subscription } of [...calls, other, late]) subscription.unsubscribe();
});

test('keeps the calls of an absent client while no other call waits for their capacity', async () => {
  await harness.add('a', { script: silent });
  await harness.add('b', { script: silent });
  const session = await harness.openSession(ASKABLE, 'ann');
  const id = session.instance?.id ?? '';
  const asking = ask(session, 'write');
  harness.conversations(id).at(-1)?.exchanges.at(-1)?.ask('elicitation/create');
  const calls = Array.from({ length: 256 }, () => ask(session, 'write'));
  session.setAway(true);
  const elsewhere = id === 'a' ? 'b' : 'a';
  const others = Array.from({ length: 257 }, () => harness.call('write', { instanceId: elsewhere }));
  assert.equal([session.calls, calls.filter(({ subscription }) => subscription.closed).length], [257, 0]);
  for (let call = 0; call < 255; call += 1) others.push(harness.call('write'));
  assert.equal([session.calls, asking.subscription.closed], [2, false]);
  for (const { subscription } of [asking, ...calls, ...others]) subscription.unsubscribe();
});

test('events name both instances when the session moves', async () => {
  harness.setPolicy({ sessionFailover: 'always' });
  await harness.add('a');
  const session = await harness.openSession();
  await harness.add('b');
  sessionEvents();
  harness.ref('a').drain();
  assert.is(await resultOf(ask(session, 'read')), 'b');
  const from = { fromInstanceId: 'a', fromServerId: 'a' };
  assert.equal(sessionEvents(), [{ type: 'session.moved', ...factOf(session, 'b'), ...from }]);
  await session.close('byClient');
  assert.equal(sessionEvents(), [
    { type: 'session.ended', ...factOf(session, 'b'), reason: 'its client ended it', isLost: false },
  ]);
});

test('events report a lost session when it could not move', async () => {
  harness.setPolicy({ sessionFailover: 'never' });
  await harness.add('a', { fields: HTTP });
  const session = await harness.openSession();
  sessionEvents();
  harness.conversations('a')[0]?.disconnect();
  await ask(session, 'read').end;
  const [ended, ...others] = sessionEvents();
  assert.equal(ended, {
    ...{ type: 'session.ended', ...factOf(session, 'a') },
    ...{ reason: 'its instance is gone', isLost: true },
  });
  assert.equal(others, []);
});

test('there are no events of a session that was never open', async () => {
  assert.is(await harness.openSession().then(String, () => 'refused'), 'refused');
  await harness.add('a', { fields: HTTP });
  harness.backend('a').openConversation = () => new Promise(() => undefined);
  const leaving = new AbortController();
  const opening = harness.sessions
    .open('t', 'somebody', PLAIN, { signal: leaving.signal })
    .catch(() => 'called off');
  await settled();
  leaving.abort();
  assert.is(await opening, 'called off');
  assert.equal(sessionEvents(), []);
});

test('events never contain a session id', async () => {
  await harness.add('a');
  const sessions = await Promise.all(Array.from({ length: 3 }, () => harness.openSession()));
  await harness.sessions.closeAll(0);
  const text = JSON.stringify(harness.events);
  for (const { id } of sessions) assert.not.ok(text.includes(id.slice(0, 8)));
  assert.is(sessions.length * 2, sessionEvents().length);
});

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

/** The events of sessions since the last call. */
function sessionEvents() {
  const events = harness.events.splice(0).filter(({ type }) => type.startsWith('session.'));
  return events.map(({ atMs, ...fields }) => fields);
}

function factOf({ id }: ClientSession, instanceId: string) {
  const session = sessionFingerprint(id);
  return { template: 't', instanceId, serverId: instanceId, session, principal: 'somebody' };
}

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
