// What both halves of the endpoint tell for the log while they answer: methods, codes of errors, sessions.

import * as assert from 'uvu/assert';
import { backendUnavailable } from '../../src/domain/error-catalogue.ts';
import { suite } from '../helpers/suite.ts';
import { legacyHarness, notification, request } from './legacy/legacy-harness.ts';
import { modernHarness, nestedTooDeeply } from './modern/modern-harness.ts';

const test = suite('what the endpoint tells the log');

const HELLO = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'c', version: '1' } };
const NO_SESSION = { 'mcp-session-id': undefined, 'mcp-protocol-version': undefined };

test('the method of a message, before anything else can go wrong', async () => {
  const { post } = legacyHarness();
  const gone = { 'mcp-session-id': 'gone' };
  for (const message of [request(1, 'tools/list'), notification('notifications/initialized')]) {
    const { reply, done } = post(message, gone);
    assert.is((await done)?.status, 404);
    assert.equal(reply.facts, [['asks', message.method]]);
  }
  const answer = post({ jsonrpc: '2.0', id: 1, result: {} });
  await answer.done;
  assert.equal(answer.reply.facts, []);
});

test('the session that was opened', async () => {
  const { post } = legacyHarness();
  const { reply, done } = post(request(0, 'initialize', HELLO), NO_SESSION);
  await done;
  assert.equal(reply.facts, [
    ['asks', 'initialize'],
    ['opens', 'session-2'],
  ]);
});

test('the code of an error, from whomever it comes, and nothing of a result', async () => {
  const { call, session } = legacyHarness();
  const [fine, refused, failed, deep] = [call(1), call(2), call(3), call(4)];
  await Promise.all([fine, refused, failed, deep].map(({ done }) => done));
  const [one, two, three, four] = session.exchanges;
  one?.result();
  two?.refuse({ code: -32_602, message: 'no' });
  three?.fail(backendUnavailable('it exited', { delivered: 'no' }));
  four?.refuse({ code: -32_602, message: 'no', data: nestedTooDeeply() });
  assert.equal(
    [fine, refused, failed, deep].map(({ reply }) => reply.facts.slice(1)),
    // What cannot be written was not answered with: its client is told of a fault of ours.
    [
      [],
      [['fails', -32_602]],
      [['fails', 503, 'BACKEND_UNAVAILABLE']],
      [['fails', -32_603, 'INTERNAL_ERROR']],
    ],
  );
});

test('how many messages came at once, and what was wrong with each of them', async () => {
  const { post, session } = legacyHarness({ protocolVersion: '2025-03-26' });
  const long = request(2, 'tools/list', { cursor: 'x'.repeat(10_000) });
  const { reply, done } = post([request(1, 'tools/list'), long, notification('notifications/initialized')]);
  await done;
  session.last.refuse({ code: -32_000, message: 'no' });
  assert.equal(reply.facts, [
    ['batches', 3],
    ['fails', -32_602],
    ['fails', -32_000],
  ]);
});

test('the same of clients without sessions', async () => {
  const { send, backends, post } = modernHarness();
  const fine = await send('tools/list');
  backends.last.result({ tools: [], resultType: 'complete' });
  const refused = await send('tools/list');
  backends.last.refuse(-32_000);
  const failed = await send('tools/list');
  backends.last.fail(backendUnavailable('it exited', { delivered: 'no' }));
  const deep = await send('tools/list');
  backends.last.say({
    kind: 'error',
    error: { code: -32_000, message: 'no', data: nestedTooDeeply() },
  });
  assert.equal(
    [fine, refused, failed, deep].map(({ facts }) => facts),
    [
      [],
      [['fails', -32_000]],
      [['fails', 503, 'BACKEND_UNAVAILABLE']],
      [['fails', -32_603, 'INTERNAL_ERROR']],
    ].map((fails) => [['asks', 'tools/list'], ...fails]),
  );
  const told = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } };
  const types = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };
  const dropped = await post(told, { ...types, 'mcp-protocol-version': '2026-07-28' });
  assert.equal(dropped.facts, [['asks', 'notifications/cancelled']]);
});

test.run();
