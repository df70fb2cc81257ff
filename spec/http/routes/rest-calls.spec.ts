// Tools, resources and prompts over REST: results, lists, event streams and errors, of backends behind each transport.

import { once } from 'node:events';
import { text as textOfBody } from 'node:stream/consumers';
import { EMPTY } from 'rxjs';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import type { InProcessHandler } from '../../../src/transports/open-options.ts';
import { startEverything } from '../../fixtures/everything-server.ts';
import { startHttpServer } from '../../fixtures/http-server.ts';
import { stdioServerPath } from '../../fixtures/programs.ts';
import { tools } from '../../fixtures/tools.ts';
import { head, jsonRequest, openRaw, readUntil } from '../../helpers/clients/raw-http.ts';
import { until } from '../../helpers/eventually.ts';
import { appFor, startApp } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';
import { startRawServer } from '../../transports/raw-server.ts';

const test = suite('calls over REST');
const app = appFor(test, () => startApp());
// Answers as event streams: a JSON answer has no room for notifications.
const backend = startHttpServer({ name: 'over-http', answers: 'sse' });
const toolsOnly = startHttpServer({ capabilities: ['tools'] });
test.before(async () => {
  await app.serve('function', 'f');
  await app.gateway.register('http', { id: 'h', endpoint: (await backend).url }, { waitMs: 5_000 });
  await app.gateway.register('bare', { endpoint: (await toolsOnly).url }, { waitMs: 5_000 });
  const command = { id: 's', command: process.execPath, args: [stdioServerPath, '--name=over-stdio'] };
  await app.gateway.register('stdio', command, { waitMs: 5_000 });
});
test.after(async () => {
  await (await backend).close();
  await (await toolsOnly).close();
});

type Headers = Readonly<Record<string, string>>;
const EVENTS = { accept: 'text/event-stream' };
const post = (path: string, body: unknown, headers: Headers = {}) =>
  app.ask('POST', `/mcp/${path}`, { body, headers });
const call = (template: string, body: unknown, headers?: Headers) =>
  post(`${template}/tools/call`, body, headers);

/** Registers a template whose only tool is this function. */
async function serveTool(template: string, run: InProcessHandler): Promise<void> {
  await app.serve(template, `${template}-1`, (request, context) =>
    request.method === 'tools/list' ? { tools: [{ name: 'tool' }] } : run(request, context),
  );
}

for (const [template, id, name] of [
  ['function', 'f', 'f'],
  ['http', 'h', 'over-http'],
  ['stdio', 's', 'over-stdio'],
] as const) {
  test(`call and list the tools of a ${template} backend`, async () => {
    const answer = await call(template, { name: 'name', arguments: {} });
    assert.equal([answer.status, answer.body], [200, { content: [{ type: 'text', text: name }] }]);
    const list = await app.ask('GET', `/mcp/${template}/tools/list`);
    assert.equal([list.status, list.body.count], [200, Object.keys(tools).length]);
    for (const { headers } of [answer, list]) assert.is(headers.get('x-instance-id'), id);
  });

  test(`stream the progress and the log messages of a ${template} backend`, async () => {
    const progress = { name: 'progress', arguments: { steps: 2 }, _meta: { progressToken: 'mine' } };
    const { text } = await call(template, progress, EVENTS);
    const names = [...text.matchAll(/^event: (.*)$/gm)].map(([, event]) => event);
    assert.equal(names, ['progress', 'progress', 'result']);
    assert.match(text, /"progressToken":"mine"/);
    const log = await call(template, { name: 'log', arguments: { text: 'hello' } }, EVENTS);
    assert.match(
      log.text,
      /^event: log\ndata: \{"method":"notifications\/message".*"hello".*\}\n\nevent: result\n/,
    );
  });

  test(`map the errors of a ${template} backend`, async () => {
    const failing = (code: number) => call(template, { name: 'error', arguments: { code } });
    assert.is((await failing(-32602)).outcome, '400 INVALID_TOOL_ARGUMENTS');
    const broken = await failing(-32000);
    assert.is(broken.outcome, '500 TOOL_EXECUTION_FAILED');
    const message = 'an error on purpose';
    assert.equal(broken.body.backend_error, { code: -32000, message, data: { asked: -32000 } });
    const failed = await call(template, { name: 'fail' });
    assert.equal([failed.status, failed.body.isError], [200, true]);
    assert.is((await call(template, { name: 'no such tool' })).outcome, '404 TOOL_NOT_FOUND');
  });
}

test('ask a modern server for log messages, of the level that the caller names', async () => {
  const server = await startEverything({ era: 'modern' });
  await app.gateway.register('modern', { endpoint: server.url }, { waitMs: 5_000 });
  const streamed = async (_meta?: object) =>
    (await call('modern', { name: 'test_logging_tool', _meta }, EVENTS)).text.match(/^event: .*$/gm);
  assert.equal(await streamed(), ['event: log', 'event: result']);
  assert.equal(await streamed({ 'io.modelcontextprotocol/logLevel': 'error' }), ['event: result']);
  await server.close();
});

test('return a result unchanged, and send its events in the format that the client prefers', async () => {
  const result = {
    content: [{ type: 'text', text: 'ü' }],
    structuredContent: { a: [1] },
    _meta: { x: 1 },
    more: null,
  };
  await serveTool('plain', (_request, { notify }) => {
    notify('notifications/progress', { progress: 1, total: 2 });
    notify('constructor', {});
    return result;
  });
  const plain = JSON.stringify(result);
  const stream =
    'event: progress\ndata: {"method":"notifications/progress","params":{"progress":1,"total":2}}\n\n' +
    'event: notification\ndata: {"method":"constructor","params":{}}\n\n' +
    `event: result\ndata: ${plain}\n\n`;
  for (const [accept, isStream] of [
    ['text/event-stream', true],
    ['text/event-stream, application/json', true],
    ['text/event-stream, */*', true],
    ['application/json, text/event-stream', false],
    ['application/json', false],
    ['*/*', false],
    ['text/*', false],
    ['application/json;q=0.5, text/event-stream', true],
    ['text/event-stream;q=0.5, application/json', false],
    ['text/event-stream;q=0', false],
  ] as const) {
    const { status, text, headers } = await call('plain', { name: 'tool' }, { accept });
    assert.equal([status, text], [200, isStream ? stream : plain], accept);
    assert.is(headers.get('content-type'), isStream ? 'text/event-stream' : 'application/json');
    assert.is(headers.get('x-instance-id'), 'plain-1');
  }
});

test('answer an error before the first event with its status, and a later one as the event error', async () => {
  const error = { code: -32602, message: 'a is required', data: { a: 1 } };
  let isLate = false;
  await serveTool('strict', (_request, { notify }) => {
    if (isLate) notify('notifications/progress', { progress: 1 });
    throw error;
  });
  for (const headers of [{}, EVENTS]) {
    const { status, body } = await call('strict', { name: 'tool' }, headers);
    assert.equal([status, body.error_code, body.backend_error], [400, 'INVALID_TOOL_ARGUMENTS', error]);
  }
  isLate = true;
  const { status, text } = await call('strict', { name: 'tool' }, EVENTS);
  const { error_code, backend_error } = JSON.parse(/event: error\ndata: (.*)\n\n$/.exec(text)?.[1] ?? '{}');
  assert.equal([status, error_code, backend_error], [200, 'INVALID_TOOL_ARGUMENTS', error]);
});

for (const [kind, request, headers] of [
  ['an answer', 'POST /mcp/slow/tools/call', {}],
  ['the end of an event stream', 'POST /mcp/slow/tools/call', { Accept: 'text/event-stream' }],
  ['a list', 'GET /mcp/slow/prompts/list', {}],
] as const) {
  test(`cancel the request at the backend when the client disconnects before ${kind}`, async () => {
    const other = await startApp({ logLevel: 'error' });
    const running = Promise.withResolvers<AbortSignal>();
    await other.serve('slow', 'one', async ({ method }, { signal, notify }) => {
      if (method === 'tools/list') return { tools: [{ name: 'tool' }] };
      if (method === 'tools/call') notify('notifications/progress', { progress: 1 });
      else if (method !== 'prompts/list') return {};
      running.resolve(signal);
      await once(signal, 'abort');
      return {};
    });
    const socket = await openRaw(other.port);
    socket.write(
      request.startsWith('GET') ? head(request) : jsonRequest(request, '{"name":"tool"}', headers),
    );
    if ('Accept' in headers) await readUntil(socket, 'progress');
    const signal = await running.promise;
    socket.destroy();
    if (!signal.aborted) await once(signal, 'abort');
    await other.close();
    assert.equal(other.log, [], 'a disconnect is not an error');
  });
}

test('get 503 with Retry-After when no instance is healthy', async () => {
  await app.gateway.register('down', { id: 'd', endpoint: 'http://127.0.0.1:1' });
  for (const answer of [
    await call('down', { name: 'x' }),
    await call('down', { name: 'x' }, EVENTS),
    await app.ask('GET', '/mcp/down/tools/list'),
  ]) {
    assert.equal([answer.status, answer.body.error_code], [503, 'NO_HEALTHY_INSTANCE']);
    assert.match(answer.headers.get('retry-after') ?? '', /^\d+$/);
  }
});

test('get 503 without Retry-After when the call may have been executed', async () => {
  const fragile = await startHttpServer();
  await app.gateway.register('fragile', { endpoint: fragile.url }, { waitMs: 5_000 });
  fragile.failNext('reset', { method: 'tools/call' });
  const lost = await call('fragile', { name: 'count' });
  assert.equal([lost.status, lost.body.error_code], [503, 'BACKEND_UNAVAILABLE']);
  await fragile.close();
  await app.serve('slow', 'slow-1');
  await app.gateway.changeTemplate('slow', { timeout: 1 });
  const late = await call('slow', { name: 'sleep', arguments: { ms: 60_000 } });
  assert.equal([late.status, late.body.error_code], [503, 'BACKEND_TIMEOUT']);
  for (const { body, headers } of [lost, late])
    assert.equal([body.delivered, headers.get('retry-after')], ['unknown', null]);
});

// --- resources and prompts ------------------------------------------------------------------------------------------

const completion = { ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'who', value: 'a' } };

test('list resources, resource templates and prompts, and empty lists of a server without them', async () => {
  const greet = { name: 'greet', description: 'Greets.', arguments: [{ name: 'who', required: true }] };
  const greeting = { uri: 'test://greeting', name: 'greeting', mimeType: 'text/plain' };
  const item = { uriTemplate: 'test://item/{id}', name: 'item', mimeType: 'text/plain' };
  for (const [path, field, records] of [
    ['prompts/list', 'prompts', [greet]],
    ['resources/list', 'resources', [greeting]],
    ['resources/templates/list', 'resourceTemplates', [item]],
  ] as const) {
    const { status, body, headers } = await app.ask('GET', `/mcp/http/${path}`);
    assert.equal([status, body, headers.get('x-instance-id')], [200, { [field]: records, count: 1 }, 'h']);
    assert.equal((await app.ask('GET', `/mcp/bare/${path}`)).body, { [field]: [], count: 0 });
  }
});

test('get a prompt, complete an argument and read a resource', async () => {
  const text = 'content of test://greeting from over-http';
  for (const [method, params, result] of [
    [
      'prompts/get',
      { name: 'greet', arguments: { who: 'Ada' } },
      { messages: [{ role: 'user', content: { type: 'text', text: 'Hello, Ada' } }] },
    ],
    [
      'completion/complete',
      completion,
      { completion: { values: ['a-completed'], total: 1, hasMore: false } },
    ],
    [
      'resources/read',
      { uri: 'test://greeting' },
      { contents: [{ uri: 'test://greeting', mimeType: 'text/plain', text }] },
    ],
  ] as const) {
    const { status, body, headers } = await post(`http/${method}`, params);
    assert.equal([status, body, headers.get('x-instance-id')], [200, result, 'h'], method);
  }
});

test('get 404 for an unknown resource or prompt, and 422 for wrong arguments of a prompt', async () => {
  const resource = await post('http/resources/read', { uri: 'other://x' });
  assert.equal([resource.status, resource.body.error_code], [404, 'RESOURCE_NOT_FOUND']);
  assert.ok(resource.body.backend_error);
  await app.serve('choosy', 'choosy-1', ({ method }) => {
    if (method === 'prompts/list') return { prompts: [{ name: 'greet' }] };
    throw { code: -32602, message: 'who is required' };
  });
  for (const headers of [{}, EVENTS]) {
    const wrong = await post('choosy/prompts/get', { name: 'greet' }, headers);
    assert.equal([wrong.status, wrong.body.error_code], [422, 'VALIDATION_ERROR']);
    const item = { loc: ['body', 'arguments'], msg: 'who is required', type: 'value_error' };
    assert.equal([wrong.body.detail, wrong.headers.get('x-instance-id')], [[item], 'choosy-1']);
    assert.is((await post('choosy/prompts/get', { name: 'x' }, headers)).outcome, '404 PROMPT_NOT_FOUND');
  }
  for (const [ref, status, code] of [
    [{ type: 'ref/prompt', name: 'nope' }, 404, 'PROMPT_NOT_FOUND'],
    [{ type: 'ref/prompt', name: 'greet' }, 500, 'TOOL_EXECUTION_FAILED'],
    [{ type: 'ref/resource', uri: 'a://{b}' }, 500, 'TOOL_EXECUTION_FAILED'],
  ] as const) {
    const answer = await post('choosy/completion/complete', { ...completion, ref });
    assert.equal([answer.status, answer.body.error_code], [status, code]);
  }
  const unable = await post('bare/completion/complete', completion);
  assert.equal([unable.status, unable.body.error_code], [500, 'TOOL_EXECUTION_FAILED']);
  assert.equal(unable.body.backend_error, { code: -32601, message: 'Method not found' });
});

test('parse a list of a large tool once while it is in use, and write its answer once, in pieces', async () => {
  const properties = Object.fromEntries(Array.from({ length: 40_000 }, (_, n) => [`argument${n}`, {}]));
  const page = JSON.stringify({ tools: [{ name: 'large', inputSchema: { type: 'object', properties } }] });
  const waiting: (() => void)[] = [];
  let isHolding = false;
  const server = await startRawServer(async (request, response) => {
    const { id, method } = request.method === 'POST' ? JSON.parse(await textOfBody(request)) : {};
    if (id === undefined) {
      response.writeHead(request.method === 'POST' ? 202 : 405).end();
      return;
    }
    if (method === 'tools/list' && isHolding) {
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
    const [protocolVersion, serverInfo] = ['2025-06-18', { name: 'large', version: '1' }];
    const handshake = JSON.stringify({ protocolVersion, serverInfo, capabilities: { tools: {} } });
    const result = method === 'initialize' ? handshake : method === 'tools/list' ? page : '{"content":[]}';
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`);
  });
  const { parse, stringify } = JSON;
  const isAnswer = (text: string) => text.endsWith('"count":1}');
  let [parsed, longest] = [0, 0];
  JSON.parse = (text: string, ...rest: []) => {
    if (text.length > page.length / 2 && !isAnswer(text)) parsed += 1;
    return parse(text, ...rest);
  };
  JSON.stringify = (value: unknown, ...rest: []) => {
    const text = stringify(value, ...rest);
    longest = Math.max(longest, text?.length ?? 0);
    return text;
  };
  try {
    await app.gateway.register('large', { id: 'large-1', endpoint: server.url }, { waitMs: 5_000 });
    await call('large', { name: 'large' });
    await until(() => parsed === 1); // the gateway reads the tools for itself
    parsed = 0;
    isHolding = true;
    const inUse = app.gateway.list('large', 'tools');
    await until(() => waiting.length === 1);
    const asked = Array.from({ length: 5 }, () => app.ask('GET', '/mcp/large/tools/list'));
    await until(() => waiting.length > asked.length);
    waiting.shift()?.();
    const { items } = await inUse;
    for (const go of waiting) go();
    const [first, ...others] = await Promise.all(asked);
    assert.is(items.length, 1); // the list was in use until here
    assert.match(first?.text ?? '', '"argument39999":{"type":"any","description":""}}}}],"count":1}');
    for (const { text } of others) assert.ok(text === first?.text);
  } finally {
    Object.assign(JSON, { parse, stringify });
    await app.gateway.deregister('large', 'large-1');
    await server.close();
  }
  assert.is(parsed, 1);
  assert.ok(longest < 100_000, `${longest} characters were written at once`);
});

/** The list of these tools, from a template of their own. */
async function listOf(template: string, tools: readonly JsonObject[]) {
  await app.serve(template, `${template}-1`, ({ method }) => (method === 'tools/list' ? { tools } : {}));
  return app.ask('GET', `/mcp/${template}/tools/list`);
}

test('list every field of a tool, and add description, parameters and the count', async () => {
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
  const properties = {
    a: { type: 'string', description: 'A.', enum: ['x'] },
    b: { type: 'any', description: '' },
    c: { type: ['string', 'null'], description: '' },
  };
  const parameters = { type: 'object', properties, required: ['a'] };
  const { body } = await listOf('own', [tool]);
  assert.equal(body, { tools: [{ ...tool, description: '', parameters }], count: 1 });
});

test('list an object of parameters for any input schema, even an invalid one', async () => {
  const schemas = [null, true, 'x', [], {}, { type: 'string' }, { properties: [] }];
  const tools = schemas.map((inputSchema, at) => ({ name: `x${at}`, description: 'X.', inputSchema }));
  const described = { name: 'last', inputSchema: { properties: { a: true } } };
  const { body } = await listOf('any', [{ name: 'none', description: 'X.' }, ...tools, described]);
  const listed: readonly JsonObject[] = Object(body.tools);
  assert.equal(
    listed.map(({ parameters }) => parameters),
    [
      ...Array(8).fill({ type: 'object', properties: {} }),
      { type: 'object', properties: { a: { type: 'any', description: '' } } },
    ],
  );
});

test('list a parameter called __proto__', async () => {
  const inputSchema = JSON.parse('{"properties":{"__proto__":{"type":"string"}}}');
  const parameters = '{"properties":{"__proto__":{"type":"string","description":""}},"type":"object"}';
  assert.match((await listOf('proto', [{ name: 'x', inputSchema }])).text, `"parameters":${parameters}}`);
});

test('a call that ends without an answer is answered with an error, also in an event stream', async () => {
  const { exchange } = app.gateway;
  app.gateway.exchange = () => EMPTY;
  try {
    assert.is((await call('function', { name: 'echo' })).outcome, '500 INTERNAL_ERROR');
    assert.is((await call('function', { name: 'echo' }, EVENTS)).outcome, '500 INTERNAL_ERROR');
  } finally {
    app.gateway.exchange = exchange;
  }
});

test.run();
