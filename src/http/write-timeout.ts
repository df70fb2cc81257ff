// How long an answer waits for a client that asked for it and does not take it.

import type { ServerResponse } from 'node:http';
import { HTTP_LIMITS } from './limits.ts';

/** So often it is looked whether something was taken; a client is cut that much too late at most. */
const LOOKS = 15;

/**
 * To be called when an answer was ended: if some of it waits in memory, the connection is cut once the client has taken
 * nothing for so long, by default `unreadAnswerMs`. Without it whoever asks for large answers and reads none holds them
 * for ever.
 */
export function limitWriteTime(
  response: ServerResponse,
  unreadMs: number = HTTP_LIMITS.unreadAnswerMs,
): void {
  if (response.writableLength > 0) limitReader(response, unreadMs);
}

/**
 * The same for an answer that goes on, to be called when it begins: quiet times do not count, only those in which
 * something waits and nothing of it is taken. Called again it does nothing.
 *
 * Node tells of a socket that made no progress since it looked the last time, and says nothing of one that did: a whole
 * look of `unreadMs` would see a client that stopped early in it only at the end of the next one.
 */
export function limitReader(response: ServerResponse, unreadMs: number = HTTP_LIMITS.unreadAnswerMs): void {
  const lookMs = Math.max(1, Math.ceil(unreadMs / LOOKS));
  if (response.listenerCount('timeout') > 0) return;
  let quietSinceMs = 0;
  let lookedAtMs = 0;
  response.on('timeout', () => {
    // Nothing waits, and the next write makes Node look again.
    if (response.writableLength === 0) return;
    const nowMs = performance.now();
    // A look that said nothing is one that saw progress.
    if (nowMs - lookedAtMs > lookMs * 1.5) quietSinceMs = nowMs - lookMs;
    lookedAtMs = nowMs;
    if (nowMs - quietSinceMs >= unreadMs) response.destroy();
    else response.setTimeout(lookMs);
  });
  response.setTimeout(lookMs);
}
