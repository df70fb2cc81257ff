// Messages of MCP clients of both eras, for `ask` of an app.

import { META } from '../../../src/domain/mcp/mcp.ts';
import type { Answer, Ask } from '../http/app.ts';

type Headers = Readonly<Record<string, string>>;

const MODERN = '2026-07-28';
const clientInfo = { name: 'spec', version: '1' };

export const MCP_TYPES: Headers = {
  ...{ accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
};

export const rpc = (method: string, params: object = {}, id: unknown = 1) => ({
  ...{ jsonrpc: '2.0', id, method, params },
});

export const toolCall = (name: string, args: object = {}, id: unknown = 1) =>
  rpc('tools/call', { name, arguments: args }, id);

export const initialize = (protocolVersion = '2025-11-25') =>
  rpc('initialize', { protocolVersion, capabilities: {}, clientInfo }, 0);

/** Opens a session of the legacy era; returns the headers of its requests. */
export async function openSession(
  app: { ask(method: string, path: string, ask?: Ask): Promise<Answer> },
  path = '/mcp/demo',
  { credentials = {}, version }: { readonly credentials?: Headers; readonly version?: string } = {},
): Promise<Headers> {
  const ask = { body: initialize(version), headers: { ...MCP_TYPES, ...credentials } };
  const { headers } = await app.ask('POST', path, ask);
  return { ...MCP_TYPES, ...credentials, 'mcp-session-id': headers.get('mcp-session-id') ?? '' };
}

/** A request of revision 2026-07-28, which needs no session. */
export function modern(
  method: string,
  params: { readonly name?: string; readonly [field: string]: unknown } = {},
) {
  const _meta = {
    [META.protocolVersion]: MODERN,
    [META.clientInfo]: clientInfo,
    [META.clientCapabilities]: {},
  };
  const name: Headers = params.name === undefined ? {} : { 'mcp-name': params.name };
  const headers: Headers = { ...MCP_TYPES, 'mcp-protocol-version': MODERN, 'mcp-method': method, ...name };
  return { body: { ...rpc(method), params: { ...params, _meta } }, headers };
}
