import { fileURLToPath } from 'node:url';
import { Compile } from 'typebox/compile';
import * as assert from 'uvu/assert';
import { ToolList, toolList } from '../../../src/http/routes/mcp-requests.ts';
import { startHttpServer } from '../../fixtures/http-server.ts';
import { tools } from '../../fixtures/tools.ts';
import { startApp } from '../../helpers/http-app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the routes of tools');
const stdioServer = fileURLToPath(new URL('../../fixtures/stdio-server.ts', import.meta.url));
const started = startApp();
// As event streams: in a JSON answer there is no room for notifications.
const backend = startHttpServer({ name: 'over-http', answers: 'sse' });
test.before(async () => {
  const { gateway, serve } = await started;
  await serve('function', 'f');
  await gateway.register('http', { id: 'h', endpoint: (await backend).url }, { waitMs: 5_000 });
  const command = { id: 's', command: process.execPath, args: [stdioServer, '--name=over-stdio'] };
  await gateway.register('stdio', command, { waitMs: 5_000 });
});
test.after(async () => {
  await (await started).close();
  await (await backend).close();
});

const call = async (template: string, body: unknown, headers: Record<string, string> = {}) =>
  (await started).ask('POST', `/mcp/${template}/tools/call`, { body, headers });

for (const [template, id, name] of [
  ['function', 'f', 'f'],
  ['http', 'h', 'over-http'],
  ['stdio', 's', 'over-stdio'],
] as const) {
  test(`call a tool of a ${template} backend`, async () => {
    const answer = await call(template, { name: 'name', arguments: {} });
    assert.is(answer.status, 200);
    assert.equal(answer.body, { content: [{ type: 'text', text: name }] });
    assert.is(answer.headers.get('x-instance-id'), id);
  });

  test(`stream the progress of a ${template} backend`, async () => {
    const body = { name: 'progress', arguments: { steps: 2 }, _meta: { progressToken: 'mine' } };
    const { text } = await call(template, body, { accept: 'text/event-stream' });
    const names = [...text.matchAll(/^event: (.*)$/gm)].map(([, event]) => event);
    assert.equal(names, ['progress', 'progress', 'result']);
    assert.match(text, /"progressToken":"mine"/);
  });

  test(`stream the log of a ${template} backend`, async () => {
    const body = { name: 'log', arguments: { text: 'hello' } };
    const { text } = await call(template, body, { accept: 'text/event-stream' });
    assert.match(
      text,
      /^event: log\ndata: \{"method":"notifications\/message".*"hello".*\}\n\nevent: result\n/,
    );
  });

  test(`say what a ${template} backend did not like`, async () => {
    const invalid = await call(template, { name: 'error', arguments: { code: -32602 } });
    assert.equal([invalid.status, invalid.body.error_code], [400, 'INVALID_TOOL_ARGUMENTS']);
    const broken = await call(template, { name: 'error', arguments: { code: -32000 } });
    assert.equal([broken.status, broken.body.error_code], [500, 'TOOL_EXECUTION_FAILED']);
    assert.equal(broken.body.backend_error, {
      code: -32000,
      message: 'an error on purpose',
      data: { asked: -32000 },
    });
    const failed = await call(template, { name: 'fail' });
    assert.equal([failed.status, failed.body.isError], [200, true]);
    const unknown = await call(template, { name: 'no such tool' });
    assert.equal([unknown.status, unknown.body.error_code], [404, 'TOOL_NOT_FOUND']);
  });

  test(`list the tools of a ${template} backend`, async () => {
    const answer = await (await started).ask('GET', `/mcp/${template}/tools/list`);
    assert.is(answer.status, 200);
    assert.is(answer.headers.get('x-instance-id'), id);
    assert.is(answer.body.count, Object.keys(tools).length);
    assert.ok(Compile(ToolList).Check(answer.body));
  });
}

test('gather every page of a list', async () => {
  const paged = await startHttpServer({ pages: 3 });
  const app = await started;
  await app.gateway.register('paged', { endpoint: paged.url }, { waitMs: 5_000 });
  assert.is((await app.ask('GET', '/mcp/paged/tools/list')).body.count, Object.keys(tools).length);
  await paged.close();
});

test('pass on large results as they are', async () => {
  const body = { name: 'echo', arguments: { text: 'ü'.repeat(200_000) } };
  const answer = await call('http', body);
  assert.equal(answer.body, { content: [{ type: 'text', text: body.arguments.text }] });
});

test('are 503 with Retry-After when no instance is healthy', async () => {
  const app = await started;
  await app.gateway.register('down', { id: 'd', endpoint: 'http://127.0.0.1:1' });
  for (const headers of [{}, { accept: 'text/event-stream' }]) {
    const answer = await call('down', { name: 'x' }, headers);
    assert.equal([answer.status, answer.body.error_code], [503, 'NO_HEALTHY_INSTANCE']);
    assert.match(answer.headers.get('retry-after') ?? '', /^\d+$/);
  }
  const list = await app.ask('GET', '/mcp/down/tools/list');
  assert.equal([list.status, list.body.error_code], [503, 'NO_HEALTHY_INSTANCE']);
});

test('are 503 without Retry-After when the call may have happened', async () => {
  const fragile = await startHttpServer();
  const app = await started;
  await app.gateway.register('fragile', { endpoint: fragile.url }, { waitMs: 5_000 });
  fragile.failNext('reset', { method: 'tools/call' });
  const answer = await call('fragile', { name: 'count' });
  assert.equal([answer.status, answer.body.error_code], [503, 'BACKEND_UNAVAILABLE']);
  assert.is(answer.body.delivered, 'unknown');
  assert.is(answer.headers.get('retry-after'), null);
  await fragile.close();
});

test('are 503 BACKEND_TIMEOUT when the answer takes too long', async () => {
  const app = await started;
  await app.serve('slow', 'slow-1');
  await app.gateway.changeTemplate('slow', { timeout: 1 });
  const answer = await call('slow', { name: 'sleep', arguments: { ms: 60_000 } });
  assert.equal([answer.status, answer.body.error_code], [503, 'BACKEND_TIMEOUT']);
  assert.is(answer.body.delivered, 'unknown');
});

test.run();

const list = suite('the list of tools');

list('keeps every field and adds description, parameters and the count', () => {
  const inputSchema = {
    type: 'object',
    properties: {
      a: { type: 'string', description: 'A.', enum: ['x'] },
      b: {},
      c: { type: ['string', 'null'] },
    },
    required: ['a'],
  };
  const tool = { name: 'echo', title: 'Echo', annotations: { readOnlyHint: true }, inputSchema };
  assert.equal(toolList([tool]), {
    tools: [
      {
        ...tool,
        description: '',
        parameters: {
          type: 'object',
          properties: {
            a: { type: 'string', description: 'A.', enum: ['x'] },
            b: { type: 'any', description: '' },
            c: { type: ['string', 'null'], description: '' },
          },
          required: ['a'],
        },
      },
    ],
    count: 1,
  });
  assert.equal(inputSchema.properties.b, {}, 'the schema itself is not touched');
});

list('makes an object with properties of whatever the schema is', () => {
  const empty = { type: 'object', properties: {} };
  for (const inputSchema of [undefined, null, true, 'x', [], {}, { type: 'string' }, { properties: [] }]) {
    const { tools } = toolList([
      { name: 'x', description: 'X.', ...(inputSchema === undefined ? {} : { inputSchema }) },
    ]);
    assert.equal(tools[0]?.parameters, empty);
  }
  const { tools } = toolList([{ name: 'x', inputSchema: { properties: { a: true } } }]);
  assert.equal(tools[0]?.parameters.properties, { a: { type: 'any', description: '' } });
});

list('takes a parameter called __proto__ for a parameter', () => {
  const inputSchema = JSON.parse('{"properties":{"__proto__":{"type":"string"}}}');
  const { tools } = toolList([{ name: 'x', inputSchema }]);
  assert.is(
    JSON.stringify(tools[0]?.parameters),
    '{"properties":{"__proto__":{"type":"string","description":""}},"type":"object"}',
  );
});

list('counts nothing as nothing', () => {
  assert.equal(toolList([]), { tools: [], count: 0 });
});

list.run();
