// The conversation that several sessions have a part in: one subscription to it however many listen, and none when nobody
// does. What a legacy one receives is in client-session-state.spec.ts.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import {
  answers,
  ask,
  HTTP,
  hear,
  MODERN,
  resultOf,
  SessionHarness,
  settled,
  simulateTime,
} from './client-session-harness.ts';

const test = suite('client session: shared');
const LISTEN = 'subscriptions/listen';
const UPDATED = 'notifications/resources/updated';
let harness = new SessionHarness();
simulateTime(
  test,
  () => harness.close(),
  () => {
    harness = new SessionHarness();
  },
);

test('asks a modern instance once for all who listen, and tells each what he asked for', async () => {
  await harness.add('a', { peer: MODERN, fields: HTTP });
  const before = listens();
  const sessions = [await harness.open(), await harness.open(), await harness.open()];
  const heard = sessions.map(hear);
  for (const [n, session] of sessions.entries()) {
    await resultOf(ask(session, { method: 'resources/subscribe', params: { uri: `x:${n % 2}` } }));
  }
  await settled();
  const [listen, ...more] = listens().filter((exchange) => exchange.isOpen && !before.includes(exchange));
  assert.is(more.length, 0); // each took the place of the one before
  assert.equal(listen?.request.params?.notifications, {
    resourcesListChanged: true,
    resourceSubscriptions: ['x:0', 'x:1'],
  });
  listen?.notify('notifications/subscriptions/acknowledged');
  listen?.notify(UPDATED, { uri: 'x:0' });
  listen?.notify('notifications/resources/list_changed');
  listen?.notify('notifications/message', { data: 'of nobody' });
  assert.equal(
    heard.map(({ messages }) => messages.map(({ params }) => params.uri ?? 'list')),
    [['x:0', 'list'], ['list'], ['x:0', 'list']],
  );
  for (const { subscription } of heard) subscription.unsubscribe();
  assert.is(listen?.isOpen, false);
  assert.is(harness.ref('a').inFlight, 0);
});

test('says when a modern instance has agreed to tell what was subscribed to', async () => {
  await harness.add('a', { peer: MODERN, fields: HTTP });
  const session = await harness.open();
  assert.is(session.opening, undefined);
  hear(session);
  assert.ok(session.opening instanceof Promise);
  await session.opening;
  assert.is(session.opening, undefined);
});

test('asks the modern instance that a session moved to', async () => {
  await harness.add('a', { peer: MODERN });
  const session = await harness.open();
  await harness.add('b', { peer: MODERN });
  const heard = hear(session);
  await resultOf(ask(session, { method: 'resources/subscribe', params: { uri: 'x:1' } }));
  harness.transport('a').lose();
  await settled();
  const asked = harness.transport('b').open.filter(({ request }) => uris(request.params).includes('x:1'));
  assert.is(asked.length, 1);
  asked[0]?.notify(UPDATED, { uri: 'x:1' });
  assert.is(heard.messages.length, 1);
});

test('is one with every session of a process, and another after its restart', async () => {
  await harness.add('a', { script: answers() });
  const { shared } = harness.sessions.binder;
  const { peer } = harness.ref('a');
  if (peer === undefined) throw new Error('not connected');
  const [one, other] = [shared.join(harness.ref('a'), peer), shared.join(harness.ref('a'), peer)];
  assert.is(one, other);
  harness.transport('a').lose();
  await settled();
  assert.is(one.isIntact, false);
  mock.timers.tick(1_000);
  await settled();
  const next = shared.join(harness.ref('a'), harness.ref('a').peer ?? peer);
  assert.is.not(next, one);
  one.retire();
  await other.close();
  assert.is(shared.size, 1);
  next.retire();
  assert.is(shared.size, 0);
});

test.run();

/** What the instance was asked to tell. */
function listens() {
  return harness.transport('a').exchanges.filter(({ request: { method } }) => method === LISTEN);
}

function uris(params: { readonly [field: string]: unknown } = {}): string {
  return JSON.stringify(params.notifications);
}
