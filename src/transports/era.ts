// What a protocol era wants of each request: `_meta` inside the message, headers beside it on HTTP.
// Which era a backend speaks is found out in handshake.ts; ids and progress tokens belong to the transports.

import type { ExchangeRequest } from '../domain/exchange.ts';
import { isJsonObject } from '../domain/json.ts';
import { META, METHODS, type Peer } from '../domain/mcp.ts';
import { encodeHeader } from '../domain/text.ts';

/** Name and version the gateway tells backends. */
export interface ClientInfo {
  readonly name: string;
  readonly version: string;
}

type Spoken = Pick<Peer, 'era' | 'protocolVersion'>;

/**
 * Adds what the era wants inside the message. Modern: `_meta` names the revision, the client and its capabilities;
 * capabilities and client that the caller named himself stand, because a modern backend may only ask for what the
 * end of the chain can do. Legacy and bare: the request as it is. Source: MCP 2026-07-28 basic/index#meta.
 */
export function withEraMetadata(request: ExchangeRequest, peer: Spoken, client: ClientInfo): ExchangeRequest {
  if (peer.era !== 'modern') return request;
  const own = request.params?._meta;
  const meta = {
    [META.clientCapabilities]: {},
    [META.clientInfo]: { name: client.name, version: client.version },
    ...(isJsonObject(own) ? own : {}),
    [META.protocolVersion]: peer.protocolVersion,
  };
  const params = { ...request.params, _meta: meta };
  return { ...request, params };
}

/**
 * Headers of one HTTP request. Modern: revision, method and, where the method has one, the name or uri it is about;
 * besides them the `mcp-param-*` of the caller, and no other header of the caller.
 * Legacy: the negotiated revision, none before the handshake. Bare: none.
 * Sources: MCP 2026-07-28 basic/transports/streamable-http#request-metadata; 2025-11-25 #protocol-version-header.
 */
export function eraHeaders(request: ExchangeRequest, peer: Spoken): Record<string, string> {
  if (peer.era === 'bare' || peer.protocolVersion === '') return {};
  if (peer.era === 'legacy') return { 'mcp-protocol-version': peer.protocolVersion };
  const headers: Record<string, string> = {
    'mcp-protocol-version': peer.protocolVersion,
    'mcp-method': request.method,
  };
  const field = METHODS[request.method]?.nameField;
  const name = field === undefined ? undefined : request.params?.[field];
  if (typeof name === 'string') headers['mcp-name'] = encodeHeader(name);
  if (request.headers !== undefined) addMirrored(headers, request.headers);
  return headers;
}

/** Parameters of a tool that are mirrored in headers. Source: MCP 2026-07-28, custom headers from tool parameters. */
const MIRRORED = /^mcp-param-/i;

function addMirrored(headers: Record<string, string>, given: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(given)) {
    if (MIRRORED.test(name)) headers[name] = value;
  }
}
