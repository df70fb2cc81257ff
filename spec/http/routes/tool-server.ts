// An HTTP server of MCP without sessions, whose tools may change without a notice.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

export interface ToolServer {
  readonly endpoint: string;
  close(): void;
}

/** `tools`: each list has what is in the array then. A call says which tool was called. */
export async function startToolServer(tools: readonly object[]): Promise<ToolServer> {
  const server = createServer(async (request, response) => {
    const { id, method, params } = (await json(request)) as {
      id?: number;
      method: string;
      params?: { name?: string };
    };
    const results: Record<string, unknown> = {
      initialize: {
        ...{ protocolVersion: '2025-11-25', serverInfo: { name: 's', version: '1' } },
        capabilities: { tools: {} },
      },
      ping: {},
      'tools/list': { tools },
      'tools/call': { content: [{ type: 'text', text: `called ${params?.name}` }] },
    };
    if (id === undefined) {
      response.writeHead(202).end();
      return;
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] }));
  });
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    close: () => server.close().closeAllConnections(),
  };
}
