import { once } from 'node:events';
import * as assert from 'uvu/assert';
import type { InProcessHandler } from '../../src/transports/transport.ts';
import { startApp } from '../helpers/http-app.ts';
import { head, openRaw, readUntil } from '../helpers/http-raw.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('an exchange as a reply');
const started = startApp();
test.after(async () => (await started).close());

const EVENTS = { accept: 'text/event-stream' };

/** Registers a template of its own whose only tool does this. */
async function withTool(template: string, run: InProcessHandler) {
  const app = await started;
  await app.serve(template, `${template}-1`, (request, context) =>
    request.method === 'tools/list' ? { tools: [{ name: 'tool' }] } : run(request, context),
  );
  return {
    port: app.port,
    call: (headers: Record<string, string> = {}) =>
      app.ask('POST', `/mcp/${template}/tools/call`, { body: { name: 'tool' }, headers }),
  };
}

test('is the result as it is, and says who gave it', async () => {
  const result = {
    content: [{ type: 'text', text: 'ü' }],
    structuredContent: { a: [1] },
    _meta: { x: 1 },
    more: null,
  };
  const { call } = await withTool('plain', () => result);
  const answer = await call();
  assert.is(answer.status, 200);
  assert.is(answer.text, JSON.stringify(result));
  assert.is(answer.headers.get('x-instance-id'), 'plain-1');
  assert.is(answer.headers.get('content-type'), 'application/json');
});

test('leaves notifications out of a JSON answer', async () => {
  const { call } = await withTool('noisy', (_request, { notify }) => {
    notify('notifications/message', { level: 'info', data: 'x' });
    return {};
  });
  assert.is((await call()).text, '{}');
});

test('streams what comes, when it is asked to', async () => {
  const { call } = await withTool('telling', (_request, { notify }) => {
    notify('notifications/progress', { progress: 1, total: 2 });
    notify('notifications/message', { level: 'info', data: 'x' });
    return { content: [] };
  });
  const { text, headers } = await call(EVENTS);
  assert.is(headers.get('x-instance-id'), 'telling-1');
  assert.is(
    text,
    [
      'event: progress\ndata: {"method":"notifications/progress","params":{"progress":1,"total":2}}\n\n',
      'event: log\ndata: {"method":"notifications/message","params":{"level":"info","data":"x"}}\n\n',
      'event: result\ndata: {"content":[]}\n\n',
    ].join(''),
  );
});

test('makes the status of an error answer, streaming or not', async () => {
  const { call } = await withTool('strict', () => {
    throw { code: -32602, message: 'a is required', data: { a: 1 } };
  });
  for (const headers of [{}, EVENTS]) {
    const answer = await call(headers);
    assert.is(answer.status, 400);
    assert.is(answer.body.error_code, 'INVALID_TOOL_ARGUMENTS');
    assert.equal(answer.body.backend_error, { code: -32602, message: 'a is required', data: { a: 1 } });
  }
});

test('makes the event error of an error answer that comes late', async () => {
  const { call } = await withTool('late', (_request, { notify }) => {
    notify('notifications/progress', { progress: 1 });
    throw { code: -32000, message: 'broke' };
  });
  const { status, text } = await call(EVENTS);
  assert.is(status, 200);
  const [, data = '{}'] = /event: error\ndata: (.*)\n\n$/.exec(text) ?? [];
  const { error_code, backend_error } = JSON.parse(data);
  assert.equal(
    { error_code, backend_error },
    {
      error_code: 'TOOL_EXECUTION_FAILED',
      backend_error: { code: -32000, message: 'broke' },
    },
  );
});

for (const [kind, headers] of [
  ['a JSON answer', {}],
  ['an event stream', { Accept: 'text/event-stream' }],
] as const) {
  test(`tells the backend when the client leaves before ${kind}`, async () => {
    const running = Promise.withResolvers<AbortSignal>();
    const { port } = await withTool(`slow-${kind.length}`, async (_request, { signal, notify }) => {
      notify('notifications/progress', { progress: 1 });
      running.resolve(signal);
      await once(signal, 'abort');
      return {};
    });
    const body = '{"name":"tool"}';
    const socket = await openRaw(port);
    const length = { 'Content-Type': 'application/json', 'Content-Length': String(body.length), ...headers };
    socket.write(head(`POST /mcp/slow-${kind.length}/tools/call`, length) + body);
    if ('Accept' in headers) await readUntil(socket, 'progress');
    const signal = await running.promise;
    socket.destroy();
    if (!signal.aborted) await once(signal, 'abort');
    assert.ok(signal.aborted);
  });
}

test('that is a list is cancelled at the backend when the client leaves, and that is no error', async () => {
  const app = await startApp({ logLevel: 'error' });
  const running = Promise.withResolvers<AbortSignal>();
  await app.serve('t', 'one', async ({ method }, { signal }) => {
    if (method !== 'prompts/list') return {};
    running.resolve(signal);
    await once(signal, 'abort');
    return {};
  });
  const socket = await openRaw(app.port);
  socket.write(head('GET /mcp/t/prompts/list'));
  const signal = await running.promise;
  socket.destroy();
  if (!signal.aborted) await once(signal, 'abort');
  await app.close();
  assert.equal(app.log, []);
});

test.run();
