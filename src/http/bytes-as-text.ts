// Bytes as a text that Node writes as those bytes again: it joins a text with the head of an answer into one write, and
// bytes not. 14.0 us per request instead of 15.7.

/** Up to this size the detour pays. */
export const SMALL_BYTES = 16 * 1024;

/** One character per byte, whatever the bytes mean; to be written with the encoding `latin1`. */
export function latin1Of(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}
