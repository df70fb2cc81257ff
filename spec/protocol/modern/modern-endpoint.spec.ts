// Requests of the modern era from their headers to the backends.

import * as assert from 'uvu/assert';
import { rateLimitExceeded } from '../../../src/domain/errors/account-errors.ts';
import { GATEWAY_INFO } from '../../../src/domain/version.ts';
import { suite } from '../../helpers/suite.ts';
import {
  HANDSHAKE,
  headersFor,
  KEY,
  modernHarness,
  outcomeOf,
  resultOf,
  SERVER_INFO,
  VERSION,
} from './modern-harness.ts';

const test = suite('modern endpoint');

const call = { name: 'add', arguments: { a: 1 } };

test('a request reaches the backends unchanged, and its result the client', async () => {
  const { backends, send } = modernHarness();
  const reply = await send('tools/call', call, {
    id: 'x',
    capabilities: { roots: {} },
    meta: { [KEY.clientInfo]: { name: 'c' }, traceparent: 't' },
  });
  const { request, options, params } = backends.last;
  const { report: _, requestId: __, ...asked } = request;
  assert.equal(
    { ...asked, params },
    {
      method: 'tools/call',
      params: {
        ...call,
        _meta: {
          [KEY.version]: VERSION,
          [KEY.capabilities]: { roots: {} },
          [KEY.clientInfo]: { name: 'c' },
          traceparent: 't',
        },
      },
    },
  );
  assert.is(options.owner.id, 'ann');
  assert.equal(options.profile, {
    protocolVersion: VERSION,
    capabilities: { roots: {} },
    clientInfo: { name: 'c' },
  });
  assert.is(options.instanceId, undefined);
  backends.last.result({ content: [], resultType: 'complete' }, 'b');
  assert.equal([reply.status, reply.log.instanceId], [200, 'b']);
  assert.equal(reply.message, { jsonrpc: '2.0', id: 'x', result: { content: [], resultType: 'complete' } });
});

test('methods of the legacy era are unknown, even if a backend would answer them', async () => {
  const { backends, send } = modernHarness();
  for (const method of [
    ...['initialize', 'ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe'],
    ...['tasks/list', 'tasks/result'],
  ]) {
    assert.is(outcomeOf(await send(method, { uri: 'x' })), '404 -32601', method);
  }
  assert.is(backends.exchanges.length, 0);
});

test('notifications are accepted and dropped', async () => {
  const { backends, post, charges } = modernHarness();
  const note = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } };
  const reply = await post(note, headersFor('notifications/cancelled'));
  assert.equal([reply.status, reply.body], [202, undefined]);
  const headers = headersFor('notifications/cancelled');
  const claiming = (version: unknown) => ({ ...note, params: { _meta: { [KEY.version]: version } } });
  assert.is(outcomeOf(await post(claiming('other'), headers)), '400 -32020');
  assert.is(outcomeOf(await post(claiming(7), headers)), '400 -32602');
  assert.is(outcomeOf(await post(note, headersFor('notifications/other'))), '400 -32020');
  assert.is(outcomeOf(await post(note, { ...headers, 'mcp-protocol-version': '2099-01-01' })), '400 -32022');
  assert.is((await post(claiming(VERSION), headers)).status, 202);
  assert.equal([backends.exchanges.length, charges], [0, []]);
});

test('a request over the rate limit is refused, whether the limiter answers at once or later', async () => {
  for (const charge of [
    () => {
      throw rateLimitExceeded(60, 5);
    },
    () => Promise.reject(rateLimitExceeded(60, 5)),
  ]) {
    const harness = modernHarness();
    harness.charge = charge;
    const reply = await harness.send('tools/call', call, { id: 3 });
    assert.equal([reply.status, reply.message.id, harness.backends.exchanges.length], [429, 3, 0]);
  }
  const harness = modernHarness();
  harness.charge = () => Promise.resolve();
  await harness.send('tools/call', call);
  assert.is(harness.backends.exchanges.length, 1);
});

test('discovery has the capabilities that all instances share', async () => {
  const { backends, send } = modernHarness();
  backends.known = [
    HANDSHAKE,
    { ...HANDSHAKE, capabilities: { tools: {} }, serverInfo: { name: 'other', version: '1' } },
  ];
  const reply = await send('server/discover');
  assert.equal(resultOf(reply), {
    supportedVersions: [VERSION],
    capabilities: { tools: { listChanged: true } },
    resultType: 'complete',
    ttlMs: 0,
    cacheScope: 'private',
    _meta: { [KEY.serverInfo]: GATEWAY_INFO },
  });
  backends.known = [HANDSHAKE];
  const { _meta } = resultOf(await send('server/discover'));
  assert.equal(_meta, { [KEY.serverInfo]: SERVER_INFO });
});

test('refuses a URI of more than 8 KiB, and looks up a tool for its owner', async () => {
  const harness = modernHarness();
  const headers = { 'mcp-name': 'x'.repeat(8 * 1024 + 1) };
  const reply = await harness.send('resources/read', { uri: headers['mcp-name'] }, { headers });
  assert.is(outcomeOf(reply), '200 -32602');
  const asked: unknown[] = [];
  harness.backends.tool = (...args: unknown[]) => {
    asked.push(...args);
    return undefined;
  };
  await harness.send('tools/call', { name: 'add' }, { owner: 'bob' });
  assert.equal([asked[0], Object(asked[1]).id], ['add', 'bob']);
});

test('a call that the tool list refuses does not count for the rate limit', async () => {
  const harness = modernHarness();
  const properties = { a: { type: 'integer', 'x-mcp-header': 'Size' } };
  harness.backends.tools.set('add', { name: 'add', inputSchema: { type: 'object', properties } });
  const reply = await harness.send('tools/call', { name: 'add', arguments: { a: 1 } });
  assert.equal([outcomeOf(reply), harness.charges], ['400 -32020', []]);
});

test.run();
