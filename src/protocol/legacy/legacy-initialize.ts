// The handshake of legacy clients: what `initialize` has to say, and what is answered.
// Source: MCP 2025-11-25 basic/lifecycle#initialization.

import type { ClientProfile } from '../../domain/client.ts';
import { fieldValue, isJsonObject, type JsonFields, type JsonObject, JsonText } from '../../domain/json.ts';
import { type JsonRpcId, RPC } from '../../domain/jsonrpc.ts';
import { isProfileTooLarge, MOST_PROFILE_UNITS } from '../client-bounds.ts';
import type { McpReply } from '../endpoint-types.ts';
import { resultMessage } from '../envelope.ts';
import { serverInfoIn } from '../modern/modern-discover.ts';
import type { Backends, McpSession, Owner } from '../ports.ts';
import { type RpcFailure, refused } from '../rpc-failure.ts';
import { versionOf, versionToOpen } from './legacy-request.ts';

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
    throw badParams(`capabilities and clientInfo must not exceed ${MOST_PROFILE_UNITS} characters`);
  }
  return { protocolVersion: versionToOpen(protocolVersion), capabilities, clientInfo };
}

/**
 * The result of `initialize`: the handshake result of the backend, in the revision of the session. A legacy one keeps its unknown
 * fields; of a modern one only the fields of the handshake remain.
 */
export function initializeResult(session: McpSession): JsonObject {
  const { peer } = session;
  const protocolVersion = versionOf(session);
  if (peer.era === 'legacy') return { ...peer.greeting, protocolVersion };
  const { capabilities, instructions } = peer.greeting;
  return {
    protocolVersion,
    capabilities: isJsonObject(capabilities) ? capabilities : { tools: {} },
    serverInfo: serverInfoIn(peer.greeting) ?? { name: peer.serverName, version: peer.serverVersion },
    ...(typeof instructions === 'string' ? { instructions } : {}),
  };
}

function badParams(why: string): RpcFailure {
  return refused(400, `Invalid params: ${why}`, RPC.invalidParams);
}

// Opens a session and answers `initialize`. A session whose id does not reach its client is closed.

/** The request for a session, and its client. */
export interface SessionRequest {
  readonly id: JsonRpcId;
  readonly owner: Owner;
  readonly profile: ClientProfile;
}

/** Opens and answers. Rejects before anything was answered; then, and when the client has left, nothing is left open. */
export async function openSession(
  opener: SessionRequest,
  reply: McpReply,
  backends: Backends,
): Promise<void> {
  const leaving = new AbortController();
  reply.onGone(() => leaving.abort());
  const session = await backends.openSession(opener.owner, opener.profile, leaving.signal);
  try {
    const body = resultMessage(opener.id, JsonText.ofValue(initializeResult(session)));
    reply.opens(session.id);
    if (session.instanceId !== undefined) reply.from(session.instanceId);
    if (leaving.signal.aborted) await session.close();
    else reply.event(body, ['Mcp-Session-Id', session.id]);
  } catch (thrown) {
    await session.close(); // the handshake result of its backend cannot be serialized
    throw thrown;
  }
}
