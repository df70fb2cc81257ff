// An MCP server over Streamable HTTP that can fail in the ways of real servers: its probes pass, or fail as
// well. It records the calls that it carried out, so that duplicates are found.

import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { portOf } from '../port.ts';

/** The failure of every call; with `hang on everything` also of every other request. */
export const FAULTS = ['500', 'reset', 'half answer', 'hang on calls', 'hang on everything'] as const;
export type Fault = (typeof FAULTS)[number];

const tools = [
  { name: 'read', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } },
  { name: 'write', inputSchema: { type: 'object' } },
];

interface Message {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: { readonly name?: string; readonly arguments?: { readonly key?: string } };
}

export class SickServer {
  readonly #server: Server;
  /** Undefined while it works. */
  fault: Fault | undefined;
  /** Number of times that each call was carried out, answered or not, by key. */
  readonly carriedOut = new Map<string, number>();
  /** Times of answers to calls, in ms of `performance.now()`. */
  readonly answeredAtMs: number[] = [];

  constructor() {
    this.#server = createServer({ keepAliveTimeout: 120_000, requestTimeout: 0 }, (request, response) =>
      this.#serve(request, response),
    );
  }

  async start(): Promise<string> {
    const port = await portOf(this.#server.listen(0, '127.0.0.1'));
    return `http://127.0.0.1:${port}/mcp`;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      if (this.fault === 'hang on everything' && request.method !== 'POST') return;
      if (request.method === 'POST') this.#answer(JSON.parse(Buffer.concat(chunks).toString()), response);
      else response.writeHead(request.method === 'DELETE' ? 200 : 405).end();
    });
  }

  #answer(message: Message, response: ServerResponse): void {
    const { id, method, params } = message;
    if (method === 'tools/call') {
      const key = params?.arguments?.key ?? '';
      this.carriedOut.set(key, (this.carriedOut.get(key) ?? 0) + 1); // worst case: it takes effect without an answer
    }
    if (this.fault === 'hang on everything') return;
    if (method === 'tools/call' && this.fault !== undefined) {
      this.#fail(this.fault, response);
      return;
    }
    if (id === undefined || method === undefined) {
      response.writeHead(202).end();
      return;
    }
    if (method === 'tools/call') this.answeredAtMs.push(performance.now());
    const headers = method === 'initialize' ? { 'mcp-session-id': randomUUID() } : {};
    response.writeHead(200, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify({ jsonrpc: '2.0', id, ...answerTo(method) }));
  }

  #fail(fault: Fault, response: ServerResponse): void {
    if (fault === '500') response.writeHead(500).end('broken');
    else if (fault === 'reset') response.socket?.resetAndDestroy();
    else if (fault === 'half answer') {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1_000 });
      response.write('{"jsonrpc":"2.0",', () => response.socket?.destroy());
    }
  }
}

function answerTo(method: string): object {
  if (method === 'ping') return { result: {} };
  if (method === 'tools/list') return { result: { tools } };
  if (method === 'tools/call') return { result: { content: [{ type: 'text', text: 'done' }] } };
  if (method !== 'initialize') return { error: { code: -32601, message: 'Method not found' } };
  const serverInfo = { name: 'sick', version: '1.0.0' };
  return { result: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo } };
}
