// How long an answer waits for a client that asked for it and does not take it.

import type { ServerResponse } from 'node:http';
import { HTTP_LIMITS } from './limits.ts';

/**
 * To be called when an answer was ended: if some of it waits in memory, the connection is cut once the client has taken
 * nothing for so long, by default `unreadAnswerMs`. Without it whoever asks for large answers and reads none holds them
 * for ever.
 */
export function limitPatience(response: ServerResponse, unreadMs: number = HTTP_LIMITS.unreadAnswerMs): void {
  if (response.writableLength > 0) response.setTimeout(unreadMs, () => response.destroy());
}

/**
 * The same for an answer that goes on, to be called when it begins: quiet times do not count, only those in which
 * something waits and nothing of it is taken.
 */
export function limitReader(response: ServerResponse, unreadMs: number = HTTP_LIMITS.unreadAnswerMs): void {
  response.setTimeout(unreadMs, () => {
    if (response.writableLength > 0) response.destroy();
  });
}
