// What was read from a connection that is closed, or about to be.

import type { Socket } from 'node:net';

/**
 * Makes no more requests of what was read from a connection that is closed: 64 KiB are 1,400 short ones, which Node keeps
 * until it has read from a thousand other connections. To its parser the rest is another protocol. Source: ADR 398.
 */
export function ignoreRest(socket: Socket & { readonly parser?: { onIncoming: () => number } | null }): void {
  if (socket.parser) socket.parser.onIncoming = () => UPGRADED; // Node sets it again for the next connection
}

/** What Node's parser of HTTP understands as the change to another protocol. */
const UPGRADED = 2;
