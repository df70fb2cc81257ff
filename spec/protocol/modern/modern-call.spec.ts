import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { noHealthyInstance, toolNotFound } from '../../../src/domain/errors/backend-errors.ts';
import { GATEWAY_INFO } from '../../../src/domain/version.ts';
import { suite } from '../../helpers/suite.ts';
import { KEY, modernHarness, outcomeOf, resultOf } from './modern-harness.ts';

const test = suite('modern call');

const call = { name: 'add', arguments: {} };
const done = { content: [], resultType: 'complete' };

test('an answer that takes longer than a second is sent on an event stream that began meanwhile', async () => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
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
    exchange.emit({ kind: 'interrupted', retryMs: 1 });
    exchange.result(done);
  }
  assert.is(quiet.opened, undefined);
  const received = warned.events.messages.map(({ params }) => JSON.stringify(params));
  assert.equal(received.slice(0, 3), ['{"level":"warning"}', '{"level":"error"}', '{"level":"odd"}']);
  assert.is(received.length, 4);
});

test('errors of a backend have status 200, except codes with an HTTP status', async () => {
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

test('the end of a request is reported once, as its client gets it', async () => {
  const { backends, send, ends } = modernHarness();
  const data = { elicitations: [{ url: 'https://a.example/', message: 'log in' }] };
  const required = { code: -32042, message: 'visit', data };
  await send('tools/call', call, { capabilities: { elicitation: { url: {} } } });
  backends.last.refuse(required);
  await send('tools/call', call);
  backends.last.refuse(required);
  await send('tools/call', call);
  backends.last.refuse(7);
  await send('tools/call', call);
  backends.last.result(done);
  assert.equal(ends, ['result', 'error', 'error', 'result']);
});

test('failures of the gateway have their HTTP status, unless the request was wrong', async () => {
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
  assert.equal(reply.log, { rpcMethod: 'tools/call', rpcError: -32_603, errorCode: 'INTERNAL_ERROR' });
  const found = faults.map((fault) => Object(fault).cause.message);
  assert.equal(found, ['a bug', 'the exchange ended without an answer']);
});

test('a result of all templates names the gateway, and no handshake is asked for its name', async () => {
  const { backends, send } = modernHarness();
  backends.handshakes = () => {
    throw new Error('they were asked');
  };
  const reply = await send('tools/call', call, { template: undefined });
  backends.last.result({ content: [] });
  assert.equal(resultOf(reply)._meta, { [KEY.serverInfo]: GATEWAY_INFO });
});

test('a question to a client without the capability ends the call with -32021', async () => {
  const { backends, send } = modernHarness();
  const reply = await send('tools/call', call);
  backends.last.ask('sampling/createMessage');
  assert.equal([outcomeOf(reply), backends.last.isCancelled], ['400 -32021', true]);
  assert.is(backends.last.replies.length, 1);
});

test.run();
