// `tool_timeouts` of a template: the timeout of each call, at every door. Time is real, and short.

import * as assert from 'uvu/assert';
import { createGateway, type Gateway } from '../../src/gateway/gateway.ts';
import { type HttpFixture, startHttpServer } from '../fixtures/http-server.ts';
import { codeOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';
import { modernRequest, openSession, postTo } from './mcp/post.ts';

const test = suite('timeouts of tools', { timeoutMs: 30_000 });
const SLEEP = { name: 'sleep', arguments: { ms: 1_000 } };
let gateway: Gateway;
let server: HttpFixture;
test.before(async () => {
  gateway = await createGateway();
  server = await startHttpServer();
  await gateway.register('t', { id: 'one', endpoint: server.url }, { waitMs: 5_000 });
  await gateway.changeTemplate('t', { timeout: 20, max_retries: 0, tool_timeouts: { sleep: 0.2 } });
});
test.after(async () => {
  await gateway.close({ graceMs: 0 });
  await server.close();
});

test('a call of the gateway and of a client without a session ends after the timeout of its tool', async () => {
  assert.is(await codeOf(gateway.call('t', SLEEP.name, SLEEP.arguments)), 'BACKEND_TIMEOUT');
  for (const [template, name] of [
    ['t', 'sleep'],
    [undefined, 't__sleep'],
  ] as const) {
    const { answer } = await postTo(gateway, {
      template,
      ...modernRequest('tools/call', { ...SLEEP, name }),
    });
    assert.is(Object(answer).error.data.error_code, 'BACKEND_TIMEOUT');
  }
});

test('a call of a session ends after the timeout of its tool, at a template and at /mcp', async () => {
  for (const [template, name] of [
    ['t', 'sleep'],
    [undefined, 't__sleep'],
  ] as const) {
    const headers = await openSession(gateway, template);
    const message = { method: 'tools/call', params: { ...SLEEP, name } };
    const { answer } = await postTo(gateway, { template, message, headers });
    assert.is(Object(answer).error.data.error_code, 'BACKEND_TIMEOUT');
  }
});

test('other tools have the timeout of the template, also a tool with the name of a property of objects', async () => {
  const { result } = await gateway.call('t', 'echo', { text: 'x' });
  assert.ok(Object(result).content);
  await gateway.changeTemplate('t', { tool_timeouts: { other: 0.2 } });
  assert.ok(Object((await gateway.call('t', 'sleep', { ms: 400 })).result).content);
  assert.is(await codeOf(gateway.call('t', 'constructor', {})), 'TOOL_NOT_FOUND');
});

test.run();
