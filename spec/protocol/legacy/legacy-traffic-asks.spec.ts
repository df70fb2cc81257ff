// Questions and other messages of the server of a legacy session: which stream carries them, and which of them wait. Tested
// through the endpoint.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import type { ClientAnswer } from '../../../src/domain/mcp/client.ts';
import { suite } from '../../helpers/suite.ts';
import { nestedTooDeeply } from '../modern/modern-harness.ts';
import { answer, legacyHarness, notification, pass } from './legacy-harness.ts';

const test = suite('questions in legacy sessions');
const ASKABLE = { capabilities: { elicitation: {} } };
test.before.each(() => mock.timers.enable({ apis: ['setInterval', 'Date'], now: 1_000_000 }));
test.after.each(() => mock.timers.reset());

test('a question goes to the stream of its call, and the answer back', () => {
  const { call, post, session } = legacyHarness(ASKABLE);
  const { reply } = call(0);
  session.last.ask('elicitation/create', { message: 'name?' });
  const question = reply.events.messages[0];
  assert.equal([question?.method, question?.params], ['elicitation/create', { message: 'name?' }]);
  assert.is(post(answer(question?.id, { action: 'accept' })).reply.status, 202);
  post(answer(question?.id, { action: 'decline' }));
  assert.equal(session.last.replies, [{ result: { action: 'accept' } }]);
  session.last.result();
  assert.equal(reply.events.messages.at(-1), answer(0));
});

test('the id of an answer may be the decimal text of that of the question', () => {
  const { call, post, session } = legacyHarness(ASKABLE);
  const { reply } = call(0);
  session.last.ask('elicitation/create', { message: 'name?' });
  const { id } = reply.events.messages[0] ?? {};
  post(answer(`0${id}`, { action: 'decline' }));
  post(answer(String(id), { action: 'accept' }));
  post(answer(id, { action: 'decline' }));
  assert.equal(session.last.replies, [{ result: { action: 'accept' } }]);
});

test('the ids of questions are different, and positive integers of 31 bits, as some clients expect', () => {
  const { call, session } = legacyHarness(ASKABLE);
  const { reply } = call(0);
  for (let asked = 0; asked < 100; asked += 1) session.last.ask('elicitation/create', { message: 'name?' });
  const ids = new Set(reply.events.messages.map(({ id }) => Number(id)));
  assert.is(ids.size, 100);
  for (const id of ids) assert.ok(Number.isInteger(id) && id > 0 && id < 2 ** 31, String(id));
});

test('an error of the client is an answer', () => {
  const { call, post, session } = legacyHarness(ASKABLE);
  const { reply } = call(0);
  session.last.ask('sampling/createMessage');
  const error = { code: -1, message: 'User rejected', data: [1] };
  post({ jsonrpc: '2.0', id: reply.events.messages[0]?.id, error });
  assert.equal(session.last.replies, [{ error }]);
});

test('null beside the answer of the client, or its error, stands for an absent field', () => {
  const error = { code: -1, message: 'no' };
  for (const [written, reply] of [
    [{ result: { action: 'accept' }, error: null }, { result: { action: 'accept' } }],
    [{ result: null, error }, { error }],
    [{ result: null }, { result: null }],
  ] as const) {
    const { call, post, session } = legacyHarness(ASKABLE);
    const { reply: asked } = call(0);
    session.last.ask('elicitation/create', { message: 'name?' });
    assert.is(post({ jsonrpc: '2.0', id: asked.events.messages[0]?.id, ...written }).reply.status, 202);
    assert.equal(session.last.replies, [reply]);
  }
});

test('a message that cannot be serialized is dropped and reported; a question is answered at once', () => {
  const faults: unknown[] = [];
  const { call, listen, session } = legacyHarness(ASKABLE, 'one', (error) => faults.push(error));
  const open = listen();
  call(0);
  const replies: ClientAnswer[] = [];
  const params = { more: nestedTooDeeply() };
  session.messages.next({ kind: 'notification', method: 'notifications/message', params });
  session.messages.next({
    kind: 'request',
    method: 'elicitation/create',
    params,
    answer: (it) => replies.push(it),
  });
  assert.equal(open.reply.events.messages, []);
  const found = replies.map((reply) => 'error' in reply && reply.error.code);
  assert.equal(found, [-32603]);
  const seen = faults.map((fault) => fault instanceof RangeError);
  assert.equal(seen, [true, true]);
});

test('without a listening stream a question outside of any call goes to an open call', () => {
  const { call, session } = legacyHarness(ASKABLE);
  session.isShared = false;
  const gone = call(0);
  const { reply } = call(1);
  const left = call(2);
  left.reply.lose();
  session.messages.next(question().asked);
  assert.equal(reply.events.methods, ['roots/list']);
  assert.is(gone.reply.isAnswered, false);
});

test('a question outside of any call goes to a live stream, not to a newer one that lost its connection', () => {
  const { call, session } = legacyHarness(ASKABLE);
  session.isShared = false;
  const { reply } = call(0);
  session.last.notify('notifications/x');
  const left = call(1);
  session.last.notify('notifications/x');
  left.reply.lose();
  session.messages.next(question().asked);
  assert.equal(reply.events.methods, ['notifications/x', 'roots/list']);
});

test('a question is not written to a lost stream that cannot be resumed', () => {
  const { call, listen, session } = legacyHarness({ ...ASKABLE, protocolVersion: '2025-06-18' });
  session.isShared = false;
  const { reply } = call(0);
  session.last.interrupt();
  assert.equal(reply.events.events, []);
  reply.lose();
  session.last.ask('elicitation/create');
  assert.equal(listen().reply.events.methods, ['elicitation/create']);
});

test('at a stop questions of a client without a connection fail, and those of a connected one wait', async () => {
  const { call, session, endpoint } = legacyHarness(ASKABLE);
  const { reply } = call(0);
  session.last.ask('elicitation/create');
  await endpoint.dismiss();
  assert.equal(session.last.replies, []);
  reply.lose();
  await endpoint.dismiss();
  const error = { code: -32603, message: 'The client did not answer in time.' };
  assert.equal(session.last.replies, [{ error }]);
});

test('64 messages wait; further notifications are dropped, and questions refused', () => {
  const { call, listen, session } = legacyHarness(ASKABLE);
  session.isShared = false;
  call(0);
  session.last.result();
  const refusals: unknown[] = [];
  const ask = () => {
    session.messages.next({ kind: 'request', method: 'q', params: {}, answer: (it) => refusals.push(it) });
  };
  session.messages.next({ kind: 'notification', method: 'n', params: {} });
  for (let count = 0; count < 64; count += 1) ask();
  session.messages.next({ kind: 'notification', method: 'n', params: {} });
  assert.is(refusals.length, 1);
  assert.equal(listen().reply.events.methods, ['n', ...Array(63).fill('q')]);
});

test('a call may have 256 questions that wait; a question that expired is not sent any more', () => {
  const { call, listen, session } = legacyHarness(ASKABLE);
  session.isShared = false;
  const { reply } = call(0);
  for (let count = 0; count < 257; count += 1) session.last.ask('elicitation/create');
  const [refusal] = session.last.replies;
  assert.equal([session.last.replies.length, 'error' in Object(refusal)], [1, true]);
  assert.is(reply.events.messages.length, 256);
  session.last.result();
  const methods = [...Array(256).fill('elicitation/create'), ...Array(256).fill('notifications/cancelled')];
  assert.equal(reply.events.methods, [...methods, 0]);
  const { asked, replies } = question();
  session.messages.next(asked);
  pass(5 * 60_000);
  session.messages.next({ kind: 'notification', method: 'n', params: {} });
  pass(5 * 60_000);
  assert.equal([replies.length, listen().reply.events.methods], [1, ['n']]);
});

test('a question without an answer expires', () => {
  const { call, listen, session } = legacyHarness(ASKABLE);
  const open = listen();
  const { reply } = call(0);
  session.last.ask('elicitation/create');
  const { asked, replies } = question();
  session.messages.next(asked);
  pass(9 * 60_000);
  assert.equal([session.last.replies, replies], [[], []]);
  pass(2 * 60_000);
  assert.equal([session.last.replies.length, replies.length], [1, 1]);
  for (const { messages } of [reply.events, open.reply.events]) {
    const [{ id } = {}, takenBack] = messages;
    assert.equal([takenBack?.method, takenBack?.params], ['notifications/cancelled', { requestId: id }]);
  }
});

/** A question outside of any call, and the replies to its server. */
function question() {
  const replies: ClientAnswer[] = [];
  const asked = {
    kind: 'request',
    method: 'roots/list',
    params: {},
    answer: (it: ClientAnswer) => void replies.push(it),
  } as const;
  return { asked, replies };
}

for (const [how, isDeleted] of [
  ['is deleted', true],
  ['ends by itself', false],
] as const) {
  test(`when its session ${how} a question outside of any call is answered, and no state is left`, async () => {
    const { call, listen, send, session, left } = legacyHarness(ASKABLE);
    session.isShared = false;
    listen();
    call(0);
    const { asked, replies } = question();
    session.messages.next(asked);
    session.last.result();
    if (isDeleted) await send('DELETE', undefined).done;
    else await session.close();
    assert.equal([replies.length, 'error' in Object(replies[0]), left()], [1, true, 0]);
  });
}

test('the listening stream begins at once, holds the session and carries notifications', () => {
  const { listen, session, endpoint } = legacyHarness();
  const { reply } = listen();
  assert.equal([reply.events.events.map(({ data }) => data), session.holds], [[''], 1]);
  session.messages.next({
    kind: 'notification',
    method: 'notifications/resources/updated',
    params: { uri: 'x' },
  });
  assert.equal(reply.events.messages, [notification('notifications/resources/updated', { uri: 'x' })]);
  reply.lose();
  assert.equal([session.holds, session.messages.observed], [0, true]);
  pass(150_000);
  assert.equal([session.messages.observed, endpoint.openTraffic], [false, 0]);
});

test('a lost listening stream is resumed with what was missed', () => {
  const { listen, session } = legacyHarness();
  const say = (method: string) => session.messages.next({ kind: 'notification', method, params: {} });
  const { reply } = listen();
  say('a');
  const { lastEventId } = reply.events;
  say('b');
  reply.lose();
  say('c');
  const again = listen(lastEventId);
  say('d');
  assert.equal(again.reply.events.methods, ['b', 'c', 'd']);
  assert.is(session.holds, 1);
});

test('calls of clients without capabilities do not subscribe to messages', () => {
  for (const [profile, isShared] of [
    [{}, false],
    [ASKABLE, true],
  ] as const) {
    const { call, session } = legacyHarness(profile);
    session.isShared = isShared;
    call(0);
    assert.is(session.messages.observed, false);
  }
});

test.run();
