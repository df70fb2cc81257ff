// What a session tells its instance on behalf of its client, anew after it moved: level, subscriptions, and those that
// several sessions share.

import * as assert from 'uvu/assert';
import type { ClientSession } from '../../../src/actors/client-sessions/client-session.ts';
import type { ExchangeRequest } from '../../../src/domain/exchange.ts';
import { suite } from '../../helpers/suite.ts';
import {
  ASKABLE,
  answers,
  ask,
  FULL,
  HTTP,
  listenTo,
  MODERN,
  PLAIN,
  resultOf,
  SessionHarness,
  settled,
  simulateTime,
} from './client-session-harness.ts';

const test = suite('client session: state');
let harness = new SessionHarness();
const LEVEL: ExchangeRequest = { method: 'logging/setLevel', params: { level: 'debug' } };
const subscribe = (uri: string): ExchangeRequest => ({ method: 'resources/subscribe', params: { uri } });
const unsubscribe = (uri: string): ExchangeRequest => ({ method: 'resources/unsubscribe', params: { uri } });
const LISTEN = 'subscriptions/listen';
const UPDATED = 'notifications/resources/updated';

simulateTime(
  test,
  () => harness.close(),
  () => {
    harness = new SessionHarness();
  },
);

test('sends the state in its own conversation, and again after a move', async () => {
  for (const id of ['a', 'b']) await harness.add(id, { peer: FULL, fields: HTTP, script: answers({}) });
  const session = await harness.open();
  const [from, to] = harness.upstreams('a').length > 0 ? ['a', 'b'] : ['b', 'a'];
  for (const request of [LEVEL, subscribe('x:1'), unsubscribe('x:1'), subscribe('x:2')]) {
    await resultOf(ask(session, request));
  }
  assert.is(session.logLevel, 'debug');
  harness.transport(from).lose();
  await settled();
  await resultOf(ask(session, 'read'));
  assert.equal(
    harness
      .upstreams(to)[0]
      ?.exchanges.map(({ request }) => request)
      .slice(0, 2),
    [LEVEL, subscribe('x:2')],
  );
  assert.is(harness.upstreams(to)[0]?.asked.at(-1), 'tools/call');
});

test('forgets what its backend refused', async () => {
  await harness.add('a', { peer: FULL, fields: HTTP, script: (exchange) => exchange.refuse(-32602) });
  const session = await harness.open();
  assert.is(await resultOf(ask(session, LEVEL)), -32602);
  assert.is(await resultOf(ask(session, subscribe('x:1'))), -32602);
  assert.is(session.logLevel, undefined);
  harness.upstreams('a')[0]?.lose();
  ask(session, 'read');
  await settled();
  assert.equal(harness.upstreams('a')[1]?.asked, ['tools/call']);
});

test('has a process of its own from its first log level on', async () => {
  await harness.add('a', { peer: FULL, script: answers({}) });
  const session = await harness.open();
  assert.is(session.isShared, true);
  assert.equal(await resultOf(ask(session, LEVEL)), {});
  assert.is(session.isShared, false);
  const found = harness.upstreams('a')[0]?.exchanges.map(({ request }) => request);
  assert.equal(found, [LEVEL]);
  assert.is(harness.transport('a').asked.includes('logging/setLevel'), false);
});

test('refuses a log level without room for a process, and stays bound', async () => {
  await harness.add('a', { peer: FULL });
  const session = await harness.open();
  harness.transport('a').thrownByOpenUpstream = new Error('no room');
  const call = ask(session, LEVEL);
  const other = ask(session, 'read');
  assert.is((await call.end) instanceof Error, true);
  assert.is(await resultOf(other), 'a');
  assert.is(session.isShared, true);
});

test('lets a log level be of no effect where the template wants its processes shared', async () => {
  await harness.close();
  harness = new SessionHarness({ policy: { session: 'shared' } });
  await harness.add('a', { peer: FULL });
  const session = await harness.open(ASKABLE);
  assert.equal(await resultOf(ask(session, LEVEL)), {});
  assert.is(session.logLevel, 'debug');
  assert.is(session.isShared, true);
  assert.is(harness.transport('a').asked.includes('logging/setLevel'), false);
});

test('lets a process without logging refuse itself', async () => {
  await harness.add('a', { script: (exchange) => exchange.refuse(-32601) });
  const session = await harness.open();
  assert.is(await resultOf(ask(session, LEVEL)), -32601);
  assert.is(session.isShared, true);
});

test('answers for a dedicated modern process, too, and subscribes there', async () => {
  harness = new SessionHarness({ policy: { session: 'isolated' } });
  for (const id of ['a', 'b']) await harness.add(id, { peer: MODERN });
  const session = await harness.open();
  const [from, to] = harness.upstreams('a').length > 0 ? ['a', 'b'] : ['b', 'a'];
  const { messages, subscription } = listenTo(session);
  await settled();
  for (const request of [LEVEL, subscribe('x:1'), unsubscribe('x:1'), subscribe('x:2')]) {
    assert.equal(await resultOf(ask(session, request)), {});
  }
  assert.is(session.logLevel, 'debug');
  const questions = (id: string) => harness.upstreams(id)[0]?.open.map(({ request }) => request.params) ?? [];
  const wanted = { notifications: { resourcesListChanged: true, resourceSubscriptions: ['x:2'] } };
  assert.equal(questions(from), [wanted]);
  harness.upstreams(from)[0]?.open[0]?.notify('notifications/resources/updated', { uri: 'x:2' });
  assert.equal(messages.splice(0).length, 1);
  harness.transport(from).lose();
  await settled();
  await resultOf(ask(session, 'read'));
  assert.equal(questions(to), [wanted]);
  const found = harness.upstreams(to)[0]?.asked.filter((method) => method.startsWith('logging'));
  assert.equal(found, []);
  subscription.unsubscribe();
  assert.equal(questions(to), []);
});

test('refuses what is no log level, no uri, and one subscription too many', async () => {
  await harness.add('a', { peer: MODERN });
  const session = await harness.open();
  assert.is(await resultOf(ask(session, { method: 'logging/setLevel', params: { level: 'loud' } })), -32602);
  assert.is(await resultOf(ask(session, { method: 'resources/subscribe', params: {} })), -32602);
  for (let n = 0; n < 1_000; n += 1) await resultOf(ask(session, subscribe(`x:${n}`)));
  assert.is(await resultOf(ask(session, subscribe('x:1000'))), -32602);
  assert.equal(await resultOf(ask(session, subscribe('x:999'))), {});
});

test('subscribes once at a shared process for all sessions, and unsubscribes after the last', async () => {
  await harness.add('a', { peer: FULL, script: answers({}) });
  const [one, other] = [await harness.open(), await harness.open()];
  for (const session of [one, other, one]) assert.equal(await resultOf(ask(session, subscribe('x:1'))), {});
  assert.equal(asked('a'), ['resources/subscribe']);
  await resultOf(ask(one, unsubscribe('x:1')));
  assert.equal(asked('a'), ['resources/subscribe']);
  await other.close();
  await settled();
  assert.equal(asked('a'), ['resources/subscribe', 'resources/unsubscribe']);
  assert.is(harness.subscriptions.size, 0);
});

test('asks the shared process it moved to, and leaves nothing with the one before', async () => {
  await harness.add('a', { peer: FULL, script: answers({}) });
  const session = await harness.open(PLAIN);
  await harness.add('b', { peer: FULL, script: answers({}) });
  await resultOf(ask(session, subscribe('x:1')));
  const heard = listenTo(session);
  harness.ref('a').drain();
  await settled();
  assert.equal(asked('b'), ['resources/subscribe']);
  harness.transport('b').tell('notifications/resources/updated', { uri: 'x:1' });
  assert.is(heard.messages.length, 1);
  await session.close();
  await settled();
  assert.is(harness.subscriptions.size, 0);
});

test('leaves no subscription behind when its caller left before the answer', async () => {
  await harness.add('a', { peer: FULL, script: () => undefined });
  const session = await harness.open();
  const call = ask(session, subscribe('x:1'));
  call.subscription.unsubscribe();
  harness.transport('a').last.result({});
  await settled();
  assert.is(uris(session), 0);
  harness.transport('a').open[0]?.result({});
  await settled();
  assert.is(harness.subscriptions.size, 0);
});

test('subscribes once at a modern instance for all sessions, and delivers to each its resources', async () => {
  await harness.add('a', { peer: MODERN, fields: HTTP });
  const before = listens();
  const sessions = [await harness.open(), await harness.open(), await harness.open()];
  const heard = sessions.map(listenTo);
  for (const [n, session] of sessions.entries()) {
    await resultOf(ask(session, { method: 'resources/subscribe', params: { uri: `x:${n % 2}` } }));
  }
  await settled();
  const [listen, ...more] = listens().filter((exchange) => exchange.isOpen && !before.includes(exchange));
  assert.is(more.length, 0); // each took the place of the one before
  assert.equal(listen?.request.params?.notifications, { resourceSubscriptions: ['x:0', 'x:1'] });
  listen?.notify('notifications/subscriptions/acknowledged');
  listen?.notify(UPDATED, { uri: 'x:0' });
  listen?.notify('notifications/resources/list_changed');
  listen?.notify('notifications/message', { data: 'of nobody' });
  const found = heard.map(({ messages }) => messages.map(({ params }) => params.uri ?? 'list'));
  assert.equal(found, [['x:0', 'list'], ['list'], ['x:0', 'list']]);
  for (const { subscription } of heard) subscription.unsubscribe();
  assert.is(listen?.isOpen, false);
  assert.is(harness.ref('a').inFlight, 0);
});

test('asks the modern instance that a session moved to', async () => {
  await harness.add('a', { peer: MODERN });
  const session = await harness.open();
  await harness.add('b', { peer: MODERN });
  const heard = listenTo(session);
  await resultOf(ask(session, { method: 'resources/subscribe', params: { uri: 'x:1' } }));
  harness.transport('a').lose();
  await settled();
  const asked = harness.transport('b').open.filter(({ request }) => urisOf(request.params).includes('x:1'));
  assert.is(asked.length, 1);
  asked[0]?.notify(UPDATED, { uri: 'x:1' });
  assert.is(heard.messages.length, 1);
});

test.run();

function asked(id: string): string[] {
  return harness.transport(id).asked.filter((method) => method.startsWith('resources/'));
}

/** Resources of which it hears. */
function uris(session: ClientSession): number {
  const heard = listenTo(session);
  harness.transport('a').tell('notifications/resources/updated', { uri: 'x:1' });
  heard.subscription.unsubscribe();
  return heard.messages.length;
}

/** What the instance was asked to tell. */
function listens() {
  return harness.transport('a').exchanges.filter(({ request: { method } }) => method === LISTEN);
}

function urisOf(params: { readonly [field: string]: unknown } = {}): string {
  return JSON.stringify(params.notifications);
}
