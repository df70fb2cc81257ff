// A real gateway that is killed or stopped, and started again on its database: sessions with all templates continue for clients of the
// official SDK, and sessions of HTTP+SSE for a client that opens its stream again as `EventSource` does.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import * as assert from 'uvu/assert';
import { WATCHED_URI } from '../../fixtures/everything/resources.ts';
import { startEverything } from '../../fixtures/everything-server.ts';
import { stdioServerPath } from '../../fixtures/programs.ts';
import { initialize, rpc, toolCall } from '../../helpers/clients/mcp-messages.ts';
import { becomes, eventually } from '../../helpers/eventually.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { freePort } from '../../helpers/network/free-port.ts';
import { type McpHarness, register, startHarness } from '../../helpers/programs/mcp-program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: a gateway is restarted', { timeoutMs: 120_000 });
const folder = folderOfAll(test);
let port: number;
let gateway: McpHarness;
let far: Awaited<ReturnType<typeof startEverything>>;
test.before(async () => {
  port = await freePort();
  far = await startEverything({ era: 'legacy' });
  await start();
  await register(gateway.admin, 'far', [{ id: 'one', endpoint: far.url }]);
  await register(gateway.admin, 'own', [{ id: 'one', command: process.execPath, args: [stdioServerPath] }]);
});
test.after(async () => {
  await gateway.remove();
  await far.close();
});

async function start(): Promise<void> {
  gateway = await startHarness({
    port,
    folder: folder(),
    env: { GATEWAY_DATABASE_URL: 'sqlite:///gateway.db' },
  });
}

/** The next life of the gateway. */
async function restart(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
  gateway.program.signal(signal);
  await gateway.program.end();
  await gateway.remove();
  await start();
}

const sessions = async () => Object((await gateway.admin('GET /gateway/sessions')).body).sessions.length;

for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
  test(`a client of the SDK with all templates goes on after ${signal}, with its level and its subscriptions`, async () => {
    const client = new Client({ name: 'spec', version: '1' });
    const reconnectionOptions = {
      maxRetries: 100,
      initialReconnectionDelay: 100,
      maxReconnectionDelay: 500,
      reconnectionDelayGrowFactor: 1.1,
    };
    const transport = new StreamableHTTPClientTransport(new URL('/mcp', gateway.url), {
      reconnectionOptions,
    });
    await client.connect(transport);
    const log: unknown[] = [];
    const updated: string[] = [];
    client.setNotificationHandler(
      LoggingMessageNotificationSchema,
      ({ params }) => void log.push(params.data),
    );
    client.setNotificationHandler(
      ResourceUpdatedNotificationSchema,
      ({ params }) => void updated.push(params.uri),
    );
    await client.setLoggingLevel('debug');
    await client.subscribeResource({ uri: WATCHED_URI });
    await client.callTool({ name: 'own__echo', arguments: { text: 'before' } });
    const id = transport.sessionId;

    await restart(signal);
    const { content } = await client.callTool({ name: 'own__echo', arguments: { text: 'after' } });
    assert.match(JSON.stringify(content), 'after');
    assert.is(transport.sessionId, id);
    await client.callTool({ name: 'far__test_tool_with_logging', arguments: {} });
    await becomes(() => log.length, 3);
    updated.splice(0);
    const trigger = () => client.callTool({ name: 'far__test_trigger_resource_update', arguments: {} });
    await eventually(trigger, () => updated.includes(WATCHED_URI));
    assert.ok(updated.includes(WATCHED_URI));
    assert.is(await sessions(), 1);
    await client.close(); // first: the client would open the stream again that ends with its session
    const headers = { 'mcp-session-id': id ?? '' };
    assert.is((await fetch(new URL('/mcp', gateway.url), { method: 'DELETE', headers })).status, 200);
    await restart('SIGKILL');
    assert.is(await sessions(), 0);
  });
}

for (const [path, tool] of [
  ['/mcp/own/sse', 'echo'],
  ['/mcp/sse', 'own__echo'],
] as const) {
  test(`a client at ${path} that reopens its stream with Last-Event-ID goes on after SIGKILL`, async () => {
    const before = await openStream(path);
    await before.post({ ...initialize('2024-11-05'), id: 0 });
    await before.answer(0);
    await before.post({ jsonrpc: '2.0', method: 'notifications/initialized' });
    await before.post(toolCall(tool, { text: 'before' }, 1));
    await before.answer(1);

    await restart('SIGKILL');
    const early = before.post(toolCall(tool, { text: 'after' }, 2));
    const after = await openStream(path, before.lastEventId);
    assert.is(after.messagesPath, before.messagesPath);
    assert.is(await early, 202);
    assert.match(JSON.stringify(await after.answer(2)), 'after');
    await after.post(rpc('ping', undefined, 3));
    await after.answer(3);
    assert.is(await sessions(), 1);
    await after.leave();
    await becomes(sessions, 0);
    const late = await fetch(new URL(path, gateway.url), { headers: headersOf(before.lastEventId) });
    assert.is(late.status, 404);
  });
}

const headersOf = (eventId?: string) => ({
  accept: 'text/event-stream',
  ...(eventId === undefined ? {} : { 'last-event-id': eventId }),
});

/** A stream of HTTP+SSE. */
async function openStream(path: string, lastEventId?: string) {
  const leaving = new AbortController();
  const { signal } = leaving;
  const response = await fetch(new URL(path, gateway.url), { headers: headersOf(lastEventId), signal });
  assert.is(response.status, 200);
  let text = '';
  const pieces = response.body?.pipeThrough(new TextDecoderStream()) ?? [];
  const read = async () => {
    for await (const piece of pieces) text += piece;
  };
  const reading = read().catch(() => undefined);
  const find = async (pattern: RegExp) => {
    await eventually(async () => pattern.test(text), Boolean);
    return pattern.exec(text) ?? [];
  };
  const [, eventId = '', messagesPath = ''] = await find(
    /event: endpoint\nid: (\S+)\n(?:.*\n)*?data: (\S+)\n\n/,
  );
  return {
    lastEventId: eventId,
    messagesPath,
    async post(message: object): Promise<number> {
      const headers = { 'content-type': 'application/json' };
      const body = JSON.stringify(message);
      const { status } = await fetch(new URL(messagesPath, gateway.url), { method: 'POST', headers, body });
      return status;
    },
    /** The answer to that request. */
    answer: (id: number) => find(new RegExp(`data: .*"id":${id}\\b.*\n`)),
    async leave(): Promise<void> {
      leaving.abort();
      await reading;
    },
  };
}

test.run();
