// A node:http server on a free port, for specs that need no MCP server and as the base of all fixtures.

import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import { text } from 'node:stream/consumers';
import type { JsonObject } from '../../src/domain/json/json.ts';

export interface RawServer {
  readonly url: string;
  readonly port: number;
  close(): Promise<void>;
}

/** Starts a server on a port of 127.0.0.1, by default a free one. Closing it twice is harmless. */
export async function startRawServer(
  listener: RequestListener,
  wanted = 0,
  options: ServerOptions = {},
): Promise<RawServer> {
  const server = createServer(options, listener).listen(wanted, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    port,
    url: `http://127.0.0.1:${port}/mcp`,
    close: async () => {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Runs the body against a server and closes it whatever happens. */
export async function withRawServer(
  listener: RequestListener,
  body: (server: RawServer) => Promise<void>,
): Promise<void> {
  const server = await startRawServer(listener);
  try {
    await body(server);
  } finally {
    await server.close();
  }
}

/** The JSON-RPC message of a request. */
export async function messageOf(request: IncomingMessage): Promise<JsonObject> {
  const body = await text(request);
  return body === '' ? {} : JSON.parse(body);
}

/** Answers with a JSON body. */
export function answerJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: object = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}
