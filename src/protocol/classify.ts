// Decides the protocol era of each POST. The body decides; the header counts only where the body names no revision.
// Sources: MCP 2026-07-28 basic/versioning#compatibility-matrix; `classifyInboundRequest` of the SDK.

import { isJsonObject } from '../domain/json.ts';
import { META, MODERN_VERSIONS } from '../domain/mcp.ts';
import { type ClientNotification, type ClientRequest, readClientMessage } from './client-message.ts';
import { headerMismatch, headerOf, type RequestHeaders } from './headers.ts';
import { invalidRequest } from './rpc-failure.ts';

/** The era, with the message of a modern POST; the legacy endpoint reads its messages itself. */
export type Classified =
  | { readonly era: 'legacy' }
  | { readonly era: 'modern'; readonly message: ClientRequest | ClientNotification };

/**
 * Classifies the JSON of one POST. Throws RpcFailure, 400: -32600 for what the modern era does not allow (arrays, answers,
 * anything but a message), -32020 for a handshake of the legacy era with a header of the modern one.
 */
export function classifyRequest(parsed: unknown, headers: RequestHeaders): Classified {
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

/** True when `_meta` names any revision, which does not happen in the legacy era. */
function hasClaim(message: unknown): boolean {
  return claimOf(message) !== undefined;
}

function claimOf(message: unknown): unknown {
  const params = isJsonObject(message) ? message.params : undefined;
  const meta = isJsonObject(params) ? params._meta : undefined;
  return isJsonObject(meta) ? meta[META.protocolVersion] : undefined;
}

/** `initialize` belongs to the legacy era, unless its `_meta` names a modern revision, which has no such method. */
function isHandshake(message: unknown): boolean {
  if (!isJsonObject(message) || message.method !== 'initialize') return false;
  const claim = claimOf(message);
  return typeof claim !== 'string' || !isModernVersion(claim);
}
