// Shared by the attacks: a backend whose tools write their answers themselves, and figures of what callers saw.

import type { ServerResponse } from 'node:http';
import { answerJson, messageOf, type RawServer, startRawServer } from '../../transports/raw-server.ts';

export const MIB = 1024 * 1024;

/** Writes the answer to a call with this id, or only a part of it. */
type ToolAnswer = (response: ServerResponse, id: unknown) => unknown;

/** The result of `initialize`, and of `tools/list` for these tools. */
export const INITIALIZED = {
  protocolVersion: '2025-06-18',
  capabilities: { tools: {} },
  serverInfo: { name: 'attacked', version: '1' },
};
export const toolsOf = (names: readonly string[]) => ({
  tools: names.map((name) => ({ name, inputSchema: { type: 'object' } })),
});

/** A server of the legacy era without sessions. */
export function startToolServer(tools: Readonly<Record<string, ToolAnswer>>): Promise<RawServer> {
  return startRawServer(async (request, response) => {
    response.on('error', () => {}); // clients may disconnect at any time
    if (request.method !== 'POST') return response.writeHead(405).end();
    const { id, method, params } = await messageOf(request);
    if (id === undefined) return response.writeHead(202).end();
    if (method === 'tools/call') return tools[String(Object(params).name)]?.(response, id);
    const results: Readonly<Record<string, object>> = {
      initialize: { result: INITIALIZED },
      ping: { result: {} },
      'tools/list': { result: toolsOf(Object.keys(tools)) },
    };
    const said = results[String(method)] ?? { error: { code: -32601, message: 'Method not found' } };
    return answerJson(response, 200, { jsonrpc: '2.0', id, ...said });
  });
}

/** Answers a call without content. */
export const nothing: ToolAnswer = (response, id) =>
  answerJson(response, 200, { jsonrpc: '2.0', id, result: { content: [] } });

/** Figures of these times, in whole ms. */
export function figuresOf(times: readonly number[]) {
  const sorted = times.toSorted((one, another) => one - another);
  const at = (part: number) => Math.round(sorted[Math.floor(part * (sorted.length - 1))] ?? 0);
  return { count: times.length, p50: at(0.5), p95: at(0.95), p99: at(0.99), most: at(1) };
}
