// The SDK's own legacy client through the legacy endpoint, to real servers of both eras: it finds what it would find there
// by itself, and with a modern server what only the gateway makes possible.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import * as assert from 'uvu/assert';
import { http } from '../../../src/transports/http/http.ts';
import { startEverything } from '../../fixtures/everything-server.ts';
import { suite } from '../../helpers/suite.ts';
import { httpDefinition, openOptions } from '../../transports/http/open-http.ts';
import { type ServedEndpoint, serveEndpoint } from '../served-endpoint.ts';

const test = suite('legacy endpoint and the SDK', { timeoutMs: 20_000 });

interface Visit {
  readonly client: Client;
  readonly transport: StreamableHTTPClientTransport;
  readonly served: ServedEndpoint;
  /** The text that a tool answers with. */
  call(name: string, args?: Record<string, unknown>, onprogress?: () => void): Promise<string>;
  readonly log: string[];
}

async function visit(era: 'legacy' | 'modern', body: (visit: Visit) => Promise<void>): Promise<void> {
  const server = await startEverything({ era });
  const backend = await http.open(httpDefinition(server.url), openOptions());
  const served = await serveEndpoint(backend);
  const transport = new StreamableHTTPClientTransport(served.url);
  const capabilities = { elicitation: {}, sampling: {}, roots: {} };
  const client = new Client({ name: 'visitor', version: '1' }, { capabilities });
  const log: string[] = [];
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { name: 'Ann' } }));
  client.setRequestHandler(CreateMessageRequestSchema, () => ({
    role: 'assistant',
    model: 'm',
    content: { type: 'text', text: 'Paris' },
  }));
  client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: 'file:///a' }] }));
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
    log.push(String(params.data));
  });
  const call: Visit['call'] = async (name, args = {}, onprogress = undefined) => {
    const options = onprogress === undefined ? {} : { onprogress };
    const { content } = await client.callTool({ name, arguments: args }, undefined, options);
    return Array.isArray(content) ? String(content[0]?.text) : '';
  };
  try {
    await client.connect(transport);
    await body({ client, transport, served, call, log });
  } finally {
    await client.close();
    await served.close();
    await backend.close();
    await server.close();
  }
}

for (const era of ['legacy', 'modern'] as const) {
  test(`${era}: lists, calls, and hears of progress`, () =>
    visit(era, async ({ client, call, served }) => {
      assert.is(client.getServerVersion()?.name, 'everything');
      assert.ok((await client.listTools()).tools.length > 10);
      assert.match(await call('test_simple_text'), /text/);
      let reports = 0;
      await call('test_tool_with_progress', {}, () => {
        reports += 1;
      });
      assert.is(reports, 3);
      assert.is((await client.readResource({ uri: 'test://static-text' })).contents.length, 1);
      await client.ping();
      assert.ok(served.endpoint.conversations <= 1);
    }));

  test(`${era}: the client is asked, in the middle of a call`, () =>
    visit(era, async ({ call }) => {
      assert.match(await call('test_elicitation', { message: 'who?' }), /accept/);
      assert.match(await call('test_sampling', { prompt: 'capital?' }), /Paris/);
    }));

  test(`${era}: several calls at once get their own answers`, () =>
    visit(era, async ({ call }) => {
      const names = ['test_simple_text', 'test_elicitation', 'test_sampling', 'test_tool_with_progress'];
      const args = { message: 'm', prompt: 'p' };
      const alone: string[] = [];
      for (const name of names) alone.push(await call(name, args));
      assert.equal(await Promise.all(names.map((name) => call(name, args))), alone);
    }));

  test(`${era}: a session that was ended is not there any more`, () =>
    visit(era, async ({ client, transport }) => {
      const { sessionId } = transport;
      await transport.terminateSession();
      Reflect.set(transport, '_sessionId', sessionId);
      const failure: unknown = await client.ping().catch((error: unknown) => error);
      assert.is(Object(failure).code, 404);
    }));
}

test('legacy: a server that closes its stream is polled', () =>
  visit('legacy', async ({ call, served }) => {
    assert.match(await call('test_reconnection'), /You came back/);
    assert.ok(served.requests.includes('GET after an event'));
  }));

test('legacy: log lines of a call come as they are written', () =>
  visit('legacy', async ({ client, call, log }) => {
    await client.setLoggingLevel('debug');
    await call('test_tool_with_logging');
    assert.is(log.length, 3);
  }));

test('modern: rounds of questions, one kind after the other', () =>
  visit('modern', async ({ call }) => {
    assert.is(await call('test_input_required_result_elicitation'), 'Hello, Ann!');
    assert.is(await call('test_input_required_result_sampling'), 'Paris');
    assert.match(await call('test_input_required_result_list_roots'), /file:\/\/\/a/);
    assert.match(await call('test_input_required_result_multi_round'), /Ann/);
    assert.match(await call('test_input_required_result_capabilities'), /user_name, greeting, client_roots/);
  }));

test.run();
