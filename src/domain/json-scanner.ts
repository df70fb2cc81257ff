// Proves that bytes are JSON, and finds where values end, without building them. What is accepted is what JSON.parse would
// accept, in one pass: strings four bytes at a time, which is the larger part of most answers.
// The functions take the index where something begins and return the index behind it, or NONE. Source: RFC 8259; ADR 44.

/** There is no such thing at that place. */
export const NONE = -1;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** Deepest nesting of what is accepted: values are read by recursion. */
const DEEPEST = 500;

/** Bytes, and the same memory as whole words. */
export interface Scanned {
  readonly bytes: Buffer;
  readonly words: Int32Array;
  /** Where the bytes begin in the memory of the words. */
  readonly offset: number;
}

export function scanned(bytes: Buffer): Scanned {
  const offset = bytes.byteOffset;
  return { bytes, words: new Int32Array(bytes.buffer, 0, (offset + bytes.length) >> 2), offset };
}

/** White space, if there is any. */
export function skipSpace(bytes: Buffer, start: number): number {
  let at = start;
  while (isSpace(bytes[at])) at += 1;
  return at;
}

/** A string. */
export function skipString({ bytes, words, offset }: Scanned, start: number): number {
  if (bytes[start] !== QUOTE) return NONE;
  const { length } = words;
  let at = start + 1;
  for (;;) {
    if (((offset + at) & 3) === 0) {
      let word = (offset + at) >> 2;
      while (word < length && isPlain(words[word] ?? 0)) word += 1;
      at = (word << 2) - offset;
    }
    const byte = bytes[at];
    if (byte === undefined || byte < 0x20) return NONE;
    if (byte === QUOTE) return at + 1;
    if (byte !== BACKSLASH) {
      at += 1;
      continue;
    }
    at = skipEscape(bytes, at);
    if (at === NONE) return NONE;
  }
}

/** A value of any kind, `depth` levels inside others. */
export function skipValue(source: Scanned, start: number, depth = 0): number {
  const { bytes } = source;
  switch (bytes[start]) {
    case QUOTE:
      return skipString(source, start);
    case OPEN_BRACE:
      return depth === DEEPEST ? NONE : skipObject(source, start, depth + 1);
    case OPEN_BRACKET:
      return depth === DEEPEST ? NONE : skipArray(source, start, depth + 1);
    case TRUE[0]:
      return skipWord(bytes, start, TRUE);
    case FALSE[0]:
      return skipWord(bytes, start, FALSE);
    case NULL[0]:
      return skipWord(bytes, start, NULL);
    default:
      return skipNumber(bytes, start);
  }
}

/** The colon behind a key, to where its value begins. */
export function skipColon(bytes: Buffer, keyEnd: number): number {
  const colon = skipSpace(bytes, keyEnd);
  return bytes[colon] === COLON ? skipSpace(bytes, colon + 1) : NONE;
}

function skipObject(source: Scanned, start: number, depth: number): number {
  const { bytes } = source;
  let at = skipSpace(bytes, start + 1);
  if (bytes[at] === CLOSE_BRACE) return at + 1;
  for (;;) {
    at = skipString(source, at);
    if (at === NONE) return NONE;
    at = skipColon(bytes, at);
    if (at === NONE) return NONE;
    at = skipValue(source, at, depth);
    if (at === NONE) return NONE;
    at = skipSpace(bytes, at);
    if (bytes[at] !== COMMA) return bytes[at] === CLOSE_BRACE ? at + 1 : NONE;
    at = skipSpace(bytes, at + 1);
  }
}

function skipArray(source: Scanned, start: number, depth: number): number {
  const { bytes } = source;
  let at = skipSpace(bytes, start + 1);
  if (bytes[at] === CLOSE_BRACKET) return at + 1;
  for (;;) {
    at = skipValue(source, at, depth);
    if (at === NONE) return NONE;
    at = skipSpace(bytes, at);
    if (bytes[at] !== COMMA) return bytes[at] === CLOSE_BRACKET ? at + 1 : NONE;
    at = skipSpace(bytes, at + 1);
  }
}

/** A backslash in a string, and what follows it. */
function skipEscape(bytes: Buffer, start: number): number {
  switch (bytes[start + 1]) {
    case QUOTE:
    case BACKSLASH:
    case 0x2f: // /
    case 0x62: // b
    case 0x66: // f
    case 0x6e: // n
    case 0x72: // r
    case 0x74: // t
      return start + 2;
    case 0x75: // u
      for (let at = start + 2; at < start + 6; at += 1) if (!isHex(bytes[at])) return NONE;
      return start + 6;
    default:
      return NONE;
  }
}

function skipNumber(bytes: Buffer, start: number): number {
  const first = bytes[start] === MINUS ? start + 1 : start;
  let at = skipDigits(bytes, first);
  if (at === NONE || (bytes[first] === ZERO && at > first + 1)) return NONE;
  if (bytes[at] === POINT) {
    at = skipDigits(bytes, at + 1);
    if (at === NONE) return NONE;
  }
  if (bytes[at] !== EXPONENT && bytes[at] !== CAPITAL_EXPONENT) return at;
  const sign = bytes[at + 1];
  return skipDigits(bytes, sign === PLUS || sign === MINUS ? at + 2 : at + 1);
}

/** At least one. */
function skipDigits(bytes: Buffer, start: number): number {
  let at = start;
  while (isDigit(bytes[at])) at += 1;
  return at > start ? at : NONE;
}

function skipWord(bytes: Buffer, start: number, word: readonly number[]): number {
  for (let index = 1; index < word.length; index += 1) {
    if (bytes[start + index] !== word[index]) return NONE;
  }
  return start + word.length;
}

const TRUE = [...Buffer.from('true')];
const FALSE = [...Buffer.from('false')];
const NULL = [...Buffer.from('null')];
const MINUS = 0x2d;
const PLUS = 0x2b;
const POINT = 0x2e;
const ZERO = 0x30;
const EXPONENT = 0x65;
const CAPITAL_EXPONENT = 0x45;

/**
 * True when none of four bytes ends a string, begins an escape or is a control character. A subtraction sets the highest
 * bit of a byte that is less than what is taken from it, and of one that was 0x80 or more already, which does not count.
 */
function isPlain(four: number): boolean {
  const quotes = four ^ 0x22222222;
  const backslashes = four ^ 0x5c5c5c5c;
  const found =
    ((four - 0x20202020) & ~four) |
    ((quotes - 0x01010101) & ~quotes) |
    ((backslashes - 0x01010101) & ~backslashes);
  return (found & 0x80808080) === 0;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= 0x39;
}

function isHex(byte: number | undefined): boolean {
  if (byte === undefined) return false;
  const letter = byte | 0x20;
  return isDigit(byte) || (letter >= 0x61 && letter <= 0x66);
}

function isSpace(byte: number | undefined): boolean {
  return (
    byte !== undefined && byte <= 0x20 && (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09)
  );
}
