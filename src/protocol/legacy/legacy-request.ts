// What an HTTP request of a legacy client has to carry: session and revision. Statuses and codes are those of the SDK's
// own servers, so that clients find what they were written for.
// Source: MCP 2025-11-25 basic/transports#session-management, #protocol-version-header.

import { RPC } from '../../domain/jsonrpc.ts';
import type { McpRequest } from '../endpoint-types.ts';
import { headerOf } from '../headers.ts';
import type { Backends, Session } from '../ports.ts';
import { refused } from '../rpc-failure.ts';
import { ACCEPTED_VERSIONS, isLegacyVersion, versionOf } from './legacy-versions.ts';

const SESSION_ID = 'mcp-session-id';
const PROTOCOL_VERSION = 'mcp-protocol-version';

/**
 * The session that a request names. One that is unknown, over, or somebody else's is the same to its caller: 404, after
 * which clients initialize again.
 */
export function sessionOf(request: McpRequest, backends: Backends): Session {
  const id = headerOf(request.headers, SESSION_ID);
  if (id === undefined || id === '') throw refused(400, 'Bad Request: Mcp-Session-Id header is required');
  const session = backends.session(id, request.principal);
  if (session === undefined || session.ownerId !== request.principal.id) {
    throw refused(404, 'Session not found', RPC.sessionNotFound);
  }
  checkVersion(request);
  return session;
}

/**
 * The revision that a request of a session is in: its header says so, as with the SDK's servers; without one it is that
 * of the session.
 */
export function revisionOf(request: McpRequest, session: Session): string {
  return headerOf(request.headers, PROTOCOL_VERSION) ?? versionOf(session);
}

/** True when the request names a session that is there and its caller's. */
export function hasSession(request: McpRequest, backends: Backends): boolean {
  const id = headerOf(request.headers, SESSION_ID);
  return id !== undefined && backends.session(id, request.principal)?.ownerId === request.principal.id;
}

/** Inside a session the header may be missing: the handshake said it. */
function checkVersion(request: McpRequest): void {
  const version = headerOf(request.headers, PROTOCOL_VERSION);
  if (version === undefined || isLegacyVersion(version)) return;
  throw refused(
    400,
    `Bad Request: Unsupported protocol version (supported versions: ${ACCEPTED_VERSIONS.join(', ')})`,
  );
}
