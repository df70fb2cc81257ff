// One session as its client sees it: where its requests go, what it hears, and how it ends. Moves are in
// client-session-failover.spec.ts, the table in client-sessions.spec.ts.

import * as assert from 'uvu/assert';
import { silent, told } from '../../helpers/failing-backend.ts';
import { suite } from '../../helpers/suite.ts';
import {
  ASKABLE,
  ask,
  FULL,
  HTTP,
  hear,
  PLAIN,
  resultOf,
  SessionHarness,
  settled,
  simulateTime,
} from './client-session-harness.ts';

const test = suite('client session');
let harness = new SessionHarness();
simulateTime(
  test,
  () => harness.close(),
  () => {
    harness = new SessionHarness();
  },
);

test('has an unguessable id of its own, and knows whose it is', async () => {
  await harness.add('a');
  const one = await harness.open(PLAIN, 'ann');
  const other = await harness.open(PLAIN, 'bob');
  assert.match(one.id, /^[\w-]{43}$/);
  assert.is.not(one.id, other.id);
  assert.equal([one.ownerId, other.ownerId], ['ann', 'bob']);
  assert.is(one.profile, other.profile);
});

test('stays with the instance that was chosen for it', async () => {
  await harness.add('a');
  await harness.add('b');
  const sessions = [await harness.open(), await harness.open()];
  for (const session of sessions) {
    const results = [];
    for (let time = 0; time < 5; time += 1) results.push(await resultOf(ask(session, 'read')));
    assert.is(new Set(results).size, 1);
  }
  assert.equal(
    ['a', 'b'].map((id) => harness.transport(id).asked.filter((method) => method === 'tools/call').length),
    [5, 5],
  );
});

test('shares the pipe of a process when nobody can ask its client anything', async () => {
  await harness.add('a');
  const session = await harness.open(PLAIN);
  assert.is(session.isShared, true);
  assert.is(session.peer, harness.transport('a').peer);
  assert.is(harness.upstreams('a').length, 0);
});

test('has a process of its own when its client can be asked', async () => {
  await harness.add('a');
  const session = await harness.open(ASKABLE);
  assert.is(session.isShared, false);
  assert.is(await resultOf(ask(session, 'read')), 'a');
  assert.equal(harness.upstreams('a')[0]?.asked, ['tools/call']);
  assert.equal(harness.transport('a').profiles, [ASKABLE]);
});

test('has a session of its own with an HTTP backend, whatever its client declared', async () => {
  await harness.add('a', { fields: HTTP });
  const session = await harness.open(PLAIN);
  await resultOf(ask(session, 'read'));
  assert.equal(harness.upstreams('a')[0]?.asked, ['tools/call']);
  await session.close();
  assert.is(harness.upstreams('a')[0]?.isClosed, true);
  assert.is(harness.transport('a').isClosed, false);
});

test('passes a request of its backend on, and the answer back', async () => {
  await harness.add('a', { script: (exchange) => exchange.ask('sampling/createMessage', { text: 'hi' }) });
  const session = await harness.open(ASKABLE);
  const caller = ask(session, 'read');
  const event = caller.answers[0]?.event;
  if (event?.kind === 'request') event.answer({ result: { role: 'assistant' } });
  const exchange = harness.upstreams('a')[0]?.last;
  assert.equal(exchange?.replies, [{ result: { role: 'assistant' } }]);
  exchange?.result('done');
  assert.is(await resultOf(caller), 'done');
});

test('cancels at the backend what nobody waits for any more', async () => {
  await harness.add('a', { script: () => undefined });
  const session = await harness.open();
  ask(session, 'read').subscription.unsubscribe();
  assert.is(harness.transport('a').last.isCancelled, true);
  assert.is(harness.ref('a').inFlight, 0);
});

test('answers its callers and its listeners when it is closed, and takes nothing more', async () => {
  await harness.add('a', { script: () => undefined });
  const session = await harness.open();
  const caller = ask(session, 'read');
  const heard = hear(session);
  const ends: string[] = [];
  session.ended$.subscribe((reason) => ends.push(reason));
  await session.close();
  session.ended$.subscribe((reason) => ends.push(reason));
  assert.equal(codeOf(await caller.end), 'SESSION_NOT_FOUND');
  assert.is(heard.isOver, true);
  assert.equal(ends, ['it was closed', 'it was closed']);
  assert.equal(codeOf(await ask(session, 'read').end), 'SESSION_NOT_FOUND');
  assert.is(hear(session).isOver, true);
  assert.is(harness.ref('a').inFlight, 0);
});

test('tells its own backend everything, and one that it shares nothing: nobody could tell who says it', async () => {
  await harness.add('a');
  const [own, shared] = [await harness.open(ASKABLE), await harness.open(PLAIN)];
  for (const session of [own, shared]) {
    session.notify('notifications/initialized', {});
    session.notify('notifications/cancelled', { requestId: 1 });
    session.notify('notifications/roots/list_changed', {});
    session.notify('notifications/custom', { n: 1 });
  }
  const told = (notified: readonly { readonly method: string }[] = []) =>
    notified.map(({ method }) => method);
  assert.equal(told(harness.upstreams('a')[0]?.notified), [
    'notifications/roots/list_changed',
    'notifications/custom',
  ]);
  assert.equal(told(harness.transport('a').notified), []);
});

test('tells a program that it shares what the protocol does not know, while its call is the only one there', async () => {
  await harness.add('a', { script: silent, fields: { transport: 'stdio', command: 'serve' } });
  const [session, other] = [await harness.open(PLAIN), await harness.open(PLAIN, 'another')];
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
  assert.equal(
    harness.transport('a').notified,
    [2, 6].map((n) => ({ method: 'notifications/vendor', params: { n } })),
  );
  call.subscription.unsubscribe();
});

test('keeps what its own process says until somebody listens, up to a bound', async () => {
  await harness.add('a');
  const session = await harness.open(ASKABLE);
  const [own] = harness.upstreams('a');
  own?.ask('roots/list');
  for (let n = 0; n < 64; n += 1) own?.tell('notifications/message', { n });
  assert.equal(own?.replies, [{ error: { code: -32603, message: 'The client does not listen.' } }]);
  const heard = hear(session);
  own?.tell('notifications/message', { n: 64 });
  assert.equal(
    heard.messages.map(({ params }) => params.n),
    Array.from({ length: 65 }, (_, n) => n),
  );
  heard.subscription.unsubscribe();
  own?.tell('notifications/message', { n: 65 });
  assert.is(hear(session).messages.length, 1);
});

test('listens to an HTTP backend only while its client does', async () => {
  await harness.add('a', { fields: HTTP });
  const session = await harness.open(PLAIN);
  const [own] = harness.upstreams('a');
  own?.tell('notifications/message', { n: 0 });
  const heard = hear(session);
  own?.tell('notifications/message', { n: 1 });
  heard.subscription.unsubscribe();
  own?.tell('notifications/message', { n: 2 });
  assert.equal(
    heard.messages.map(({ params }) => params.n),
    [1],
  );
});

test('hears of a shared process what is meant for all, and nothing else', async () => {
  await harness.add('a', { peer: FULL });
  const heard = [await harness.open(), await harness.open()].map(hear);
  harness.transport('a').tell('notifications/tools/list_changed');
  harness.transport('a').tell('notifications/message', { data: 'of nobody' });
  harness.transport('a').tell('notifications/resources/updated', { uri: 'file:///x' });
  for (const { messages } of heard) {
    assert.equal(
      messages.map(({ method }) => method),
      ['notifications/tools/list_changed'],
    );
  }
});

test('makes no more of two listeners than of one', async () => {
  await harness.add('a', { peer: FULL });
  const session = await harness.open();
  const [one, other] = [hear(session), hear(session)];
  harness.transport('a').tell('notifications/tools/list_changed');
  assert.equal([one.messages.length, other.messages.length], [1, 1]);
  one.subscription.unsubscribe();
  harness.transport('a').tell('notifications/tools/list_changed');
  assert.equal([one.messages.length, other.messages.length], [1, 2]);
});

test('is busy while a call is under way or it is held, not because somebody listens', async () => {
  await harness.add('a', { script: () => undefined });
  const session = await harness.open();
  const seen = [session.isBusy];
  const caller = ask(session, 'read');
  seen.push(session.isBusy);
  caller.subscription.unsubscribe();
  seen.push(session.isBusy);
  const heard = hear(session);
  seen.push(session.isBusy);
  heard.subscription.unsubscribe();
  const release = session.hold();
  seen.push(session.isBusy);
  release();
  release();
  seen.push(session.isBusy);
  assert.equal(seen, [false, true, false, false, true, false]);
  await settled();
});

test('is at the instance that it is bound to', async () => {
  await harness.add('a');
  await harness.add('b');
  const session = await harness.open();
  const where = session.instance?.id;
  assert.equal(
    ['a', 'b', 'c'].map((id) => session.at(id)?.instance?.id),
    ['a', 'b', 'c'].map((id) => (id === where ? id : undefined)),
  );
});

test('ends the calls of a client that is away, one by one, when others wait for their places', async () => {
  await harness.add('a', { script: silent });
  const session = await harness.open(PLAIN, 'ann');
  const calls = Array.from({ length: 256 }, () => ask(session, 'write'));
  session.setAway(true);
  assert.equal([session.calls, harness.ref('a').inFlight], [256, 256], 'nobody waits');
  const other = harness.inner.call('write');
  assert.equal([session.calls, harness.ref('a').inFlight], [255, 256]);
  const end = await calls[0]?.end;
  assert.equal(told(end ?? ''), { code: 'QUEUE_FULL', delivered: 'unknown' });
  assert.equal(harness.transport('a').exchanges.filter(({ isCancelled }) => isCancelled).length, 1);
  session.setAway(false);
  const late = harness.inner.call('write');
  assert.equal([session.calls, harness.ref('a').inFlight], [255, 256], 'its client is back');
  session.setAway(true);
  assert.equal([session.calls, harness.inner.fleet.group('t').queue.length], [254, 0]);
  for (const { subscription } of [...calls, other, late]) subscription.unsubscribe();
});

test('keeps the calls of a client that is away where they take no place from others', async () => {
  await harness.add('a', { script: silent });
  await harness.add('b', { script: silent });
  const session = await harness.open(ASKABLE, 'ann');
  const id = session.instance?.id ?? '';
  const asking = ask(session, 'write');
  harness.upstreams(id).at(-1)?.exchanges.at(-1)?.ask('elicitation/create');
  const calls = Array.from({ length: 256 }, () => ask(session, 'write'));
  session.setAway(true);
  const elsewhere = id === 'a' ? 'b' : 'a';
  const others = Array.from({ length: 257 }, () => harness.inner.call('write', { instanceId: elsewhere }));
  assert.equal([session.calls, calls.filter(({ subscription }) => subscription.closed).length], [257, 0]);
  for (let call = 0; call < 255; call += 1) others.push(harness.inner.call('write'));
  assert.equal([session.calls, asking.subscription.closed], [2, false]);
  for (const { subscription } of [asking, ...calls, ...others]) subscription.unsubscribe();
});

test.run();

function codeOf(end: string | Error): string {
  return end instanceof Error && 'code' in end ? String(end.code) : String(end);
}
