// Recognises a peer that sends back what it is sent, such as `cat` behind a pipe: everything it says looks like JSON-RPC,
// and it would even repeat our refusals as if they were its answers.

import type { BackendMessage } from '../domain/jsonrpc.ts';

/** Why an exchange with such a peer ends, as a clause. */
export const ECHOES = 'it returns what it is sent';

/**
 * True when a request of the backend is our own that came back: the same id and the same method. Nothing but `ping` is
 * asked in both directions, so only there the two may be alike by chance. Source: MCP basic/index#requests.
 */
export function isEcho(
  { id, method }: Extract<BackendMessage, { kind: 'request' }>,
  sent: { readonly id: number; readonly method: string },
): boolean {
  return id === sent.id && method === sent.method && method !== 'ping';
}
