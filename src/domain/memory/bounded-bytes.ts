// Reads what may have no end: a pipe, a device, the answer of a program.

/** No bytes, such as the body of a request that has none. */
export const NO_BYTES = Buffer.alloc(0);

/** All bytes of the pieces; undefined when there are more than `mostBytes`: then no further piece is read. Throws as they do. */
export async function bytesWithin(
  pieces: AsyncIterable<Uint8Array>,
  mostBytes: number,
): Promise<Buffer | undefined> {
  const read: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of pieces) {
    bytes += piece.length;
    if (bytes > mostBytes) return undefined;
    read.push(piece);
  }
  return Buffer.concat(read);
}
