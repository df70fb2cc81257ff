// Reads standard input: one line of it, for `--password -`, or all of it. It waits for as long as whoever is piped in takes: that may be
// a password manager with a question of its own. Ctrl-C ends it.

import type { Readable } from 'node:stream';

/** Bytes after which a line is given up. */
const LONGEST_LINE = 64 * 1024;
/** Bytes after which the whole input is given up. */
const LONGEST_INPUT = 64 * 1024 * 1024;

/**
 * The text up to the first line end (LF or CRLF) or the end of the input. Undefined when it is longer than 64 KiB or no
 * UTF-8. Rejects with the error of the input.
 */
export async function readFirstLine(input: Readable): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of input) {
    const part = Buffer.from(chunk);
    chunks.push(part);
    bytes += part.length;
    if (part.includes('\n')) break;
    if (bytes > LONGEST_LINE) return undefined;
  }
  // What is not UTF-8 is no password that could be typed elsewhere.
  return decoded(chunks)?.split(/\r?\n/, 1)[0];
}

/** The whole input. Undefined when it is longer than 64 MiB or no UTF-8. Rejects with the error of the input. */
export async function readWhole(input: Readable): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of input) {
    const part = Buffer.from(chunk);
    chunks.push(part);
    bytes += part.length;
    if (bytes > LONGEST_INPUT) return undefined;
  }
  return decoded(chunks);
}

function decoded(chunks: readonly Buffer[]): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks));
  } catch {
    return undefined;
  }
}
