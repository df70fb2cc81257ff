// The headers in which a modern client repeats what its request says, so that intermediaries need not read the body:
// MCP-Protocol-Version, Mcp-Method, Mcp-Name. Who reads both must refuse what differs. Headers for the arguments of a
// tool are param-headers.ts. Source: MCP 2026-07-28 basic/transports/streamable-http#request-metadata.

import { decodeHeader } from '../domain/header-text.ts';
import type { JsonFields } from '../domain/json.ts';
import { RPC } from '../domain/jsonrpc.ts';
import { METHODS } from '../domain/mcp.ts';
import { type Headers, headerOf } from './headers.ts';
import { RpcFailure } from './rpc-failure.ts';

/** The request as far as it is mirrored. */
export interface Mirrored {
  readonly method: string;
  readonly params: JsonFields;
  /** What `_meta` says. */
  readonly protocolVersion: string;
}

/** Throws RpcFailure, 400 with -32020, when a header of a request is missing or says something else than the body. */
export function checkMirroredHeaders(headers: Headers, request: Mirrored): void {
  const { method, params } = request;
  if (headers['mcp-protocol-version'] === undefined)
    throw headerMismatch('MCP-Protocol-Version', 'is missing');
  if (headers['mcp-method'] === undefined) throw headerMismatch('Mcp-Method', 'is missing');
  checkSentHeaders(headers, request);
  const field = METHODS[method]?.nameField;
  if (field !== undefined) checkNameHeader(headers, params[field]);
}

/** The same for revision and method, which nobody may send wrongly, but a notification need not send at all. */
export function checkSentHeaders(headers: Headers, said: Pick<Mirrored, 'method' | 'protocolVersion'>): void {
  const version = headerOf(headers, 'mcp-protocol-version');
  if (version !== undefined && version !== said.protocolVersion) {
    throw headerMismatch('MCP-Protocol-Version', 'names another revision than the body');
  }
  const method = headerOf(headers, 'mcp-method');
  if (method !== undefined && method !== said.method) {
    throw headerMismatch('Mcp-Method', 'names another method than the body');
  }
}

/** The refusal of a header. `what` is a clause. */
export function headerMismatch(header: string, what: string): RpcFailure {
  const message = `Bad Request: the request headers and body disagree: ${header} ${what}`;
  return new RpcFailure(400, { code: RPC.headerMismatch, message, data: { header } });
}

function checkNameHeader(headers: Headers, named: unknown): void {
  const header = headerOf(headers, 'mcp-name');
  if (header === undefined) {
    // A body that names nothing is the backend's to refuse.
    if (typeof named === 'string') throw headerMismatch('Mcp-Name', 'is missing');
    return;
  }
  const decoded = decodeHeader(header);
  if (decoded === undefined) throw headerMismatch('Mcp-Name', 'is not canonical Base64 of UTF-8');
  if (decoded !== named) throw headerMismatch('Mcp-Name', 'names something else than the body');
}
