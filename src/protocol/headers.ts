// Reads the headers of a request, checks its media types, and compares headers with the fields of a modern body that
// they repeat. modern/listed-headers.ts handles headers for arguments of tools.

import type { JsonFields } from '../domain/json/json.ts';
import { RPC } from '../domain/mcp/jsonrpc.ts';
import { METHODS } from '../domain/mcp/mcp.ts';
import { EVENT_STREAM_TYPE, JSON_TYPE, MCP_ACCEPT } from '../domain/mcp/media-types.ts';
import { decodeHeader, type HttpHeaders } from '../domain/text.ts';
import { RpcFailure, refused } from './rpc.ts';

/** The value of a header; the values of one that was sent several times are joined. `name`: in lower case. */
export function headerOf(headers: HttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : value?.join(', ');
}

// MCP-Protocol-Version, Mcp-Method and Mcp-Name repeat fields of a modern body, so that intermediaries need not read it. A
// server that reads both must refuse a difference. Source: MCP 2026-07-28 basic/transports/streamable-http#request-metadata.

/**
 * Makes the checks that checkSentHeaders, which must be called before, leaves out: throws RpcFailure (400, -32020) when a header
 * of a request is missing, or `Mcp-Name` differs from the body.
 */
export function checkMirroredHeaders(
  headers: HttpHeaders,
  { method, params }: { readonly method: string; readonly params: JsonFields },
): void {
  if (headers['mcp-protocol-version'] === undefined)
    throw headerMismatch('MCP-Protocol-Version', 'is missing');
  if (headers['mcp-method'] === undefined) throw headerMismatch('Mcp-Method', 'is missing');
  const field = METHODS[method]?.nameField;
  if (field === undefined) return;
  const name = params[field];
  const header = headerOf(headers, 'mcp-name');
  // The backend refuses a body without a name.
  if (header === undefined && typeof name !== 'string') return;
  if (header === undefined) throw headerMismatch('Mcp-Name', 'is missing');
  const decoded = decodeHeader(header);
  if (decoded === undefined) throw headerMismatch('Mcp-Name', 'is not canonical Base64 of UTF-8');
  if (decoded !== name) throw headerMismatch('Mcp-Name', 'differs from the name in the body');
}

/**
 * Throws RpcFailure (400, -32020) when the revision or the method in the headers differs from the body. A
 * notification needs neither header.
 */
export function checkSentHeaders(
  headers: HttpHeaders,
  body: { readonly method: string; readonly protocolVersion: string },
): void {
  const version = headerOf(headers, 'mcp-protocol-version');
  if (version !== undefined && version !== body.protocolVersion) {
    throw headerMismatch('MCP-Protocol-Version', 'names a different revision than the body');
  }
  const method = headerOf(headers, 'mcp-method');
  if (method !== undefined && method !== body.method) {
    throw headerMismatch('Mcp-Method', 'names a different method than the body');
  }
}

/** The error for a header that is missing or differs from the body. `problem` is a clause. */
export function headerMismatch(header: string, problem: string): RpcFailure {
  const message = `Bad Request: the request headers and body disagree: ${header} ${problem}`;
  return new RpcFailure(400, { code: RPC.headerMismatch, message, data: { header } });
}

/**
 * Throws RpcFailure for a POST whose client does not accept both kinds of answers (406), or whose body is not JSON
 * (415), as the SDK's servers do.
 */
export function checkPostTypes(headers: HttpHeaders): void {
  const accept = headerOf(headers, 'accept') ?? '';
  if (accept !== MCP_ACCEPT && !(accepts(accept, JSON_TYPE) && accepts(accept, EVENT_STREAM_TYPE))) {
    throw refused(406, `Not Acceptable: Client must accept both ${JSON_TYPE} and ${EVENT_STREAM_TYPE}`);
  }
  checkContentType(headers);
}

/** Throws RpcFailure (415) for a body that is not JSON. */
export function checkContentType(headers: HttpHeaders): void {
  const contentType = headerOf(headers, 'content-type') ?? '';
  if (contentType !== JSON_TYPE && contentType.split(';', 1)[0]?.trim().toLowerCase() !== JSON_TYPE) {
    throw refused(415, `Unsupported Media Type: Content-Type must be ${JSON_TYPE}`);
  }
}

/** Throws RpcFailure (406) for a GET that does not accept an event stream. */
export function checkGetTypes(headers: HttpHeaders): void {
  if (accepts(headerOf(headers, 'accept') ?? '', EVENT_STREAM_TYPE)) return;
  throw refused(406, `Not Acceptable: Client must accept ${EVENT_STREAM_TYPE}`);
}

/** True when the header names event streams, not only a wildcard. */
export function namesEventStream(headers: HttpHeaders): boolean {
  return rangesOf(headerOf(headers, 'accept') ?? '').includes(EVENT_STREAM_TYPE);
}

/**
 * True when the header accepts the type. Wildcards count (RFC 9110 section 12.5.1); weights are ignored, as
 * in the SDK's servers.
 */
function accepts(accept: string, type: string): boolean {
  const family = `${type.split('/', 1)[0]}/*`;
  const ranges = rangesOf(accept);
  return [type, family, '*/*'].some((wanted) => ranges.includes(wanted));
}

function rangesOf(accept: string): (string | undefined)[] {
  return accept
    .toLowerCase()
    .split(',')
    .map((range) => range.split(';', 1)[0]?.trim());
}
