// Whether a session may move when its instance is lost or leaves: by policy, by what its conversation holds, and by the
// calls that it has under way.

import { firstValueFrom, map } from 'rxjs';
import * as assert from 'uvu/assert';
import type { ClientSession } from '../../../src/actors/client-sessions/client-session.ts';
import type { HeldReservation } from '../../../src/actors/client-sessions/client-session-calls.ts';
import { isSafeToRepeat } from '../../../src/actors/client-sessions/client-state.ts';
import type { ClientProfile } from '../../../src/domain/client.ts';
import type { SessionFailover } from '../../../src/domain/policy.ts';
import { listen, toolCall } from '../../helpers/failing-backend.ts';
import { suite } from '../../helpers/suite.ts';
import {
  ASKABLE,
  answers,
  ask,
  codeOf,
  FULL,
  HTTP,
  listenTo,
  MODERN,
  PLAIN,
  resultOf,
  SessionHarness,
  settled,
  silent,
  simulateTime,
} from './client-session-harness.ts';

const test = suite('client session: failover');
let harness = new SessionHarness();
/** Ways to lose an instance; after each of them it may not be used. */
const LOSSES: Readonly<Record<string, (id: string) => unknown>> = {
  'its process dies': (id) => harness.transport(id).lose(),
  'it is drained': (id) => harness.ref(id).drain(),
  'it leaves': (id) => void harness.inner.fleet.remove('t', id, 0),
};
simulateTime(test, () => harness.close());

for (const [loss, lose] of Object.entries(LOSSES)) {
  for (const [failover, tool, isKept] of [
    ['auto', 'read', true],
    ['auto', 'again', true],
    ['auto', 'write', false],
    ['always', 'read', true],
    ['always', 'write', true],
    ['never', 'read', false],
    ['never', 'write', false],
  ] as const) {
    const outcome = isKept ? 'goes on elsewhere' : 'ends';
    test(`with failover ${failover}, after a call of "${tool}", ${outcome} when ${loss}`, async () => {
      const session = await openOnA(failover);
      await resultOf(ask(session, tool));
      lose('a');
      await settled();
      const call = ask(session, 'read');
      if (isKept) {
        assert.is(await resultOf(call), 'b');
        assert.is(harness.sessions.find(session.id), session);
      } else {
        assert.is(codeOf(await call.end), 'SESSION_NOT_FOUND');
        assert.is(harness.sessions.find(session.id), undefined);
      }
    });
  }
}

test('knows by its method and by its tool what may be made twice', async () => {
  harness = new SessionHarness();
  const ref = await harness.add('a');
  const safe = ['tools/list', 'resources/read', 'ping', 'completion/complete', 'logging/setLevel'];
  const unsafe = ['tasks/cancel', 'tools/call', 'constructor'];
  const found = safe.map((method) => isSafeToRepeat({ method }, ref));
  assert.equal(
    found,
    safe.map(() => true),
  );
  const seen = unsafe.map((method) => isSafeToRepeat({ method }, ref));
  assert.equal(
    seen,
    unsafe.map(() => false),
  );
});

for (const failover of ['never', 'auto'] as const) {
  for (const profile of [PLAIN, ASKABLE]) {
    const whose = profile === PLAIN ? 'a shared' : 'its own';
    test(`with failover ${failover}, finishes the calls under way in ${whose} conversation, and takes no new ones`, async () => {
      const session = await openOnSilent(failover, profile);
      const heard = listenTo(session);
      const [one, other] = [ask(session, 'write'), ask(session, 'write')];
      harness.ref('a').drain();
      assert.is(codeOf(await ask(session, 'read').end), 'SESSION_NOT_FOUND');
      assert.is(harness.sessions.find(session.id), session);
      const [own] = harness.upstreams('a');
      const backend = own ?? harness.transport('a');
      session.notify('notifications/custom', {});
      const found = own?.notified.map(({ method }) => method);
      assert.equal(found, own && ['notifications/custom']);
      other.subscription.unsubscribe();
      assert.is(harness.sessions.find(session.id), session);
      backend.open.at(-1)?.result('done');
      assert.is(await resultOf(one), 'done');
      assert.is(heard.isOver, true);
      assert.is(harness.sessions.find(session.id), undefined);
      await settled();
      if (own !== undefined) assert.is(own.isClosed, true);
    });
  }
}

for (const [era, own] of Object.entries({ shared: null, own: MODERN })) {
  for (const failover of ['never', 'always'] as const) {
    test(`with failover ${failover}, lets a call go on in its ${era} conversation that is between two rounds`, async () => {
      harness = new SessionHarness({ policy: { sessionFailover: failover } });
      await harness.add('a', { peer: MODERN, fields: HTTP, own });
      const session = await harness.open(ASKABLE);
      await harness.add('b', { peer: MODERN, fields: HTTP, own });
      const place = await betweenRounds(session);
      harness.ref('a').drain();
      const next = ask(session, 'read');
      if (failover === 'always') assert.is(await resultOf(next), 'b');
      else assert.is(codeOf(await next.end), 'SESSION_NOT_FOUND');
      assert.is(await resultOf(listen(place.exchange(toolCall('write')))), 'a');
      assert.is(harness.sessions.find(session.id), session);
      place.leave();
      place.leave();
      await settled();
      assert.is(harness.sessions.find(session.id), failover === 'always' ? session : undefined);
      assert.is(harness.upstreams('a')[0]?.isClosed, own === null ? undefined : true);
    });
  }
}

test('closes the conversation that it left with the last call there, whose messages it gets no more', async () => {
  harness = new SessionHarness({ policy: { sessionFailover: 'always' } });
  await harness.add('a', { peer: FULL, fields: HTTP, script: silent });
  const session = await harness.open();
  await harness.add('b', { peer: FULL, fields: HTTP });
  const { messages } = listenTo(session);
  const calls = [ask(session, 'write'), ask(session, 'write')];
  const [left] = harness.upstreams('a');
  assert.ok(left);
  harness.ref('a').drain();
  assert.is(await resultOf(ask(session, 'read')), 'b');
  left.tell('notifications/tools/list_changed');
  assert.equal([left.isClosed, messages.length], [false, 0]);
  calls[0]?.subscription.unsubscribe();
  assert.is(left.isClosed, false);
  left.open[0]?.result('done');
  assert.equal([await calls[1]?.end, left.isClosed, left.listeners], ['a', true, 0]);
});

test.run();

/** A session on `a`, with `b` beside it. */
async function openOnA(sessionFailover: SessionFailover): Promise<ClientSession> {
  harness = new SessionHarness({ policy: { sessionFailover } });
  await harness.add('a', { peer: FULL, script: answers('a') });
  const session = await harness.open(PLAIN);
  await harness.add('b', { peer: FULL, script: answers('b') });
  return session;
}

/** Keeps a place when an answer comes, as a call does that is to go on. */
function betweenRounds(session: ClientSession): Promise<HeldReservation> {
  const place$ = session
    .exchange(toolCall('write'))
    .pipe(map((answer) => session.reserve(answer, () => undefined)));
  return firstValueFrom(place$);
}

/** A session on `a`, which answers nothing by itself, with `b` beside it. */
async function openOnSilent(
  sessionFailover: SessionFailover,
  profile: ClientProfile,
): Promise<ClientSession> {
  harness = new SessionHarness({ policy: { sessionFailover } });
  await harness.add('a', { peer: FULL, script: silent });
  const session = await harness.open(profile);
  await harness.add('b', { peer: FULL });
  return session;
}
