// Ids of legacy clients: they collide, differ by type, come again, and name what is to be cancelled.

import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { legacyHarness, notification, request } from './legacy-harness.ts';

const test = suite('legacy endpoint ids');

test('ids of two types are two requests, and of one are not', async () => {
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
});

test('an id may be used again after its answer', async () => {
  const { call, session } = legacyHarness();
  call(1);
  session.last.result();
  const { reply } = call(1);
  session.last.result('{"second":true}');
  assert.equal(reply.message.result, { second: true });
});

test('two sessions with the same ids do not meet', async () => {
  const { call, post, session, backends } = legacyHarness();
  const other = backends.add('two', 'ann');
  const mine = call(0);
  const theirs = post(request(0, 'tools/call', { name: 'add' }), { 'mcp-session-id': 'two' });
  post(notification('notifications/cancelled', { requestId: 0 }), { 'mcp-session-id': 'two' });
  assert.is(other.last.isCancelled, true);
  session.last.result('{"mine":1}');
  assert.equal(mine.reply.message.result, { mine: 1 });
  assert.is(theirs.reply.body, undefined);
});

test('a cancelled call is cancelled on the backend and gets no answer', async () => {
  const { call, post, session, endpoint } = legacyHarness();
  const { reply } = call(5);
  post(notification('notifications/cancelled', { requestId: '5' }));
  assert.is(session.last.isCancelled, false);
  post(notification('notifications/cancelled', { requestId: 5, reason: 'too slow' }));
  assert.is(session.last.isCancelled, true);
  assert.equal([reply.status, reply.events.events, reply.events.isEnded], [200, [], true]);
  assert.is(endpoint.conversations, 0);
});

test('while a call is cancelled its backend can be told what the client says, and not before or after', async () => {
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
  assert.equal(reasons, [
    none,
    'too slow',
    none,
    none,
    none,
    none,
    none,
    none,
    none,
    none,
    'x'.repeat(1_024),
    none,
  ]);
});

test('a cancelled call that had begun to speak ends without an answer, and cannot be come back to', async () => {
  const { call, post, listen, session, endpoint } = legacyHarness();
  const { reply } = call(5);
  session.last.notify('notifications/progress', { progressToken: 5 });
  const { lastEventId } = reply.events;
  post(notification('notifications/cancelled', { requestId: 5 }));
  assert.equal([reply.events.messages.length, reply.events.isEnded, endpoint.conversations], [1, true, 0]);
  assert.equal(await listen(lastEventId).done, { status: 400, code: -32000, id: null });
});

test.run();
