// What a client says without wanting an answer: which of it is passed on to its backend.

import type { JsonObject } from '../../domain/json.ts';
import { isCustomNotice } from '../../domain/notices.ts';
import type { Upstream } from '../../transports/transport.ts';
import type { Binding } from './client-session-types.ts';

/** What a backend of the modern era needs no word of. */
const OWN_NOTIFICATIONS: ReadonlySet<string> = new Set([
  'notifications/roots/list_changed',
  'notifications/progress',
]);
/** The handshake is the transport's, and a call is cancelled by whoever subscribed to it. */
const NEVER_PASSED_ON: ReadonlySet<string> = new Set([
  'notifications/initialized',
  'notifications/cancelled',
]);

/** Tells it in the conversation of that client. */
export function passOn(upstream: Upstream, method: string, params: JsonObject): void {
  if (NEVER_PASSED_ON.has(method)) return;
  if (upstream.peer.era !== 'modern' || !OWN_NOTIFICATIONS.has(method)) upstream.notify(method, params);
}

/**
 * Tells a program that its clients share: what the protocol does not know, while the one call of that client is the only one
 * there, so that it cannot be taken for another client's. The same holds of what the program says (correlator.ts).
 */
export function passOnShared({ ref }: Binding, method: string, params: JsonObject): void {
  if (isCustomNotice(method) && ref.definition.transport === 'stdio' && ref.inFlight === 1)
    ref.notify(method, params);
}
