// What is told of a session: where it is, whose it is, and never its id.

import * as assert from 'uvu/assert';
import type { ClientSession } from '../../../src/actors/client-sessions/client-session.ts';
import { sessionFingerprint } from '../../../src/actors/session-fingerprint.ts';
import { suite } from '../../helpers/suite.ts';
import { ask, HTTP, PLAIN, resultOf, SessionHarness, settled } from './client-session-harness.ts';

const test = suite('facts about client sessions');
let harness = new SessionHarness();

test.before.each(() => {
  harness = new SessionHarness({ policy: { sessionFailover: 'always' } });
});
test.after.each(() => harness.close());

/** What was told of sessions since it was asked last. */
function told() {
  const events = harness.inner.events.splice(0).filter(({ type }) => type.startsWith('session.'));
  return events.map(({ atMs, ...fact }) => fact);
}

function factOf({ id }: ClientSession, instanceId: string) {
  const session = sessionFingerprint(id);
  return { template: 't', instanceId, serverId: instanceId, session, principal: 'somebody' };
}

test('name both instances when the session moves', async () => {
  await harness.add('a');
  const session = await harness.open();
  await harness.add('b');
  told();
  harness.ref('a').drain();
  assert.is(await resultOf(ask(session, 'read')), 'b');
  const from = { fromInstanceId: 'a', fromServerId: 'a' };
  assert.equal(told(), [{ type: 'session.moved', ...factOf(session, 'b'), ...from }]);
  await session.close('its client left');
  assert.equal(told(), [
    { type: 'session.ended', ...factOf(session, 'b'), reason: 'its client left', isLost: false },
  ]);
});

test('report a lost session when it could not move', async () => {
  await harness.close();
  harness = new SessionHarness({ policy: { sessionFailover: 'never' } });
  await harness.add('a', { fields: HTTP });
  const session = await harness.open();
  told();
  harness.upstreams('a')[0]?.lose();
  await ask(session, 'read').end;
  const [ended, ...others] = told();
  assert.equal(ended, {
    ...{ type: 'session.ended', ...factOf(session, 'a') },
    ...{ reason: 'its instance is gone', isLost: true },
  });
  assert.equal(others, []);
});

test('are none of a session that was never open', async () => {
  assert.is(await harness.open().then(String, () => 'refused'), 'refused');
  await harness.add('a', { fields: HTTP });
  harness.transport('a').openUpstream = () => new Promise(() => undefined);
  const leaving = new AbortController();
  const opening = harness.sessions.open('t', 'somebody', PLAIN, leaving.signal).catch(() => 'called off');
  await settled();
  leaving.abort();
  assert.is(await opening, 'called off');
  assert.equal(told(), []);
});

test('never hold an id', async () => {
  await harness.add('a');
  const sessions = await Promise.all(Array.from({ length: 3 }, () => harness.open()));
  await harness.sessions.closeAll(0);
  const text = JSON.stringify(harness.inner.events);
  for (const { id } of sessions) assert.not.ok(text.includes(id.slice(0, 8)));
  assert.is(sessions.length * 2, told().length);
});

test.run();
