import * as assert from 'uvu/assert';
import { startWithAccounts } from '../../helpers/http/accounts.ts';
import { appFor } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('POST /tools/call');
const app = appFor(test, () => startWithAccounts());
test.before(async () => {
  for (const id of ['one', 'two', 'three']) await app.serve('demo', id);
  await app.gateway.register('demo', { id: 'dead', endpoint: 'http://127.0.0.1:1' });
});

const call = (server_id: string, tool_name: string, more: object = {}) =>
  app.as(app.user, 'POST', '/tools/call', { body: { server_id, tool_name, ...more } });

test('calls the tool of the named server and of no other', async () => {
  for (const id of ['two', 'two', 'one', 'three', 'two']) {
    const { status, body, headers } = await call(id, 'name');
    assert.is(status, 200);
    const { execution_time_ms, ...rest } = body;
    assert.equal(rest, {
      ...{ result: { content: [{ type: 'text', text: id }] }, server_id: id, tool_name: 'name' },
    });
    assert.ok(typeof execution_time_ms === 'number' && execution_time_ms >= 0 && execution_time_ms < 10_000);
    assert.is(headers.get('x-instance-id'), id);
  }
});

test('answers 404 for an unknown server or tool', async () => {
  for (const id of ['none', 'demo', '../one', 'x'.repeat(10_000)]) {
    const { status, body, text } = await call(id, 'name');
    assert.equal([status, body.error_code], [404, 'SERVER_NOT_FOUND']);
    assert.ok(text.length < 500);
  }
  assert.is((await call('one', 'unheard-of')).outcome, '404 TOOL_NOT_FOUND');
});

test('answers a result with isError with 500, which contains the result', async () => {
  const { outcome, body, headers } = await call('one', 'fail');
  assert.is(outcome, '500 TOOL_EXECUTION_FAILED');
  assert.is(Object(body.result).isError, true);
  assert.is(headers.get('x-instance-id'), 'one');
});

test('forwards large results and error results byte for byte', async () => {
  const long = 'x'.repeat(20_000);
  const raw = (isError: boolean) =>
    `{ "content":[{"type":"text","text":"${long}"}], "n": 1.50, "isError" : ${isError} }`;
  await app.serve('large', 'large-1', ({ method, params }) => {
    if (method !== 'tools/call') return { tools: [{ name: 'fine' }, { name: 'fails' }] };
    return JSON.parse(raw(params?.name === 'fails'));
  });
  for (const [tool, status] of [
    ['fine', 200],
    ['fails', 500],
  ] as const) {
    const answer = await call('large-1', tool);
    assert.equal([answer.status, answer.body.result], [status, JSON.parse(raw(status === 500))]);
  }
});

test('answers 400 for a result with the message of the SDKs for invalid arguments', async () => {
  const refusal = 'Input validation error: Invalid arguments for tool echo: Expected string, received number';
  const texts: Record<string, string> = {
    echo: `MCP error -32602: ${refusal}`,
    gone: 'MCP error -32602: Tool gone not found',
    broken: 'MCP error -32603: MCP error -32602: x',
  };
  await app.serve('sdk', 'sdk-1', ({ method, params }) => {
    if (method !== 'tools/call')
      return { tools: Object.keys(texts).map((name) => ({ name, inputSchema: {} })) };
    return { isError: true, content: [{ type: 'text', text: texts[String(params?.name)] ?? '' }] };
  });
  const { status, body } = await call('sdk-1', 'echo', { arguments: { message: 7 } });
  assert.equal([status, body.error_code], [400, 'INVALID_TOOL_ARGUMENTS']);
  assert.equal(body.backend_error, { code: -32602, message: texts.echo });
  for (const tool of ['gone', 'broken']) {
    assert.is((await call('sdk-1', tool)).outcome, '500 TOOL_EXECUTION_FAILED');
  }
});

test('answers 503 when the server is unhealthy, and calls no other', async () => {
  const { outcome, headers } = await call('dead', 'name');
  assert.is(outcome, '503 BACKEND_UNAVAILABLE');
  assert.ok(Number(headers.get('retry-after')) >= 1);
});

test.run();
