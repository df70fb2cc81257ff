// A session that may not move while its instance is drained: what becomes of the calls that are under way there, and of
// those that come. Where a session goes that may move is in client-session-rebinding.spec.ts.

import { firstValueFrom, map } from 'rxjs';
import * as assert from 'uvu/assert';
import type { ClientSession } from '../../../src/actors/client-sessions/client-session.ts';
import type { SessionReservation } from '../../../src/actors/client-sessions/client-session-types.ts';
import type { ClientProfile } from '../../../src/domain/client.ts';
import type { SessionFailover } from '../../../src/domain/policy.ts';
import { listen, toolCall } from '../../helpers/failing-backend.ts';
import { suite } from '../../helpers/suite.ts';
import {
  ASKABLE,
  ask,
  FULL,
  HTTP,
  hear,
  MODERN,
  PLAIN,
  resultOf,
  SessionHarness,
  settled,
  silent,
  simulateTime,
} from './client-session-harness.ts';

const test = suite('client session: finishing');
let harness = new SessionHarness();
simulateTime(test, () => harness.close());

for (const failover of ['never', 'auto'] as const) {
  for (const profile of [PLAIN, ASKABLE]) {
    const whose = profile === PLAIN ? 'a shared' : 'its own';
    test(`with failover ${failover}, finishes the calls under way in ${whose} conversation, and takes no new ones`, async () => {
      const session = await openOnA(failover, profile);
      const heard = hear(session);
      const [one, other] = [ask(session, 'write'), ask(session, 'write')];
      harness.ref('a').drain();
      assert.is(codeOf(await ask(session, 'read').end), 'SESSION_NOT_FOUND');
      assert.is(harness.sessions.find(session.id), session);
      const [own] = harness.upstreams('a');
      const backend = own ?? harness.transport('a');
      session.notify('notifications/custom', {});
      assert.equal(
        own?.notified.map(({ method }) => method),
        own && ['notifications/custom'],
      );
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

test('ends when the conversation breaks in which it was finishing', async () => {
  const session = await openOnA('never', ASKABLE);
  const call = ask(session, 'write');
  harness.ref('a').drain();
  assert.is(codeOf(await ask(session, 'read').end), 'SESSION_NOT_FOUND');
  harness.upstreams('a')[0]?.lose();
  assert.is(codeOf(await call.end), 'BACKEND_UNAVAILABLE');
  assert.is(harness.sessions.find(session.id), undefined);
});

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

test('asks elsewhere when the conversation is over in which a call was to go on', async () => {
  harness = new SessionHarness({ policy: { sessionFailover: 'always' } });
  await harness.add('a', { peer: MODERN, fields: HTTP });
  const session = await harness.open(ASKABLE);
  await harness.add('b', { peer: MODERN, fields: HTTP });
  const place = await betweenRounds(session);
  assert.is(session.isBusy, true);
  harness.transport('a').lose();
  await settled();
  assert.is(await resultOf(listen(place.exchange(toolCall('write')))), 'b');
  place.leave();
  assert.is(session.isBusy, false);
});

test.run();

/** Keeps a place when an answer comes, as a call does that is to go on. */
function betweenRounds(session: ClientSession): Promise<SessionReservation> {
  const place$ = session
    .exchange(toolCall('write'))
    .pipe(map((answer) => session.reserve(answer, () => undefined)));
  return firstValueFrom(place$);
}

/** A session on `a`, which answers nothing by itself, with `b` beside it. */
async function openOnA(sessionFailover: SessionFailover, profile: ClientProfile): Promise<ClientSession> {
  harness = new SessionHarness({ policy: { sessionFailover } });
  await harness.add('a', { peer: FULL, script: silent });
  const session = await harness.open(profile);
  await harness.add('b', { peer: FULL });
  return session;
}

function codeOf(end: string | Error | undefined): string {
  return end instanceof Error && 'code' in end ? String(end.code) : String(end);
}
