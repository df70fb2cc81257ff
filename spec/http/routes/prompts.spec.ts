import * as assert from 'uvu/assert';
import { startHttpServer } from '../../fixtures/http-server.ts';
import { startApp } from '../../helpers/http-app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the routes of prompts and resources');
const started = startApp();
const backend = startHttpServer({ name: 'b' });
const toolsOnly = startHttpServer({ capabilities: ['tools'] });
test.before(async () => {
  const { gateway } = await started;
  await gateway.register('demo', { id: 'one', endpoint: (await backend).url }, { waitMs: 5_000 });
  await gateway.register('bare', { endpoint: (await toolsOnly).url }, { waitMs: 5_000 });
});
test.after(async () => {
  await (await started).close();
  await (await backend).close();
  await (await toolsOnly).close();
});

const ask = async (...parameters: Parameters<Awaited<typeof started>['ask']>) =>
  (await started).ask(...parameters);
const completion = { ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'who', value: 'a' } };

test('list prompts', async () => {
  const greet = { name: 'greet', description: 'Greets.', arguments: [{ name: 'who', required: true }] };
  assert.equal((await ask('GET', '/mcp/demo/prompts/list')).body, { prompts: [greet], count: 1 });
  assert.equal((await ask('GET', '/mcp/bare/prompts/list')).body, { prompts: [], count: 0 });
});

test('get a prompt', async () => {
  const { status, body } = await ask('POST', '/mcp/demo/prompts/get', {
    body: { name: 'greet', arguments: { who: 'Ada' } },
  });
  assert.is(status, 200);
  assert.equal(body, { messages: [{ role: 'user', content: { type: 'text', text: 'Hello, Ada' } }] });
});

test('are 404 when there is no such prompt', async () => {
  const { status, body } = await ask('POST', '/mcp/demo/prompts/get', { body: { name: 'nope' } });
  assert.equal([status, body.error_code], [404, 'PROMPT_NOT_FOUND']);
});

test('are 422 when there is one and its arguments are wrong, streaming or not', async () => {
  const { serve } = await started;
  await serve('strict', 'strict-1', ({ method }) => {
    if (method === 'prompts/list') return { prompts: [{ name: 'greet' }] };
    throw { code: -32602, message: 'who is required' };
  });
  for (const accept of ['application/json', 'text/event-stream']) {
    const answer = await ask('POST', '/mcp/strict/prompts/get', {
      body: { name: 'greet' },
      headers: { accept },
    });
    assert.equal([answer.status, answer.body.error_code], [422, 'VALIDATION_ERROR']);
    assert.equal(answer.body.detail, [
      { loc: ['body', 'arguments'], msg: 'who is required', type: 'value_error' },
    ]);
    assert.is(answer.headers.get('x-instance-id'), 'strict-1');
    const unknown = await ask('POST', '/mcp/strict/prompts/get', {
      body: { name: 'x' },
      headers: { accept },
    });
    assert.equal([unknown.status, unknown.body.error_code], [404, 'PROMPT_NOT_FOUND']);
  }
});

test('complete an argument', async () => {
  const { status, body, headers } = await ask('POST', '/mcp/demo/completion/complete', { body: completion });
  assert.is(status, 200);
  assert.equal(body, { completion: { values: ['a-completed'], total: 1, hasMore: false } });
  assert.is(headers.get('x-instance-id'), 'one');
});

test('are 404 when there is no prompt to complete an argument of', async () => {
  const { serve } = await started;
  await serve('choosy', 'choosy-1', ({ method }) => {
    if (method === 'prompts/list') return { prompts: [{ name: 'greet' }] };
    throw { code: -32602, message: 'no' };
  });
  const complete = async (ref: object) => {
    const { status, body } = await ask('POST', '/mcp/choosy/completion/complete', {
      body: { ...completion, ref },
    });
    return [status, body.error_code];
  };
  assert.equal(await complete({ type: 'ref/prompt', name: 'nope' }), [404, 'PROMPT_NOT_FOUND']);
  assert.equal(await complete({ type: 'ref/prompt', name: 'greet' }), [500, 'TOOL_EXECUTION_FAILED']);
  assert.equal(await complete({ type: 'ref/resource', uri: 'a://{b}' }), [500, 'TOOL_EXECUTION_FAILED']);
});

test('are 500 with the backend error when a server cannot complete', async () => {
  const { status, body } = await ask('POST', '/mcp/bare/completion/complete', { body: completion });
  assert.equal([status, body.error_code], [500, 'TOOL_EXECUTION_FAILED']);
  assert.equal(body.backend_error, { code: -32601, message: 'Method not found' });
});

test('list resources', async () => {
  const { status, body, headers } = await ask('GET', '/mcp/demo/resources/list');
  assert.is(status, 200);
  assert.equal(body, {
    resources: [{ uri: 'test://greeting', name: 'greeting', mimeType: 'text/plain' }],
    count: 1,
  });
  assert.is(headers.get('x-instance-id'), 'one');
});

test('list resource templates', async () => {
  const { body } = await ask('GET', '/mcp/demo/resources/templates/list');
  assert.equal(body, {
    resourceTemplates: [{ uriTemplate: 'test://item/{id}', name: 'item', mimeType: 'text/plain' }],
    count: 1,
  });
});

test('list nothing where the server offers none', async () => {
  assert.equal((await ask('GET', '/mcp/bare/resources/list')).body, { resources: [], count: 0 });
  assert.equal((await ask('GET', '/mcp/bare/resources/templates/list')).body, {
    resourceTemplates: [],
    count: 0,
  });
});

test('read a resource', async () => {
  const { status, body, headers } = await ask('POST', '/mcp/demo/resources/read', {
    body: { uri: 'test://greeting' },
  });
  assert.is(status, 200);
  assert.equal(body, {
    contents: [{ uri: 'test://greeting', mimeType: 'text/plain', text: 'content of test://greeting from b' }],
  });
  assert.is(headers.get('x-instance-id'), 'one');
});

test('are 404 when there is no such resource', async () => {
  const { status, body } = await ask('POST', '/mcp/demo/resources/read', { body: { uri: 'other://x' } });
  assert.equal([status, body.error_code], [404, 'RESOURCE_NOT_FOUND']);
  assert.ok(body.backend_error);
});

test.run();
