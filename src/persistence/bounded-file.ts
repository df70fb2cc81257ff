// Reads a file that a user names: it may be a pipe or a device, which has no size and may have no end.

import { createReadStream } from 'node:fs';

/** All bytes; undefined when there are more than `mostBytes`. Rejects with an error of the system. */
export async function bytesWithin(path: string, mostBytes: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of createReadStream(path)) {
    bytes += chunk.length;
    if (bytes > mostBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
