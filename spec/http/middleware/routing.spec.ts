import * as assert from 'uvu/assert';
import { appFor, startApp } from '../../helpers/http-app.ts';
import { head, sendRaw } from '../../helpers/http-raw.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('routing');
const app = appFor(test, () => startApp());

test('answers what no route takes with 404 in the shape of every error', async () => {
  for (const path of ['/nope', '/mcp/demo/tools', '/mcp/demo/tools/call/x', '/MCP/demo/health']) {
    const { status, body, headers } = await app.ask('GET', path);
    assert.is(status, 404, path);
    assert.is(body.error_code, 'NOT_FOUND');
    assert.is(body.request_id, headers.get('x-request-id'));
  }
});

test('answers 405 with Allow when only the method is wrong', async () => {
  const answer = await app.ask('DELETE', '/gateway/health');
  assert.is(answer.status, 405);
  assert.is(answer.body.error_code, 'METHOD_NOT_ALLOWED');
  assert.is(answer.headers.get('allow'), 'GET, HEAD, OPTIONS');
  const call = await app.ask('GET', '/mcp/demo/tools/call');
  assert.is(call.headers.get('allow'), 'OPTIONS, POST');
  assert.is((await app.ask('HEAD', '/mcp/demo/tools/call')).status, 405);
  assert.is((await app.ask('PUT', '/nope')).status, 404);
});

test('answers OPTIONS with the methods', async () => {
  const answer = await app.ask('OPTIONS', '/gateway/instances/demo/one');
  assert.is(answer.status, 204);
  assert.is(answer.headers.get('allow'), 'OPTIONS, PATCH');
  assert.is((await app.ask('OPTIONS', '/nope')).status, 404);
});

test('answers OPTIONS of the whole server', async () => {
  const answer = await sendRaw(app.port, head('OPTIONS *', { Connection: 'close' }));
  assert.match(answer, /^HTTP\/1\.1 204 [\s\S]*Allow: DELETE, GET, HEAD, OPTIONS, PATCH, POST\r/);
});

test('does not make the answer as long as themselves', async () => {
  const { text } = await app.ask('GET', `/${'x'.repeat(10_000)}`);
  assert.ok(text.length < 1_000);
});

test('answers HEAD like GET without the body', async () => {
  for (const method of ['GET', 'HEAD']) {
    const { status, headers, text } = await app.ask(method, '/livez');
    assert.equal([status, headers.get('content-length')], [200, '18'], method);
    assert.is(headers.get('x-content-type-options'), 'nosniff');
    assert.is(text, method === 'GET' ? '{"status":"alive"}' : '');
  }
});

test('decodes the names of the path once', async () => {
  await app.serve('demo', 'one');
  assert.is((await app.ask('GET', '/mcp/%64emo/health')).status, 200);
  assert.is((await app.ask('GET', '/mcp/%2564emo/health')).status, 404);
});

test('answers a call alike however its path is written', async () => {
  const call = { body: { name: 'name' } };
  const paths = ['demo/tools/call', '%64emo/tools/call', 'demo/tools/call/', 'demo/tools/call?a=1'];
  for (const path of paths) {
    const answer = await app.ask('POST', `/mcp/${path}`, call);
    assert.equal([path, answer.status, answer.headers.get('x-instance-id')], [path, 200, 'one']);
  }
  for (const path of ['other/tools/call', 'Demo/tools/call', 'demo-/tools/call'])
    assert.is((await app.ask('POST', `/mcp/${path}`, call)).status, 404, path);
  const wrong = await app.ask('DELETE', '/mcp/demo/tools/call');
  assert.equal([wrong.status, wrong.headers.get('allow')], [405, 'OPTIONS, POST']);
  assert.is((await app.ask('POST', '/mcp/demo/tools/other', call)).status, 404);
});

test('keeps a sane request id of the client, and gives a new one instead of anything else', async () => {
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
