// A session that is a part of one with all templates: where another session would end, because it may not move, it begins anew. Calls
// that are not safe to repeat, and those between two rounds, stay with the conversation that they began in.

import * as assert from 'uvu/assert';
import type { ClientSession } from '../../../src/actors/sessions/client-session.ts';
import type { TemplatePolicy } from '../../../src/balancing/policy.ts';
import {
  answers,
  ask,
  type BackendOptions,
  codeOf,
  Harness,
  listenTo,
  resultOf,
  silent,
} from '../../helpers/backends/harness.ts';
import { ASKABLE, FULL, FULL_MODERN, HTTP, PLAIN, STDIO, toolCall } from '../../helpers/backends/profiles.ts';
import { suite } from '../../helpers/suite.ts';
import { pass, settled, simulateTime } from '../../helpers/time/simulated-time.ts';

const test = suite('client session: parts');
const DEDICATED: BackendOptions = { handshake: FULL, fields: HTTP };
let harness = new Harness();
simulateTime(test, () => {
  harness = new Harness();
});
test.after.each(() => harness.close());

/** Bound to `a`; whether it has made a call that is not safe to repeat. */
async function openPart(
  failover: TemplatePolicy['sessionFailover'],
  backend: BackendOptions,
  client = PLAIN,
) {
  harness.setPolicy({ sessionFailover: failover });
  await harness.add('a', backend);
  const session = await harness.sessions.open('t', 'ann', client, {
    part: { unsafeMark: undefined, isRecovered: false },
  });
  if (failover === 'auto') await resultOf(ask(session, 'write'));
  return session;
}

const said = (session: ClientSession) => ask(session, 'read').end.then(codeOf);

for (const failover of ['never', 'auto'] as const) {
  test(`with failover ${failover} it begins anew when its conversation is lost`, async () => {
    const session = await openPart(failover, DEDICATED);
    harness.conversations('a')[0]?.disconnect();
    assert.is(await said(session), 'a');
    assert.equal([session.value.unsafe, harness.conversations('a').length], ['no', 2]);
    assert.equal(harness.eventsOf('session.ended'), []);
  });

  test(`with failover ${failover} it leaves an instance that drains, where a call under way continues`, async () => {
    const session = await openPart(failover, DEDICATED);
    await harness.add('b', DEDICATED);
    harness.rewrite('a', silent);
    const waiting = ask(session, 'write');
    await settled();
    harness.ref('a').drain();
    assert.is(await said(session), 'b');
    assert.equal([waiting.subscription.closed, harness.conversations('a')[0]?.isClosed], [false, false]);
    harness.conversations('a')[0]?.last.result({ content: [] });
    await settled();
    assert.equal([waiting.subscription.closed, harness.conversations('a')[0]?.isClosed], [true, true]);
    const moves = harness
      .eventsOf('session.moved')
      .map(({ fromInstanceId, instanceId }) => [fromInstanceId, instanceId]);
    assert.equal(moves, [['a', 'b']]);
  });
}

test('after it began anew, the end of a call of before says nothing about its new conversation', async () => {
  const session = await openPart('auto', DEDICATED);
  await harness.add('b', DEDICATED);
  harness.rewrite('a', silent);
  ask(session, 'write');
  await settled();
  harness.ref('a').drain();
  assert.is(await said(session), 'b');
  harness.rewrite('b', silent);
  ask(session, 'write');
  await settled();
  harness.conversations('a')[0]?.last.result({ content: [] });
  await settled();
  assert.is(session.value.unsafe, 'unknown');
  harness.conversations('b')[0]?.last.result({ content: [] });
  await settled();
  assert.is(session.value.unsafe, 'yes');
});

test('calls that are not safe to repeat are settled, in whatever order they end', async () => {
  const session = await openPart('never', DEDICATED);
  harness.rewrite('a', silent);
  for (let calls = 0; calls < 3; calls += 1) ask(session, 'write');
  await settled();
  const [conversation] = harness.conversations('a');
  for (const exchange of conversation?.exchanges.toReversed() ?? []) exchange.result({ content: [] });
  await settled();
  assert.is(session.value.unsafe, 'yes');
  conversation?.disconnect();
  harness.rewrite('a', answers('a'));
  assert.is(await said(session), 'a');
  assert.is(session.value.unsafe, 'no');
});

test('while no other instance could serve it, it keeps its conversation', async () => {
  const session = await openPart('never', DEDICATED);
  harness.ref('a').drain();
  assert.is(await said(session), 'NO_HEALTHY_INSTANCE');
  assert.is(harness.conversations('a')[0]?.isClosed, false);
});

for (const failover of ['never', 'auto'] as const) {
  test(`with failover ${failover} it waits for the start of the successor of its only instance`, async () => {
    const session = await openPart(failover, DEDICATED);
    const replaced = await replaceSlowly();
    const call = said(session);
    await settled();
    replaced.started();
    assert.is(await call, 'a');
    assert.equal(harness.eventsOf('session.ended'), []);
    replaced.other.subscription.unsubscribe();
  });
}

/** Registers `a` again while it has a call; the new one is open after `started`. */
async function replaceSlowly() {
  harness.rewrite('a', silent);
  const other = harness.call('write');
  await settled();
  const { promise, resolve } = Promise.withResolvers<void>();
  const { open } = harness;
  harness.open = async (...opening) => {
    await promise;
    return open(...opening);
  };
  void harness.add('a', DEDICATED);
  await settled();
  return { other, started: resolve };
}

test('starts no process after the other for a client that only listens', async () => {
  harness.setPolicy({ processSharing: 'isolated', sessionFailover: 'never' });
  await harness.add('a', { handshake: FULL, fields: STDIO });
  const session = await harness.sessions.open('t', 'ann', PLAIN, {
    part: { unsafeMark: undefined, isRecovered: false },
  });
  listenTo(session);
  for (let crashes = 0; crashes < 40; crashes += 1) {
    harness.conversations('a').at(-1)?.disconnect();
    await pass(100);
  }
  assert.is(harness.conversations('a').length, 2);
  await pass(5_000);
  assert.is(harness.conversations('a').length, 3);
});

test('a call between two rounds ends with its conversation, wherever its session is by then', async () => {
  const modern = { handshake: FULL_MODERN, fields: HTTP, own: FULL_MODERN };
  const session = await openPart('never', modern, ASKABLE);
  await harness.add('b', modern);
  const ends: unknown[] = [];
  let reservation: ReturnType<ClientSession['reserve']> | undefined;
  session.exchange(toolCall('write')).subscribe((answer) => {
    reservation = session.reserve(answer, ({ code, delivered }) => ends.push([code, delivered]));
  });
  await settled();
  harness.ref('a').drain();
  assert.is(await said(session), 'b');
  assert.equal(ends, [], 'it may continue at the instance that drains');
  harness.conversations('a')[0]?.disconnect();
  await settled();
  assert.equal(ends, [['BACKEND_UNAVAILABLE', 'unknown']]);
  reservation?.leave();
});

test('when its template was deleted, it ends', async () => {
  const session = await openPart('never', DEDICATED);
  await harness.fleet.remove('t', 'a', 1_000);
  harness.fleet.templates.delete('t');
  assert.is(await said(session), 'SESSION_NOT_FOUND');
});

test.run();
