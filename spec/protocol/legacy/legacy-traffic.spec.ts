// The state of a legacy session: streams that begin a few per turn, are lost and resumed, and are discarded. Questions and the
// stream of a GET are in legacy-traffic-asks.spec.ts.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { JsonText } from '../../../src/domain/json/json.ts';
import { TASKS_PER_TURN } from '../../../src/domain/time/task-scheduler.ts';
import type { LegacyEndpoint } from '../../../src/protocol/legacy/legacy-endpoint.ts';
import { suite } from '../../helpers/suite.ts';
import { answer, legacyHarness, notification, pass, request } from './legacy-harness.ts';

const test = suite('legacy traffic');

test.before.each(() => mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'], now: 1_000_000 }));
test.after.each(() => mock.timers.reset());

test('an answer to a disconnected client is stored for a minute, and not longer', async () => {
  const { call, listen, session, endpoint } = legacyHarness();
  const { reply } = call(1);
  session.last.notify('a');
  reply.lose();
  session.last.result('{"late":true}');
  assert.is(endpoint.openTraffic, 1);
  pass(50_000);
  const again = listen(reply.events.lastEventId);
  assert.equal(again.reply.events.messages, [answer(1, { late: true })]);
  assert.is(again.reply.events.isEnded, true);
  pass(70_000);
  assert.is(endpoint.openTraffic, 0);
  const lost = call(2);
  session.last.notify('a');
  lost.reply.lose();
  session.last.result();
  pass(80_000);
  assert.is(endpoint.openTraffic, 0);
  const refusal = { status: 400, code: -32000, id: null };
  assert.equal(await listen(lost.reply.events.lastEventId).done, refusal);
});

test('streams of requests with ids beyond 2^53 begin, and after a restart the error has the id', async () => {
  const { post, listen, session } = legacyHarness();
  const id = JsonText.ofBytes(Buffer.from('9007199254740993'));
  const slow = post(request(id, 'tools/call', { name: 'add' }));
  mock.timers.tick(1_000);
  session.last.result();
  const notified = post(request(id, 'tools/call', { name: 'add' }));
  session.last.notify('a');
  session.last.result();
  for (const { reply } of [slow, notified])
    assert.match(String(reply.events.events.at(-1)?.data), '"id":9007199254740993,');
  const ofOtherLife = slow.reply.events.lastEventId.replace(/^\d+/, '9');
  assert.match(String(listen(ofOtherLife).reply.body), '"id":9007199254740993,');
});

test("another session's events cannot be resumed", async () => {
  const { call, send, session, backends } = legacyHarness();
  backends.add('two', 'ann');
  const { reply } = call(1);
  session.last.notify('secret');
  const theirs = send('GET', undefined, {
    'mcp-session-id': 'two',
    'last-event-id': reply.events.lastEventId,
  });
  assert.equal(await theirs.done, { status: 400, code: -32000, id: null });
});

test('a message waits for a stream of the client, and is sent once, on one stream', () => {
  const { listen, session } = legacyHarness();
  const say = (method: string) => session.messages.next({ kind: 'notification', method, params: {} });
  listen().reply.lose();
  say('a');
  const [second, third] = [listen().reply, listen()];
  assert.is(third.reply.opened, undefined, 'there is one already');
  const resumed = listen(second.events.lastEventId).reply;
  say('b');
  resumed.lose();
  const last = listen().reply;
  const received = [second, resumed, last].map(({ events }) => events.methods);
  assert.equal([...received, second.events.isEnded], [['a'], ['b'], [], true]);
});

test('a retry time of the backend ends the stream, so that the client polls, too', () => {
  const { call, listen, session } = legacyHarness();
  const { reply } = call(1);
  session.last.interrupt(700);
  const { events, isEnded } = reply.events;
  assert.equal([events.map(({ data, retryMs }) => [data, retryMs]), isEnded], [[['', 700]], true]);
  session.last.notify('later');
  const again = listen(events.at(-1)?.id);
  session.last.result();
  assert.equal(again.reply.events.methods, ['later', 1]);
});

test('the revision of the request decides whether its client polls', () => {
  const { post, session } = legacyHarness();
  const { reply } = post(request(1, 'tools/call', { name: 'echo' }), {
    'mcp-protocol-version': '2025-03-26',
  });
  session.last.interrupt(700);
  assert.equal([reply.events.events, reply.events.isEnded], [[], false]);
  session.last.result();
  assert.equal([reply.events.messages.map(({ id }) => id), reply.events.isEnded], [[1], true]);
});

test('a client that left before the stream began gets nothing, and its exchange continues', () => {
  const { call, session, left } = legacyHarness();
  const { reply } = call(1);
  reply.lose();
  session.last.notify('a');
  assert.equal([session.last.isOpen, left()], [true, 1]);
  session.last.result();
  assert.is(left(), 0);
});

test('a session has at most 1,000 calls under way', async () => {
  const { call, session } = legacyHarness();
  for (let id = 0; id < 1000; id += 1) call(id);
  assert.equal(session.exchanges.length, 1000);
  assert.equal(await call(1000).done, { status: 429, code: 429, id: 1000 });
});

test('the session learns when its client is absent for 60 s, and when it returns', async () => {
  const { call, listen, post, session } = legacyHarness();
  const { reply } = call(1);
  session.last.notify('a');
  const { lastEventId } = reply.events;
  pass(120_000);
  assert.equal(session.away, [], 'its stream is open');
  reply.lose();
  pass(60_000);
  assert.equal(session.away, []);
  pass(10_000);
  pass(60_000);
  assert.equal(session.away, [true]);
  await post(request(2, 'ping')).done;
  assert.equal(session.away, [true, false]);
  pass(70_000);
  await post(notification('notifications/progress')).done;
  pass(60_000);
  assert.equal(session.away, [true, false, true, false]);
  pass(10_000);
  await listen(lastEventId).done;
  assert.equal(session.away.splice(0), [true, false, true, false, true, false]);
  pass(120_000);
  assert.equal(session.away, []);
});

test('a client with an open call or a listening stream is not absent', async () => {
  const { call, listen, session } = legacyHarness();
  call(1).reply.lose();
  const { reply } = listen();
  pass(120_000);
  reply.lose();
  const waiting = call(2);
  pass(120_000);
  assert.equal(session.away, []);
  waiting.reply.lose();
  pass(80_000);
  assert.equal(session.away, [true]);
  for (const exchange of session.exchanges) exchange.result();
  pass(10_000);
  assert.equal(session.away, [true, false]);
});

/** Many sessions of one endpoint, each with one call. */
function conversing() {
  const { backends, endpoint, post } = legacyHarness({}, 'one', () => {}, TASKS_PER_TURN);
  const call = (id: string) => {
    backends.add(id, 'ann');
    return post(request(1, 'tools/call', { name: 'echo' }), { 'mcp-session-id': id }).reply;
  };
  return { endpoint, backends, post, call };
}

test('the stream of a call begins with an event id when it lasts longer than a second', () => {
  const { call, post } = conversing();
  const [first, short] = [call('one'), call('three')];
  mock.timers.tick(400);
  const second = call('two');
  const isOpen = () => [first, second, short].map(({ opened }) => opened !== undefined);
  mock.timers.tick(400);
  // The stream of a cancelled call ends without events.
  post(notification('notifications/cancelled', { requestId: 1 }), { 'mcp-session-id': 'three' });
  assert.equal(isOpen(), [false, false, true]);
  mock.timers.tick(200);
  assert.equal(isOpen(), [true, false, true]);
  mock.timers.tick(400);
  assert.equal(isOpen(), [true, true, true]);
  const events = [first, second, short].map((reply) => reply.events.events);
  const found = events.map(([event]) => event?.data);
  assert.equal(found, ['', '', undefined]);
  assert.is(new Set(events.map(([event]) => event?.id)).size, 3);
  mock.timers.tick(60_000);
  const seen = events.map(({ length }) => length);
  assert.equal(seen, [1, 1, 0]);
});

test('thousands of streams begin a few per turn of the event loop', async () => {
  const { call } = conversing();
  const replies = Array.from({ length: 1_000 }, (_, n) => call(`session ${n}`));
  const opened = () => replies.filter((reply) => reply.opened !== undefined).length;
  mock.timers.tick(1_000);
  const begun = [0];
  for (let now = opened(); now < 1_000; now = opened()) {
    begun.push(now);
    await new Promise(setImmediate);
  }
  const rises = begun.slice(1).map((now, turn) => now - (begun[turn] ?? 0));
  assert.is(Math.max(...rises), TASKS_PER_TURN);
});

test('messages that expect no answer leave no state behind', async () => {
  const { post, endpoint, backends } = conversing();
  backends.add('one', 'ann');
  const messages = [
    ...['initialized', 'cancelled', 'roots/list_changed'].map((name) =>
      notification(`notifications/${name}`),
    ),
    answer(1),
  ];
  for (const message of messages) {
    const { reply, done } = post(message);
    await done;
    assert.equal([reply.status, endpoint.openTraffic], [202, 0]);
  }
});

for (const [what, begin] of [
  ['closing ends all conversations', (endpoint: LegacyEndpoint) => endpoint.close()],
  ['a sweep visits all conversations', () => mock.timers.tick(10_000)],
] as const) {
  test(`${what} a few per turn of the event loop`, async () => {
    const { endpoint, backends, post } = conversing();
    for (let count = 0; count < 100; count += 1) {
      backends.add(`${count}`, 'ann');
      post(request(count, 'ping'), { 'mcp-session-id': `${count}` });
    }
    const sizes = [endpoint.openTraffic];
    const ended = begin(endpoint);
    while (endpoint.openTraffic > 0) {
      sizes.push(endpoint.openTraffic);
      await new Promise(setImmediate);
    }
    await ended;
    const drops = sizes.slice(1).map((size, turn) => (sizes[turn] ?? 0) - size);
    assert.is(Math.max(...drops), TASKS_PER_TURN);
  });
}

test.run();
