import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { backendUnavailable, noHealthyInstance, toolNotFound } from '../../../src/domain/error-catalogue.ts';
import { JsonText } from '../../../src/domain/json.ts';
import { suite } from '../../helpers/suite.ts';
import { KEY, modernHarness, outcomeOf, PEER, resultOf, SERVER_INFO } from './modern-harness.ts';

const test = suite('modern exchange');

const call = { name: 'add', arguments: {} };
const done = { content: [], resultType: 'complete' };
const token = { meta: { progressToken: 'p' } };

test('without anything before it, the answer is JSON', async () => {
  const { backends, send } = modernHarness();
  const reply = await send('tools/call', call);
  assert.is(reply.isAnswered, false);
  backends.last.result(done);
  assert.equal([reply.status, reply.opened, resultOf(reply)], [200, undefined, done]);
});

test('an answer that takes longer than a second is the end of a stream that began then', async () => {
  mock.timers.enable({ apis: ['setInterval'] });
  const { backends, send } = modernHarness();
  const [long, short, failed] = [
    await send('tools/call', call, { id: 1 }),
    await send('tools/call', call, { id: 2 }),
    await send('tools/call', call, { id: 3 }),
  ];
  mock.timers.tick(800);
  backends.exchanges[1]?.result(done);
  assert.equal([long.opened, resultOf(short)], [undefined, done]);
  mock.timers.tick(400);
  assert.equal([long.status, long.events.events, short.opened], [200, [], undefined]);
  backends.exchanges[0]?.result(done);
  backends.exchanges[2]?.refuse(-32601);
  const end = [{ jsonrpc: '2.0', id: 1, result: done }];
  assert.equal([long.events.messages, long.events.isEnded], [end, true]);
  assert.is(Object(failed.events.messages[0]?.error).code, -32601);
  mock.timers.reset();
});

test('after a message it is the end of a stream', async () => {
  const { backends, send } = modernHarness();
  const reply = await send('tools/call', call, { ...token, id: 4 });
  const { last } = backends;
  last.notify('notifications/progress', { progressToken: 'p', progress: 1 });
  assert.is(reply.instanceId, 'a');
  last.notify('notifications/vendor', { x: 1 });
  last.result(done);
  assert.equal(reply.events.messages, [
    { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'p', progress: 1 } },
    { jsonrpc: '2.0', method: 'notifications/vendor', params: { x: 1 } },
    { jsonrpc: '2.0', id: 4, result: done },
  ]);
  assert.is(reply.events.isEnded, true);
  const found = reply.events.events.map(({ id }) => id);
  assert.equal(found, [undefined, undefined, undefined]);
});

test('an error can end a stream, too', async () => {
  const { backends, send } = modernHarness();
  const reply = await send('tools/call', call, { ...token, id: 4 });
  backends.last.notify('notifications/progress', { progressToken: 'p' });
  backends.last.fail(backendUnavailable('exited with code 7', { delivered: 'unknown' }));
  const [, last] = reply.events.messages;
  assert.equal([last?.id, reply.events.isEnded], [4, true]);
  assert.not.match(JSON.stringify(last), /code 7/);
});

test('only notifications that the request opted in to come before the answer', async () => {
  const { backends, send } = modernHarness();
  const quiet = await send('tools/call', call);
  const warned = await send('tools/call', call, { meta: { [KEY.logLevel]: 'warning' } });
  for (const exchange of backends.exchanges) {
    exchange.notify('notifications/progress', { progress: 1 });
    for (const level of ['debug', 'info', 'warning', 'error', 'odd'])
      exchange.notify('notifications/message', { level });
    exchange.notify('notifications/tools/list_changed');
    exchange.notify('notifications/resources/updated', { uri: 'x' });
    exchange.say({ kind: 'interrupted', retryMs: 1 });
    exchange.result(done);
  }
  assert.is(quiet.opened, undefined);
  const received = warned.events.messages.map(({ params }) => JSON.stringify(params));
  assert.equal(received.slice(0, 3), ['{"level":"warning"}', '{"level":"error"}', '{"level":"odd"}']);
  assert.is(received.length, 4);
});

test('a client that reads nothing misses messages, but not the answer', async () => {
  const { backends, send } = modernHarness();
  const reply = await send('tools/call', call, token);
  const progress = { progressToken: 'p' };
  backends.last.notify('notifications/progress', progress);
  reply.events.unsentBytes = 2 ** 20 + 1;
  backends.last.notify('notifications/progress', progress);
  backends.last.result(done);
  assert.is(reply.events.messages.length, 2);
});

test('closing the connection cancels, before and after the stream began', async () => {
  const { backends, send } = modernHarness();
  const early = await send('tools/call', call);
  early.lose();
  assert.is(backends.last.isCancelled, true);
  const late = await send('tools/call', call, token);
  backends.last.notify('notifications/progress', { progressToken: 'p' });
  late.lose();
  assert.is(backends.last.isCancelled, true);
  assert.equal([early.isAnswered, late.events.messages.length], [false, 1]);
});

test('errors of a backend are answers, except those that HTTP has a status for', async () => {
  const { backends, send } = modernHarness();
  const table: readonly [code: number, expected: string][] = [
    [-32601, '404 -32601'],
    [-32602, '200 -32602'],
    [-32603, '200 -32603'],
    [-32020, '400 -32020'],
    [-32021, '400 -32021'],
    [-32022, '400 -32022'],
    [-32002, '200 -32602'],
    [-32042, '200 -32603'],
    [7, '200 7'],
  ];
  for (const [code, expected] of table) {
    const reply = await send('tools/call', call);
    backends.last.refuse(code);
    assert.is(outcomeOf(reply), expected);
  }
});

test('failures on the way have a status of their own, unless the request was wrong', async () => {
  const { backends, send, faults } = modernHarness();
  const table: readonly [failure: Error, expected: string][] = [
    [noHealthyInstance('t'), '503 503'],
    [toolNotFound('add', 't'), '200 -32602'],
    [new Error('a bug'), '500 -32603'],
  ];
  for (const [failure, expected] of table) {
    const reply = await send('tools/call', call, { id: 'mine' });
    backends.last.fail(failure);
    assert.equal([outcomeOf(reply), reply.message.id], [expected, 'mine']);
    assert.not.match(JSON.stringify(reply.message), /a bug/);
    assert.equal(reply.headers, expected === '503 503' ? ['Retry-After', '2'] : []);
  }
  const reply = await send('tools/call', call);
  backends.last.complete();
  assert.is(outcomeOf(reply), '500 -32603');
  assert.equal(reply.facts, [
    ['asks', 'tools/call'],
    ['fails', -32_603, 'INTERNAL_ERROR'],
  ]);
  const found = faults.map((fault) => Object(fault).cause.message);
  assert.equal(found, ['a bug', 'the exchange ended without an answer']);
});

test('an answer of a legacy backend gets the fields that it lacks', async () => {
  const { backends, call: ask } = modernHarness();
  backends.known = [{ ...PEER, era: 'legacy', greeting: { serverInfo: { ...SERVER_INFO, title: 'Notes' } } }];
  const info = { ...SERVER_INFO, title: 'Notes' };
  assert.equal(await ask('tools/call', call, { content: [] }), {
    resultType: 'complete',
    _meta: { [KEY.serverInfo]: info },
    content: [],
  });
  const { ttlMs, cacheScope } = await ask('tools/list', {}, { tools: [] });
  assert.equal([ttlMs, cacheScope], [0, 'private']);
});

test('a client without capabilities is asked nothing', async () => {
  const { backends, send } = modernHarness();
  const reply = await send('tools/call', call);
  backends.last.ask('sampling/createMessage');
  assert.equal([outcomeOf(reply), backends.last.isCancelled], ['400 -32021', true]);
  assert.is(backends.last.replies.length, 1);
});

test('an answer without an instance names none', async () => {
  const { call: ask, backends, send } = modernHarness();
  assert.ok(await ask('tools/list', {}, { tools: [], resultType: 'complete' }, ''));
  const reply = await send('tools/list');
  backends.last.result({ resultType: 'complete' }, '');
  assert.is(reply.instanceId, undefined);
});

test('an answer from the cache names no instance, and its cursor leads to the instance that gave it', async () => {
  const { backends, send } = modernHarness();
  const reply = await send('tools/list');
  const result = JsonText.ofValue({ tools: [], nextCursor: 'more', resultType: 'complete' });
  backends.last.say({ kind: 'result', result }, 'b', { isRemembered: true });
  assert.is(reply.instanceId, undefined);
  const { nextCursor } = Object(resultOf(reply));
  await send('tools/list', { cursor: nextCursor });
  assert.equal([backends.last.params.cursor, backends.last.options.instanceId], ['more', 'b']);
});

test.run();
