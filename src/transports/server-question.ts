// What becomes of a request that a backend of the legacy era makes of its client: the transport answers it, or the
// client that the conversation is for is asked. How messages travel is the transports' matter.

import { type ClientProfile, type ClientReply, mayBeAsked } from '../domain/client.ts';
import { RPC } from '../domain/jsonrpc.ts';

/** The capability that lets a server ask; other methods are left to clients that may be asked anything. */
const CAPABILITIES: Readonly<Record<string, string>> = {
  'sampling/createMessage': 'sampling',
  'elicitation/create': 'elicitation',
  'roots/list': 'roots',
};

/**
 * What to answer, or that the client is to be asked. `ping` asks whether the peer is alive, and that is the gateway; what
 * the client did not declare is refused, everything when the conversation is for none.
 * Source: MCP 2025-11-25 basic/lifecycle#operation: only capabilities that were negotiated.
 */
export function outcomeOf(method: string, profile: ClientProfile | undefined): ClientReply | 'ask' {
  if (method === 'ping') return { result: {} };
  if (profile === undefined) return REFUSED;
  const capability = CAPABILITIES[method];
  const isDeclared =
    capability === undefined ? mayBeAsked(profile) : profile.capabilities[capability] !== undefined;
  return isDeclared ? 'ask' : REFUSED;
}

/** Said to a server that asks for what nobody offers. */
export const REFUSED: ClientReply = { error: { code: RPC.methodNotFound, message: 'Method not found' } };
