// A session of a legacy client: its messages and notifications, its events, and the calls of an absent client. backend-state.spec.ts has the
// log level and subscriptions.

import * as assert from 'uvu/assert';
import type { ClientSession } from '../../../src/actors/sessions/client-session.ts';
import type { SessionLists } from '../../../src/actors/sessions/session-deps.ts';
import { sessionFingerprint } from '../../../src/domain/sessions/session-fingerprint.ts';
import {
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
import { settled, simulateTime } from '../../helpers/time/simulated-time.ts';

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
  assert.equal([session.callCount, harness.ref('a').activeCalls], [256, 256], 'no call waits');
  const other = harness.call('write');
  assert.equal([session.callCount, harness.ref('a').activeCalls], [255, 256]);
  const end = await calls[0]?.end;
  assert.equal(errorView(end ?? ''), { code: 'QUEUE_FULL', delivered: 'unknown' });
  assert.equal(harness.backend('a').exchanges.filter(({ isCancelled }) => isCancelled).length, 1);
  session.setAway(false);
  const late = harness.call('write');
  assert.equal([session.callCount, harness.ref('a').activeCalls], [255, 256], 'its client is back');
  session.setAway(true);
  assert.equal([session.callCount, harness.fleet.templates.group('t').queue.length], [254, 0]);
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
  assert.equal([session.callCount, calls.filter(({ subscription }) => subscription.closed).length], [257, 0]);
  for (let call = 0; call < 255; call += 1) others.push(harness.call('write'));
  assert.equal([session.callCount, asking.subscription.closed], [2, false]);
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
