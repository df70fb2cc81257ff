// Handshake, sessions, calls and session deletes of legacy clients. Bad input is in legacy-refusals.spec.ts, streams in
// legacy-traffic.spec.ts, arrays in legacy-batches.spec.ts.

import { mock } from 'node:test';
import { setImmediate as settled } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { noHealthyInstance } from '../../../src/domain/errors/backend-errors.ts';
import { serverNotFound } from '../../../src/domain/errors/registry-errors.ts';
import { suite } from '../../helpers/suite.ts';
import { simulateTime } from '../../helpers/time/simulated-time.ts';
import { nestedTooDeeply } from '../modern/modern-harness.ts';
import { HANDSHAKE } from '../scripted-backends.ts';
import { legacyHarness, notification, request } from './legacy-harness.ts';

const test = suite('legacy endpoint');
const HELLO = {
  protocolVersion: '2025-06-18',
  capabilities: { roots: {} },
  clientInfo: { name: 'c', version: '1', title: 'C', icons: [] },
};
const NO_SESSION = { 'mcp-session-id': undefined, 'mcp-protocol-version': undefined };

simulateTime(test);

test('a stream that begins before the answer names the instance that its call was sent to, if any', () => {
  const { call, session } = legacyHarness();
  session.binding = { instanceId: 'one', serverId: 't.one', isShared: true }; // it is moving to another instance
  const [waiting, sent] = [call(1).reply, call(2).reply];
  session.last.sendTo({ template: 't', id: 'two' });
  mock.timers.tick(1_200);
  assert.ok(waiting.opened && sent.opened);
  assert.equal([waiting.log.instanceId, sent.log.instanceId], [undefined, 'two']);
});

test('opening a session is aborted when its client leaves, and a session that opens all the same is closed', async () => {
  const { post, backends } = legacyHarness();
  const opening = Promise.withResolvers<void>();
  backends.opening = () => opening.promise;
  const { reply, done } = post(request(0, 'initialize', HELLO), NO_SESSION);
  await Promise.resolve();
  reply.lose();
  assert.equal([backends.signals.length, backends.signals[0]?.aborted], [1, true]);
  opening.resolve();
  await done;
  assert.is(backends.sessions.get('session-2')?.isClosed, true);
});

test('a stream begins after a moment even if the stream of the backend does not open', async () => {
  const { listen, session } = legacyHarness();
  session.untilListening = new Promise(() => {});
  const { reply, done } = listen();
  mock.timers.tick(249);
  await settled();
  assert.is(reply.isAnswered, false);
  mock.timers.tick(1);
  assert.is(await done, undefined);
  assert.is(reply.isAnswered, true);
});

test('a stream whose session ends before it begins is refused', async () => {
  const { listen, session, left } = legacyHarness();
  const opening = Promise.withResolvers<void>();
  session.untilListening = opening.promise;
  const { reply, done } = listen();
  await session.close();
  opening.resolve();
  assert.is((await done)?.status, 404);
  assert.equal([reply.isAnswered, left(), session.holds], [false, 0, 0]);
});

test('a call is one event with the bytes of the backend', async () => {
  const { call, session, charges, left } = legacyHarness();
  const { reply, done } = call(0);
  await done;
  const { canceller: _, report: __, requestId: ___, ...asked } = session.last.request;
  assert.equal(asked, {
    method: 'tools/call',
    params: { name: 'add' },
    callerId: session.ownerId,
  });
  session.last.result('{"content":[ 1.0 ]}');
  assert.is(String(reply.body), '{"jsonrpc":"2.0","id":0,"result":{"content":[ 1.0 ]}}');
  assert.equal([reply.status, reply.log.instanceId, charges], [200, 'one', [1]]);
  assert.is(left(), 0);
});

test('a failure of the gateway is an error answer with status 200', async () => {
  const { call, session, left } = legacyHarness();
  const { reply } = call(3);
  session.last.fail(noHealthyInstance('t'));
  assert.equal([reply.status, reply.contentType, reply.message.id], [200, 'text/event-stream', 3]);
  assert.equal(reply.message.error, {
    code: 503,
    message: 'No instance of "t" is healthy right now.',
    data: { error_code: 'NO_HEALTHY_INSTANCE', retry_after_seconds: 2 },
  });
  const unknown = call(4);
  session.last.fail(serverNotFound('one'));
  assert.is(unknown.reply.status, 200);
  assert.is(left(), 0);
});

test('an exchange that ends without an answer is answered with -32603', async () => {
  const { call, session } = legacyHarness();
  const { reply } = call(3);
  session.last.complete();
  assert.is(Object(reply.message.error).code, -32603);
});

test('tasks are listed only where a server distinguishes sessions', () => {
  const found = (['legacy', 'modern', 'bare'] as const).map((era) => {
    const { post, session } = legacyHarness();
    session.handshake = { ...HANDSHAKE, era };
    const { reply } = post(request(1, 'tasks/list'));
    return reply.isAnswered ? Object(reply.message.error).code : session.exchanges.length;
  });
  assert.equal(found, [1, -32601, -32601]);
});

test('ping is answered by the gateway and never refused, even with the maximum of calls and an id in use', async () => {
  const { call, post, session, charges } = legacyHarness();
  for (let id = 0; id < 1_000; id += 1) call(id);
  for (const id of ['p', 7]) {
    const { reply, done } = post(request(id, 'ping'));
    assert.equal([await done, reply.message], [undefined, { jsonrpc: '2.0', id, result: {} }]);
  }
  assert.equal([session.exchanges.length, charges.length], [1_000, 1_000]);
});

test('notifications are passed on, except initialized and cancelled', async () => {
  const { post, session, charges } = legacyHarness();
  const replies = [
    post(notification('notifications/initialized')),
    post(notification('notifications/cancelled', { requestId: 7 })),
    post(notification('notifications/roots/list_changed')),
    post(notification('notifications/progress', { progressToken: 1, progress: 2 })),
  ];
  const found = replies.map(({ reply }) => reply.status);
  assert.equal(found, [202, 202, 202, 202]);
  assert.equal(session.notes, [
    ['notifications/roots/list_changed', {}],
    ['notifications/progress', { progressToken: 1, progress: 2 }],
  ]);
  assert.equal(charges, []);
});

test('a request without an id is accepted and dropped, in a batch, too: some servers would carry it out', async () => {
  const { post, session, charges } = legacyHarness({ protocolVersion: '2025-03-26' });
  const call = notification('tools/call', { name: 'secret' });
  for (const body of [call, notification('logging/setLevel'), notification('acme/run'), [call, call]])
    assert.is(post(body).reply.status, 202);
  post([call, request(1, 'tools/list')]);
  assert.equal([session.notes, session.exchanges.length, charges], [[], 1, [1]]);
});

test('a call over the rate limit is refused and not sent', async () => {
  const harness = legacyHarness();
  for (const refuse of [
    () => {
      throw noHealthyInstance('t');
    },
    async () => {
      throw noHealthyInstance('t');
    },
  ]) {
    harness.charge = refuse;
    assert.equal(await harness.call(1).done, { status: 503, code: 503, id: 1 });
  }
  assert.equal([harness.session.exchanges.length, harness.left()], [0, 0]);
});

test('DELETE ends the session with its calls and streams', async () => {
  const { send, call, listen, session, left } = legacyHarness();
  const open = listen();
  const running = call(1);
  const { reply, done } = send('DELETE', undefined);
  await done;
  assert.is(reply.status, 200);
  assert.is(session.isClosed, true);
  assert.is(open.reply.events.isEnded, true);
  assert.is(Object(running.reply.message.error).code, -32001);
  assert.equal([session.holds, left()], [0, 0]);
  assert.equal(await call(2).done, { status: 404, code: -32001, id: null });
  assert.equal(await listen().done, { status: 404, code: -32001, id: null });
  assert.equal(await send('DELETE', undefined).done, { status: 404, code: -32001, id: null });
});

test('DELETE does not wait for the backend, whose failure is reported', async () => {
  const faults: unknown[] = [];
  const { send, session } = legacyHarness({}, 'one', (fault) => faults.push(fault));
  const closing = Promise.withResolvers<void>();
  session.closing = () => closing.promise;
  const { reply, done } = send('DELETE', undefined);
  await done;
  assert.equal([reply.status, session.isClosed, faults], [200, true, []]);
  closing.reject('a defect');
  await settled();
  assert.equal(faults, ['a defect']);
});

test('the answer to initialize names the instance, and its session is closed when it cannot be written', async () => {
  const { post, backends } = legacyHarness();
  backends.openedAs = { binding: { instanceId: 'near', serverId: 't.near', isShared: true } };
  const { reply, done } = post(request(0, 'initialize', HELLO), NO_SESSION);
  await done;
  assert.is(reply.log.instanceId, 'near');
  backends.handshake = { ...HANDSHAKE, greeting: { ...HANDSHAKE.greeting, more: nestedTooDeeply() } };
  const failed = post(request(0, 'initialize', HELLO), NO_SESSION);
  assert.equal(await failed.done, { status: 500, code: -32603, id: 0 });
  assert.equal([backends.sessions.get('session-3')?.isClosed, failed.reply.isAnswered], [true, false]);
});

test('the ids 1 and "1" are two requests, and an id in use is refused', async () => {
  const { call, session } = legacyHarness();
  const number = call(1);
  const text = call('1');
  const again = call(1);
  assert.equal(await again.done, { status: 400, code: -32600, id: null });
  assert.is(session.exchanges.length, 2);
  session.exchanges[1]?.result('{"of":"text"}');
  session.exchanges[0]?.result('{"of":"number"}');
  assert.equal(number.reply.message, { jsonrpc: '2.0', id: 1, result: { of: 'number' } });
  assert.equal(text.reply.message, { jsonrpc: '2.0', id: '1', result: { of: 'text' } });
  assert.is(await call(1).done, undefined, 'it may be used again after its answer');
});

test('the cancel reason of the client is available only while its call is cancelled', async () => {
  const { call, post, session } = legacyHarness();
  const reasons: (string | undefined)[] = [];
  for (const [id, reason] of [
    [1, 'too slow'],
    [2, undefined],
    [3, { no: 'text' }],
    [4, 'x'.repeat(2_000)],
  ] as const) {
    call(id);
    const { canceller } = session.last.request;
    session.last.onCancelled = () => reasons.push(canceller?.cancelReason);
    reasons.push(canceller?.cancelReason);
    post(notification('notifications/cancelled', { requestId: id, reason }));
    reasons.push(canceller?.cancelReason);
  }
  const none = undefined;
  const long = 'x'.repeat(1_024);
  assert.equal(reasons, [none, 'too slow', ...Array(8).fill(none), long, none]);
});

test('a cancellation may name a number by its decimal text, unless another request has that text as its id', () => {
  const { call, post, session } = legacyHarness();
  const cancelled: (string | number)[] = [];
  for (const id of [7, '7', 8]) {
    call(id);
    session.last.onCancelled = () => cancelled.push(id);
  }
  for (const requestId of ['7', '7', '8', '08', 'x'])
    post(notification('notifications/cancelled', { requestId }));
  assert.equal(cancelled, ['7', 7, 8]);
});

test('the stream of a cancelled call ends without an answer, and cannot be resumed', async () => {
  const { call, post, listen, session, left } = legacyHarness();
  const { reply } = call(5);
  session.last.notify('notifications/progress', { progressToken: 5 });
  const { lastEventId } = reply.events;
  post(notification('notifications/cancelled', { requestId: 5 }));
  assert.equal([reply.events.messages.length, reply.events.isEnded, left()], [1, true, 0]);
  assert.equal(await listen(lastEventId).done, { status: 400, code: -32000, id: null });
});

test.run();
