// Throws away the rest of a body that was refused, so that the answer arrives and the connection can go on.
// Closing at once would reset the connection, and many clients would see that instead of the 413.

import type { Readable } from 'node:stream';
import { HTTP_LIMITS } from '../limits.ts';

/** Reads to the end without keeping anything; a body that goes on and on ends the connection instead. */
export function drain(request: Readable, mostBytes: number = HTTP_LIMITS.drainedBytes): void {
  if (request.readableEnded || request.destroyed) return;
  let left = mostBytes;
  request.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) request.destroy();
  });
  // A client that breaks off while we throw its bytes away has done us a favour.
  request.on('error', () => request.destroy());
  request.resume();
}
