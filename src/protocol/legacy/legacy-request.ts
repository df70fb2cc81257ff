// The session, the revision and the client profile of HTTP requests of legacy clients. A client of HTTP+SSE names its
// session by its stream (`sseSessionId`), all others by headers, which are those of later revisions. Statuses and codes
// are those of the SDK's own servers, for which clients are written. Source: MCP 2025-11-25
// basic/transports#session-management, #protocol-version-header.

import { fieldValue, isJsonObject, type JsonFields } from '../../domain/json/json.ts';
import type { ClientProfile } from '../../domain/mcp/client.ts';
import { RPC } from '../../domain/mcp/jsonrpc.ts';
import { ACCEPTED_LEGACY_VERSIONS, LEGACY_VERSIONS } from '../../domain/mcp/mcp.ts';
import type { McpSession } from '../../domain/sessions/mcp-session.ts';
import {
  declaredFields,
  isProfileTooLarge,
  MAX_PROFILE_UNITS,
  MAX_PROFILE_VALUES,
} from '../client-bounds.ts';
import type { McpRequest, ServedRequest } from '../endpoint-types.ts';
import { headerOf } from '../headers.ts';
import { type RpcFailure, refused } from '../rpc.ts';

const SESSION_ID = 'mcp-session-id';
const PROTOCOL_VERSION = 'mcp-protocol-version';

/**
 * The session of a request. A session that is unknown, over, or of another owner is refused with 404, after
 * which clients initialize again. A promise only for a session that is not open here, but may be recovered.
 */
export function sessionOf({
  request,
  backends,
}: Omit<ServedRequest, 'reply'>): McpSession | Promise<McpSession> {
  const { headers, principal, sseSessionId } = request;
  const id = sseSessionId ?? headerOf(headers, SESSION_ID);
  if (id === undefined || id === '') throw refused(400, 'Bad Request: Mcp-Session-Id header is required');
  const session = backends.session(id, principal);
  const recovered = session === undefined ? backends.recoverSession(id, principal) : undefined;
  if (recovered === undefined) return checked(session, request);
  return recovered.then(() => checked(backends.session(id, principal), request));
}

function checked(session: McpSession | undefined, request: McpRequest): McpSession {
  if (session === undefined || session.value.ownerId !== request.principal.id) throw unknownSession();
  // The header may be missing: the handshake named the revision.
  const version = sentVersionOf(request);
  if (version === undefined || isLegacyVersion(version)) return session;
  const supported = ACCEPTED_LEGACY_VERSIONS.join(', ');
  throw refused(400, `Bad Request: Unsupported protocol version (supported versions: ${supported})`);
}

/** The refusal (404) of a session that is unknown, over, or of another owner. */
export function unknownSession(): RpcFailure {
  return refused(404, 'Session not found', RPC.sessionNotFound);
}

function sentVersionOf({ headers, sseSessionId }: McpRequest): string | undefined {
  return sseSessionId === undefined ? headerOf(headers, PROTOCOL_VERSION) : undefined;
}

/** The id of the last event of the stream that a GET resumes; undefined when it opens one. */
export function lastEventIdOf({ headers, sseSessionId }: McpRequest): string | undefined {
  return sseSessionId === undefined ? headerOf(headers, 'last-event-id') || undefined : undefined;
}

/**
 * True when the client of a request polls: by the revision in its header, as in the SDK's servers, otherwise by that of its
 * session. No client of HTTP+SSE does, whatever the revision of its session.
 */
export function mayPoll(request: McpRequest, session: McpSession): boolean {
  return request.sseSessionId === undefined && canPoll(sentVersionOf(request) ?? versionOf(session));
}

/** Reads the profile of a client. Throws RpcFailure (400, -32602). */
export function profileOf(params: JsonFields | undefined): ClientProfile {
  const { protocolVersion } = params ?? {};
  const capabilities = fieldValue(params?.capabilities);
  const clientInfo = fieldValue(params?.clientInfo);
  if (typeof protocolVersion !== 'string') throw badParams('protocolVersion must be a string');
  if (!isJsonObject(capabilities)) throw badParams('capabilities must be an object');
  if (
    !isJsonObject(clientInfo) ||
    typeof clientInfo.name !== 'string' ||
    typeof clientInfo.version !== 'string'
  ) {
    throw badParams('clientInfo must be an object with name and version');
  }
  if (isProfileTooLarge(capabilities, clientInfo)) {
    const most = `${MAX_PROFILE_VALUES} values and ${MAX_PROFILE_UNITS} characters`;
    throw badParams(`capabilities and clientInfo together have at most ${most}`);
  }
  return {
    protocolVersion: versionToOpen(protocolVersion),
    capabilities: declaredFields(capabilities),
    clientInfo: declaredFields(clientInfo),
  };
}

function badParams(why: string): RpcFailure {
  return refused(400, `Invalid params: ${why}`, RPC.invalidParams);
}

// Revisions of the legacy era towards clients: the revision of a session, and the features that it allows.

function isLegacyVersion(version: string): boolean {
  return ACCEPTED_LEGACY_VERSIONS.includes(version);
}

/** The revision of a new session: the requested one if it is supported, otherwise the newest. */
function versionToOpen(requested: string): string {
  return isLegacyVersion(requested) ? requested : LEGACY_VERSIONS[0];
}

/**
 * The revision of a session: the one that its client requested, or an older one that its dedicated
 * conversation has negotiated. Extensions of a newer backend do not break older clients, and the gateway writes every
 * form that a message has here. Source: MCP 2025-11-25 basic/lifecycle#version-negotiation.
 */
export function versionOf({
  value: { profile },
  handshake,
  isShared,
}: Pick<McpSession, 'value' | 'handshake' | 'isShared'>): string {
  const isNegotiated = !isShared && handshake.era === 'legacy' && isLegacyVersion(handshake.protocolVersion);
  return isNegotiated && handshake.protocolVersion < profile.protocolVersion
    ? handshake.protocolVersion
    : profile.protocolVersion;
}

/**
 * True for a revision with events without data, and with streams that end before the answer. Older clients
 * take the former for a broken message, and the latter for the end. Source: 2025-11-25
 * basic/transports#sending-messages-to-the-server.
 */
export function canPoll(version: string): boolean {
  return version >= '2025-11-25';
}
