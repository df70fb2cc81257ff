// Reads what little has to be known of JSON that is forwarded as bytes, without parsing it.

import { closingQuote, skipSpace } from '../domain/json-scanner.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;

/**
 * Where the value of a key begins that the object itself has, not something inside of it; -1 when it has none. The
 * bytes must be valid JSON and the key plain ASCII. An object that does not hold the key's text at all, which is the
 * usual case, costs one search by the machine; one that holds it near its end, as many servers write, a few bytes more.
 */
export function topValue(object: Buffer, key: string): number {
  const quoted = `"${key}"`;
  const first = object.indexOf(quoted);
  if (first === -1) return -1;
  const last = object.lastIndexOf(quoted);
  const after = last + quoted.length;
  if (object.length - after < first) {
    const value = valueBehind(object, last, after);
    // Behind a key on top, one bracket more is closed than opened.
    if (value !== -1 && openedIn(object, value) === -1) return value;
  }
  return findOnTop(object, quoted);
}

/** In JSON a quote that follows a backslash is inside a string, and only a key is followed by a colon. */
function valueBehind(object: Buffer, at: number, after: number): number {
  if (object[at - 1] === BACKSLASH) return -1;
  const next = skipSpace(object, after);
  return object[next] === COLON ? skipSpace(object, next + 1) : -1;
}

/** Reads from the head, in one pass. */
function findOnTop(object: Buffer, quoted: string): number {
  let open = 0;
  for (let at = 0; at < object.length; at += 1) {
    const byte = object[at];
    if (byte === QUOTE) {
      const end = closingQuote(object, at);
      const isMeant = open === 1 && end - at === quoted.length - 1;
      const value = isMeant ? valueBehind(object, at, end + 1) : -1;
      if (value !== -1 && object.toString('latin1', at, end + 1) === quoted) return value;
      at = end;
    } else if (byte === 0x7b || byte === 0x5b) open += 1;
    else if (byte === 0x7d || byte === 0x5d) open -= 1;
  }
  return -1;
}

/** Brackets opened less brackets closed, from a place outside of strings to the end. */
function openedIn(bytes: Buffer, from: number): number {
  let open = 0;
  for (let at = from; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) at = closingQuote(bytes, at);
    else if (byte === 0x7b || byte === 0x5b) open += 1;
    else if (byte === 0x7d || byte === 0x5d) open -= 1;
  }
  return open;
}
