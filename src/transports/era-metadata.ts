// The additions of an era to a request, for any transport: metadata in the message, and HTTP headers.

import type { ExchangeRequest } from '../domain/calls/exchange.ts';
import { isFields, type JsonFields } from '../domain/json/json.ts';
import type { Handshake } from '../domain/mcp/mcp.ts';
import { META, METHODS } from '../domain/mcp/mcp.ts';
import { encodeHeader } from '../domain/text.ts';

/** The name and version that backends see: those of the gateway, or of a client. */
export interface ClientInfo {
  readonly name: string;
  readonly version: string;
}

/** The era and the revision that were agreed on with a backend. `protocolVersion` is empty before the handshake. */
export type Spoken = Pick<Handshake, 'era' | 'protocolVersion'>;

/**
 * Adds the metadata of an era to a request. Modern: `_meta` names the revision, the client and its capabilities; client and
 * capabilities that the caller gave are kept, because the backend may only ask for what that client supports. Legacy: the fields
 * of its trace, if any. Bare: nothing. Source: MCP 2026-07-28 basic/index#meta.
 */
export function withEraMetadata(
  request: ExchangeRequest,
  handshake: Spoken,
  client: ClientInfo,
): ExchangeRequest {
  const { trace, params } = request;
  trace?.speaks(handshake.protocolVersion);
  if (handshake.era === 'bare' || (handshake.era === 'legacy' && trace === undefined)) return request;
  const own = isFields(params?._meta) ? params._meta : {};
  // Legacy servers ignore the fields of a trace. Source: SEP-414; ADR 76.
  if (handshake.era === 'legacy')
    return { ...request, params: { ...params, _meta: { ...own, ...trace?.fields } } };
  if (trace === undefined && isComplete(own, handshake)) return request; // that of a modern client, nearly always
  const meta = {
    [META.clientCapabilities]: {},
    [META.clientInfo]: { name: client.name, version: client.version },
    ...own,
    [META.protocolVersion]: handshake.protocolVersion,
    ...trace?.fields,
  };
  return { ...request, params: { ...params, _meta: meta } };
}

function isComplete(meta: JsonFields, { protocolVersion }: Spoken): boolean {
  return (
    meta[META.protocolVersion] === protocolVersion &&
    meta[META.clientCapabilities] !== undefined &&
    meta[META.clientInfo] !== undefined
  );
}

/**
 * The headers of one HTTP request. Modern: revision, method, the name or URI for methods that have one, and
 * the caller's `mcp-param-*` headers, but no others of the caller. Legacy: the negotiated revision, none before the
 * handshake. Bare: none. Sources: MCP 2026-07-28 basic/transports/streamable-http#request-metadata; 2025-11-25
 * #protocol-version-header.
 */
export function eraHeaders(request: ExchangeRequest, handshake: Spoken): Record<string, string> {
  if (handshake.era === 'bare' || handshake.protocolVersion === '') return {};
  if (handshake.era === 'legacy') return { 'mcp-protocol-version': handshake.protocolVersion };
  const { method } = request;
  const traits = METHODS[method];
  const headers: Record<string, string> = {
    'mcp-protocol-version': handshake.protocolVersion,
    'mcp-method': traits === undefined ? encodeHeader(method) : method,
  };
  const field = traits?.nameField;
  const name = field === undefined ? undefined : request.params?.[field];
  if (typeof name === 'string') headers['mcp-name'] = encodeHeader(name);
  for (const [given, value] of Object.entries(request.headers ?? {})) {
    if (MIRRORED.test(given)) headers[given] = value;
  }
  return headers;
}

/** The headers that mirror arguments of a tool. Source: MCP 2026-07-28, custom headers from tool parameters. */
const MIRRORED = /^mcp-param-/i;
