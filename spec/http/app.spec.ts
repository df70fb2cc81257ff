// The whole application on a real port: the order of its middlewares, the table of bad input over real routes, and the
// properties that no single part can have.

import * as assert from 'uvu/assert';
import { ROUTES } from '../../src/http/routes/index.ts';
import { head, jsonRequest, openRaw, readAll, readUntil, sendRaw } from '../helpers/clients/raw-http.ts';
import { appFor, startApp } from '../helpers/http/app.ts';
import { suite } from '../helpers/suite.ts';
import { BAD_BODIES, SPEC_BODY_BYTES } from './bad-bodies.ts';

const test = suite('the app');
const app = appFor(test, () => startApp({ maxBodyBytes: SPEC_BODY_BYTES }));
test.before(() => app.serve('demo', 'one'));

// The MCP endpoints answer invalid bodies with errors of JSON-RPC: spec/http/mcp/endpoint.spec.ts.
const withBody = ROUTES.filter(({ request, speaks }) => request.body !== undefined && speaks === undefined);
const names: Readonly<Record<string, string>> = {
  ...{ ':template': 'demo', ':instance_id': 'one', ':server_id': 'one' },
  ...{ ':user_id': 'nobody', ':key_id': 'none', ':file': 'favicon-32x32.png' },
};
const pathOf = (path: string): string => path.replaceAll(/:\w+/g, (name) => names[name] ?? name);

for (const { what, bytes, headers = {}, outcome, issue = '', isValidInCall } of BAD_BODIES) {
  test(`answers ${what} with ${outcome} on every route that takes a body`, async () => {
    const isForm = headers['content-type']?.includes('form-urlencoded') === true;
    const skipped = isForm ? 'form' : isValidInCall && 'call';
    for (const { method, path } of withBody.filter(
      ({ bodyKind }) => skipped === undefined || bodyKind !== skipped,
    )) {
      const answer = await app.ask(method, pathOf(path), { body: bytes, headers });
      assert.equal([answer.outcome, answer.issue], [outcome, issue], path);
      assert.is(answer.body.request_id, answer.headers.get('x-request-id'));
    }
  });
}

test('answers a foreign Host header with 403 before it checks the path or the body', async () => {
  const bad = head('POST /gateway/register', {
    Host: 'evil.example',
    'Content-Length': '1',
    Connection: 'close',
  });
  assert.match(await sendRaw(app.port, bad, '{'), /^HTTP\/1\.1 403 [\s\S]*ORIGIN_NOT_ALLOWED/);
  const unknown = head('GET /nope', { Host: 'evil.example', Connection: 'close' });
  assert.match(await sendRaw(app.port, unknown), /^HTTP\/1\.1 403 /);
});

test('keeps the connection open after an error, and answers two pipelined requests in order', async () => {
  const socket = await openRaw(app.port);
  for (const [path, code] of [
    ['/mcp/demo/tools/call', 'MALFORMED_JSON'],
    ['/gateway/register', 'MALFORMED_JSON'],
    ['/nope', 'NOT_FOUND'],
    ['/livez', 'METHOD_NOT_ALLOWED'],
  ] as const) {
    socket.write(jsonRequest(`POST ${path}`, '{"name":'));
    await readUntil(socket, code);
  }
  socket.write(head('GET /livez') + head('GET /readyz', { Connection: 'close' }));
  assert.match(await readAll(socket), /alive[\s\S]*ready/);
});

test('is not polluted by a __proto__ key in arguments or metadata', async () => {
  const body = '{"name":"echo","arguments":{"text":"x","__proto__":{"polluted":true}}}';
  assert.is((await app.ask('POST', '/mcp/demo/tools/call', { body })).status, 200);
  const registration =
    '{"template_name":"proto","endpoint":"http://127.0.0.1:1","metadata":{"__proto__":{"polluted":true}}}';
  assert.is((await app.ask('POST', '/gateway/register', { body: registration })).status, 201);
  assert.is(Reflect.get({}, 'polluted'), undefined);
});

test('ends open event streams with the error SHUTTING_DOWN on closeStreams()', async () => {
  const other = await startApp();
  await other.serve('demo', 'one');
  const body = '{"name":"progress","arguments":{"steps":1000,"ms":10}}';
  const socket = await openRaw(other.port);
  socket.write(jsonRequest('POST /mcp/demo/tools/call', body, { Accept: 'text/event-stream' }));
  await readUntil(socket, 'event: progress');
  other.app.closeStreams();
  assert.match(await readUntil(socket, '0\r\n\r\n'), /event: error\r?\n?[\s\S]*SHUTTING_DOWN/);
  socket.destroy();
  await other.close();
});

// --- routing --------------------------------------------------------------------------------------------------------

test('answers a path without a route with 404 NOT_FOUND and the request id', async () => {
  for (const path of [
    ...['/nope', '/mcp/demo/tools', '/mcp/demo/tools/call/x', '/MCP/demo/health'],
    // Where clients look for an OAuth server.
    ...['/.well-known/oauth-protected-resource/mcp/demo', '/mcp/demo/.well-known/openid-configuration'],
  ]) {
    const { outcome, body, headers } = await app.ask('GET', path);
    assert.is(outcome, '404 NOT_FOUND', path);
    assert.is(body.request_id, headers.get('x-request-id'));
  }
});

test('answers 405 with Allow when only the method is wrong', async () => {
  const answer = await app.ask('DELETE', '/gateway/health');
  assert.is(answer.outcome, '405 METHOD_NOT_ALLOWED');
  assert.is(answer.headers.get('allow'), 'GET, HEAD, OPTIONS');
  for (const path of ['/mcp/demo', '/mcp/demo/mcp', '/mcp']) {
    assert.is((await app.ask('PUT', path)).headers.get('allow'), 'DELETE, GET, OPTIONS, POST', path);
    assert.is((await app.ask('HEAD', path)).status, 405, path);
  }
  const call = await app.ask('GET', '/mcp/demo/tools/call');
  assert.is(call.headers.get('allow'), 'OPTIONS, POST');
  assert.is((await app.ask('HEAD', '/mcp/demo/tools/call')).status, 405);
  assert.is((await app.ask('PUT', '/nope')).status, 404);
});

test('answers OPTIONS with the methods of the path, and with 404 for an unknown path', async () => {
  const answer = await app.ask('OPTIONS', '/gateway/instances/demo/one');
  assert.equal([answer.status, answer.headers.get('allow')], [204, 'GET, HEAD, OPTIONS, PATCH']);
  assert.is((await app.ask('OPTIONS', '/nope')).status, 404);
});

test('answers HEAD like GET without the body', async () => {
  for (const method of ['GET', 'HEAD']) {
    const { status, headers, text } = await app.ask(method, '/livez');
    assert.equal([status, headers.get('content-length')], [200, '18'], method);
    assert.is(headers.get('x-content-type-options'), 'nosniff');
    assert.is(text, method === 'GET' ? '{"status":"alive"}' : '');
  }
});

test('decodes percent-encoded path segments exactly once', async () => {
  assert.is((await app.ask('GET', '/mcp/%64emo/health')).status, 200);
  assert.is((await app.ask('GET', '/mcp/%2564emo/health')).status, 404);
});

test('routes a call with an encoded name, a trailing slash or a query string the same', async () => {
  const call = { body: { name: 'name' } };
  const paths = ['demo/tools/call', '%64emo/tools/call', 'demo/tools/call/', 'demo/tools/call?a=1'];
  for (const path of paths) {
    const answer = await app.ask('POST', `/mcp/${path}`, call);
    assert.equal([path, answer.status, answer.headers.get('x-instance-id')], [path, 200, 'one']);
  }
  for (const path of ['other/tools/call', 'Demo/tools/call', 'demo-/tools/call'])
    assert.is((await app.ask('POST', `/mcp/${path}`, call)).status, 404, path);
  assert.is((await app.ask('POST', '/mcp/demo/tools/other', call)).status, 404);
});

test('keeps a valid X-Request-Id, and replaces an invalid one', async () => {
  const idFor = async (sent?: string) => {
    const headers: Record<string, string> = sent === undefined ? {} : { 'x-request-id': sent };
    return (await app.ask('GET', '/livez', { headers })).headers.get('x-request-id') ?? '';
  };
  for (const id of ['a', 'A.b_c-9', 'x'.repeat(128)]) assert.is(await idFor(id), id);
  for (const id of ['', 'x'.repeat(129), 'a b', 'a,b', '<script>', 'ümlaut'])
    assert.match(await idFor(id), /^[0-9a-f-]{36}$/);
  assert.is.not(await idFor(), await idFor());
});

test.run();
