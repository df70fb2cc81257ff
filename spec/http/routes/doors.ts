// The doors at which callers meet the tools of a template or a view, for the specs of pinned ones: REST, and MCP of the modern era.

import * as assert from 'uvu/assert';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import { startWithAccounts } from '../../helpers/http/accounts.ts';
import { startToolServer, type ToolServer } from './tool-server.ts';

type Json = Record<string, unknown>;

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};
const namesIn = (tools: unknown) => (tools as { name: string }[]).map(({ name }) => name);

export type Doors = Awaited<ReturnType<typeof openDoors>>;

export async function openDoors() {
  const app = await startWithAccounts();
  const servers: ToolServer[] = [];

  async function mcp(path: string, method: string, params: Json): Promise<Json> {
    const headers = {
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(params.name === undefined ? {} : { 'mcp-name': String(params.name) }),
    };
    const message = { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: META } };
    const { text } = await app.as(app.admin, 'POST', path, { headers, body: message });
    return JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text);
  }

  return {
    app,
    mcp,

    /** Registers a server whose tools are always those in the array. */
    async serve(tools: Json[], id = 'one', template = 'files'): Promise<void> {
      const server = await startToolServer(tools);
      servers.push(server);
      await app.gateway.register(template, { id, endpoint: server.endpoint }, { waitMs: 10_000 });
    },

    /** The names of the tools, which are the same at each door. */
    async listed(place: string): Promise<readonly string[]> {
      const rest = await app.as(app.admin, 'GET', `/mcp/${place}/tools/list`);
      const names = namesIn(rest.body.tools);
      const rpc = await mcp(`/mcp/${place}`, 'tools/list', {});
      assert.equal(namesIn((rpc.result as Json).tools), names);
      return names;
    },

    /** The outcome of a call over REST, and of those over MCP: `ok`, or the code. */
    async called(
      place: string,
      name: string,
      overMcp: readonly (readonly [path: string, tool: string])[],
    ): Promise<readonly unknown[]> {
      const body = { name, arguments: {} };
      const rest = await app.as(app.admin, 'POST', `/mcp/${place}/tools/call`, { body });
      const outcomes = [rest.status === 200 ? 'ok' : rest.body.error_code];
      for (const [path, tool] of overMcp) {
        const { error } = await mcp(path, 'tools/call', { name: tool, arguments: {} });
        const { code, data } = (error ?? {}) as { code?: number; data?: { error_code?: string } };
        outcomes.push(error === undefined ? 'ok' : (data?.error_code ?? String(code)));
      }
      return outcomes;
    },

    async close(): Promise<void> {
      await app.close();
      for (const server of servers) server.close();
    },
  };
}

/** Two nodes on one store, which read what the other one changed with their own next change: an app, and a gateway alone. */
export async function openNodes() {
  const store = new MemoryStore();
  const other = await createGateway({ store });
  const here = await startWithAccounts({ gateway: { store } });
  await here.gateway.register('files', { id: 'one', endpoint: 'http://127.0.0.1:1/mcp' });
  return {
    here,
    other,
    writer: await here.key(['gateway:read', 'gateway:write', 'tools:call']),
    async close(): Promise<void> {
      await here.close();
      await other.close({ graceMs: 0 });
    },
  };
}
