// How long an answer waits for a client that asked for it and does not take it.

import type { ServerResponse } from 'node:http';
import { HTTP_LIMITS } from './limits.ts';

/**
 * To be called when an answer was ended: if some of it waits in memory, the connection is cut once the client has taken
 * nothing for `unreadAnswerMs`. Without it whoever asks for large answers and reads none holds them for ever.
 */
export function limitPatience(response: ServerResponse): void {
  if (response.writableLength === 0) return;
  response.setTimeout(HTTP_LIMITS.unreadAnswerMs, () => response.destroy());
}
