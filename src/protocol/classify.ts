// Decides for each POST by itself which protocol era it is of. The body decides; the header is only looked at where the
// body says nothing. What each era makes of the message is not known here.
// Sources: MCP 2026-07-28 basic/versioning#compatibility-matrix; `classifyInboundRequest` of the SDK.

import { isJsonObject } from '../domain/json.ts';
import { META, MODERN_VERSIONS } from '../domain/mcp.ts';
import { type ClientNotification, type ClientRequest, readClientMessage } from './client-message.ts';
import { headerMismatch, headerOf, type RequestHeaders } from './headers.ts';
import { invalidRequest } from './rpc-failure.ts';

/** The era, with the message of a modern one; what a legacy one says is looked at by its own endpoint. */
export type Classified =
  | { readonly era: 'legacy' }
  | { readonly era: 'modern'; readonly message: ClientRequest | ClientNotification };

/**
 * Sorts the JSON of one POST. Throws RpcFailure, 400: -32600 for what the modern era has no place for (arrays, answers,
 * what is no message), -32020 for a handshake of the legacy era under a header of the modern one.
 */
export function classify(parsed: unknown, headers: RequestHeaders): Classified {
  const isNamedModern = namesModern(headers);
  if (Array.isArray(parsed)) {
    if (!isNamedModern && !parsed.some(hasClaim)) return LEGACY;
    throw invalidRequest('batches are not part of this protocol revision');
  }
  if (isHandshake(parsed)) {
    if (!isNamedModern) return LEGACY;
    throw headerMismatch('MCP-Protocol-Version', 'names a revision without `initialize`');
  }
  if (!isNamedModern && !hasClaim(parsed)) return LEGACY;
  const message = readClientMessage(parsed);
  if (message.kind === 'answer') throw invalidRequest('answers are not part of this protocol revision');
  return { era: 'modern', message };
}

/** True when the header names a revision of the modern era, known here or not. Revisions are dates. */
export function namesModern(headers: RequestHeaders): boolean {
  const version = headerOf(headers, 'mcp-protocol-version');
  return version !== undefined && isModernVersion(version);
}

const LEGACY: Classified = { era: 'legacy' };

function isModernVersion(version: string): boolean {
  return DATE.test(version) && version >= MODERN_VERSIONS[0];
}

const DATE = /^\d{4}-\d{2}-\d{2}$/;

/** True when `_meta` names a revision, whichever: nobody does that in the legacy era. */
function hasClaim(message: unknown): boolean {
  return claimOf(message) !== undefined;
}

function claimOf(message: unknown): unknown {
  const params = isJsonObject(message) ? message.params : undefined;
  const meta = isJsonObject(params) ? params._meta : undefined;
  return isJsonObject(meta) ? meta[META.protocolVersion] : undefined;
}

/** `initialize` is of the legacy era, unless it claims the modern one, which has no such method. */
function isHandshake(message: unknown): boolean {
  if (!isJsonObject(message) || message.method !== 'initialize') return false;
  const claim = claimOf(message);
  return typeof claim !== 'string' || !isModernVersion(claim);
}
