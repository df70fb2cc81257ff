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
