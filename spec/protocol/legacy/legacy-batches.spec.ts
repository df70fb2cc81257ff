// Arrays of messages, which only revision 2025-03-26 has: never forwarded as arrays, answered on one stream, one by one.

import { mock } from 'node:test';
import { of } from 'rxjs';
import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { answered } from '../listing-backends.ts';
import { RecordedReply } from '../recorded-reply.ts';
import { legacyHarness, notification, pass, request } from './legacy-harness.ts';

const test = suite('legacy batches');
const batching = () => legacyHarness({ protocolVersion: '2025-03-26' });
const idsOf = ({ events }: RecordedReply) => events.messages.map(({ id }) => id);
const NO_MESSAGE = { status: 400, code: -32600, id: null };

test.before.each(() => mock.timers.enable({ apis: ['setInterval', 'Date'] }));
test.after.each(() => mock.timers.reset());

test('each request of a batch is one exchange, and each answer one event', async () => {
  const { post, session, charges, endpoint } = batching();
  const { reply } = post([
    request(1, 'tools/call', { name: 'a' }),
    notification('notifications/roots/list_changed'),
    request('1', 'tools/list'),
    request(2, 'ping'),
  ]);
  assert.equal(charges, [2]);
  const found = session.exchanges.map(({ request: { method } }) => method);
  assert.equal(found, ['tools/call', 'tools/list']);
  assert.equal(session.notes.length, 1);
  session.exchanges[1]?.result('{"tools":[]}');
  session.exchanges[0]?.notify('notifications/message', { data: 'hi' });
  assert.equal([reply.events.methods, reply.events.isEnded], [[2, '1', 'notifications/message'], false]);
  session.exchanges[0]?.refuse({ code: -1, message: 'no' });
  assert.equal([idsOf(reply).at(-1), reply.events.isEnded], [1, true]);
  pass(70_000);
  assert.is(endpoint.openTraffic, 0, 'no stream can be resumed any more');
});

test('the rest of a batch whose client has left runs in a conversation that is known', async () => {
  const { post, sendTo, session, endpoint } = batching();
  const exchange = session.exchange.bind(session);
  session.exchange = (asked) =>
    asked.method === 'tools/list' ? of(answered({ tools: [] })) : exchange(asked);
  const reply = new RecordedReply();
  reply.lose();
  await sendTo(reply, 'POST', [request(1, 'tools/list'), request(2, 'tools/call', { name: 'a' })]);
  const found = [session.exchanges.length, endpoint.openTraffic];
  assert.equal(found, [1, 1]);
  assert.equal(await post(request(2, 'tools/call')).done, NO_MESSAGE);
  session.exchanges[0]?.result({});
  pass(70_000);
  assert.is(endpoint.openTraffic, 0, 'no stream can be resumed any more');
});

test('a batch with an invalid message is refused as a whole', async () => {
  const { post, session, charges, call, endpoint } = batching();
  call('busy');
  const rows: unknown[][] = [
    [],
    [request(1, 'tools/call'), request(1, 'tools/list')],
    [request(1, 'tools/call'), request(null, 'tools/list')],
    [request(1, 'tools/call'), 'x'],
    [request(1, 'tools/call'), [request(2, 'ping')]],
    [request(1, 'initialize'), request(2, 'ping')],
  ];
  for (const row of rows) assert.equal(await post(row).done, NO_MESSAGE);
  assert.equal(charges, [1]);
  assert.equal(await post([request(1, 'tools/call'), request('busy', 'tools/call')]).done, NO_MESSAGE);
  assert.equal([session.exchanges.length, endpoint.openTraffic, charges], [1, 1, [1]]);
});

test.run();
