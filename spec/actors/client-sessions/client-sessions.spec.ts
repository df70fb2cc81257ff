// The table of sessions: its bounds, their ends, and which unused sessions make room.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import type { InspectionEvent } from 'xstate';
import type { ClientSession } from '../../../src/actors/client-sessions/client-session.ts';
import { CLIENT_ACTORS } from '../../../src/actors/template.machine.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import {
  ASKABLE,
  answers,
  ask,
  FULL,
  HTTP,
  listenTo,
  PLAIN,
  pass,
  resultOf,
  SessionHarness,
  settled,
  simulateTime,
} from './client-session-harness.ts';

const test = suite('client sessions');
const tick = (ms: number) => mock.timers.tick(ms);
let harness = new SessionHarness();

simulateTime(
  test,
  () => harness.close(),
  () => {
    harness = new SessionHarness({ maxSessions: 50 });
  },
);

test('gives up an opening that takes too long', async () => {
  await harness.add('a', { fields: HTTP });
  harness.transport('a').openUpstream = () => new Promise(() => undefined);
  const opening = codeOf(harness.open());
  await settled();
  assert.is(harness.sessions.size, 1);
  mock.timers.tick(LIMITS.handshakeMs);
  assert.is(await opening, 'BACKEND_TIMEOUT');
  assert.is(harness.sessions.size, 0);
});

test('calls off what is being opened when it closes', async () => {
  await harness.add('a', { fields: HTTP });
  harness.transport('a').openUpstream = () => new Promise(() => undefined);
  const opening = codeOf(harness.open());
  await settled();
  await harness.sessions.closeAll(0);
  assert.is(await opening, 'SHUTTING_DOWN');
});

test('leaves nothing with the instances after a thousand sessions came and went', async () => {
  await harness.close();
  harness = new SessionHarness();
  const ids = ['a', 'b', 'c', 'd'];
  for (const id of ids) {
    await harness.add(id, { peer: FULL, script: answers({}), fields: id > 'b' ? HTTP : {} });
  }
  for (let n = 0; n < 1_000; n += 1) {
    const session = await harness.open(n % 5 === 0 ? ASKABLE : PLAIN, `owner ${n}`);
    listenTo(session);
    await resultOf(ask(session, { method: 'resources/subscribe', params: { uri: `x:${n % 7}` } }));
    await session.close();
  }
  await settled();
  assert.is(harness.sessions.size, 0);
  assert.is(harness.subscriptions.size, 0);
  for (const id of ids) {
    assert.is(harness.ref(id).inFlight, 0);
    // Its own session listens to its conversation; nobody else does any more.
    assert.is(harness.transport(id).listeners, 1);
    for (const upstream of harness.upstreams(id)) {
      assert.equal([upstream.isClosed, upstream.listeners], [true, 0]);
    }
  }
});

test('parks unused sessions, and continues them at the next message', async () => {
  await harness.add('a');
  const session = await harness.open();
  await rest();
  assert.is(harness.sessions.parked, 1);
  assert.is(harness.sessions.find(session.id), session);
  assert.is(harness.sessions.parked, 1);
  assert.is(await resultOf(ask(session, 'read')), 'a');
  assert.is(harness.sessions.parked, 0);
  await rest();
  session.notify('notifications/custom', {});
  assert.is(harness.sessions.parked, 0);
  await rest();
  const release = session.hold();
  await rest();
  assert.is(harness.sessions.parked, 0);
  release();
  await rest();
  assert.is(harness.sessions.parked, 1);
});

test('has one actor while it is in use, and none while it is parked', async () => {
  await harness.add('a');
  const actors = new Set<InspectionEvent['actorRef']>();
  harness.inner.fleet.root.system.inspect(({ actorRef }) => {
    if ('id' in actorRef && actorRef.id === CLIENT_ACTORS.session) actors.add(actorRef);
  });
  const statuses = () => [...actors].map((actor) => actor.getSnapshot().status);
  const session = await harness.open();
  await resultOf(ask(session, 'read'));
  assert.equal(statuses(), ['active']);
  await rest();
  assert.equal(statuses(), ['done']);
  await resultOf(ask(session, 'read'));
  assert.equal(statuses(), ['done', 'active']);
  await rest();
  await session.close();
  assert.equal(statuses(), ['done', 'done']);
});

test('ends a session that was idle for too long, at its backend, too', async () => {
  await harness.add('a', { fields: HTTP });
  const [idle, busy] = [await harness.open(), await harness.open()];
  const release = busy.hold();
  const ends: string[] = [];
  idle.ended$.subscribe((reason) => ends.push(reason));
  await pass(tick, LIMITS.sessionIdleMs);
  assert.equal(ends, ['it was idle for too long']);
  const found = harness.upstreams('a').map(({ isClosed }) => isClosed);
  assert.equal(found, [true, false]);
  assert.is(harness.sessions.find(busy.id), busy);
  release();
  await pass(tick, LIMITS.sessionIdleMs - 1_000);
  assert.is(harness.sessions.size, 1);
  await pass(tick, LIMITS.sessionParkMs + 2_000);
  assert.is(harness.sessions.size, 0);
});

test('ends an idle session although it listens; until then it gets messages', async () => {
  await harness.add('a', { peer: FULL });
  const session = await harness.open();
  await resultOf(ask(session, 'read'));
  const heard = listenTo(session);
  await pass(tick, LIMITS.sessionIdleMs - 1_000);
  harness.transport('a').tell('notifications/tools/list_changed');
  assert.equal([harness.sessions.size, heard.messages.length, heard.isOver], [1, 1, false]);
  await pass(tick, 2_000);
  assert.equal([harness.sessions.size, heard.isOver], [0, true]);
});

test('has one timer for all of them', async () => {
  await harness.add('a');
  await openAll(50);
  await pass(tick, LIMITS.sessionParkMs + 5_000);
  assert.is(harness.sessions.parked, 50);
  assert.ok(harness.alarms < 5, `${harness.alarms} timers were set`);
});

test.run();

async function openAll(count: number): Promise<ClientSession[]> {
  const sessions = [];
  for (let n = 0; n < count; n += 1) sessions.push(await harness.open(PLAIN, `owner ${n % 5}`));
  return sessions;
}

/** Long enough for everybody who rests to be parked. */
async function rest(): Promise<void> {
  await pass(tick, 2 * LIMITS.sessionParkMs + 2_000);
}
