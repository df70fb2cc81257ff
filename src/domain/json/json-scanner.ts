// Reads JSON in one pass over its bytes: validates it within bounds and finds where values end, without
// building them. It accepts what JSON.parse accepts; strings in long texts are read four bytes at a time.
// Most functions take the index at which an element begins and return the index after its end, or NO_INDEX.
// Source: RFC 8259; ADR 42, 43, 44.

import { type JsonFields, JsonText, parseExact } from './json.ts';

/** The index that means: not found. */
export const NO_INDEX = -1;

export const QUOTE = 0x22;
export const BACKSLASH = 0x5c;
export const COMMA = 0x2c;
const COLON = 0x3a;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;
export const OPEN_BRACKET = 0x5b;
export const CLOSE_BRACKET = 0x5d;

/** The exceeded bound. */
export type Excess = 'depth' | 'values';

interface Bounds {
  /** Levels of arrays and objects: they are read by recursion. */
  readonly levels: number;
  /** Values, where a key counts as one. */
  readonly values: number;
}

/** The bytes that are read, and the same memory as words of four bytes. */
export interface Scanned {
  readonly bytes: Buffer;
  readonly words: Int32Array;
  /** The place where the bytes begin in the memory of the words. */
  readonly offset: number;
  /** The JSON as text, if that is short and plain ASCII, so that indexes are equal; else empty. */
  readonly text: string;
  readonly levels: number;
  /** The number of further values that are accepted. */
  left: number;
  /** The exceeded bound, if that is why NO_INDEX was returned. */
  excess: Excess | undefined;
}

/** `text`: the same JSON as text, if available. */
export function scanned(bytes: Buffer, { levels, values }: Bounds, text = ''): Scanned {
  const offset = bytes.byteOffset;
  // Single bytes are faster when strings are short.
  const words =
    bytes.length < FEW_BYTES ? NO_WORDS : new Int32Array(bytes.buffer, 0, (offset + bytes.length) >> 2);
  const isPlainText = text.length === bytes.length;
  return { bytes, words, offset, text: isPlainText ? text : '', levels, left: values, excess: undefined };
}

/** Bodies up to this size are decoded once; their parts are slices of that string. */
export const SHORT_TEXT = 16_384;

const FEW_BYTES = 512;
const NO_WORDS = new Int32Array(0);

/**
 * Reads an object into `fields`. Arrays, objects and numbers that JavaScript would change are kept as text; the
 * object named `nested` is read into fields, too. The fields of a message, whose `params` are nested, are values
 * with exact numbers. The values in kept `arguments` are not counted, because nothing parses them.
 */
export function readFields(
  source: Scanned,
  start: number,
  fields: Record<string, JsonFields[string]>,
  nested: 'params' | '_meta' = '_meta',
  depth = 1,
): number {
  const { bytes } = source;
  if (depth > source.levels) return exceed(source, 'depth');
  source.left -= 1;
  if (source.left < 0) return exceed(source, 'values');
  let at = skipSpace(bytes, start + 1);
  if (bytes[at] === CLOSE_BRACE) return at + 1;
  for (;;) {
    const keyEnd = skipKey(source, at);
    const from = keyEnd === NO_INDEX ? NO_INDEX : skipColon(bytes, keyEnd);
    if (from === NO_INDEX) return NO_INDEX;
    const key = readString(source, at, keyEnd);
    if (key === nested && bytes[from] === OPEN_BRACE) {
      const inner = {};
      at = readFields(source, from, inner, '_meta', depth + 1);
      setField(fields, key, inner);
    } else {
      const isKept = nested === '_meta';
      at =
        isKept && key === 'arguments' ? skipUncounted(source, from, depth) : skipValue(source, from, depth);
      if (at !== NO_INDEX) setField(fields, key, readValue(source, from, at, isKept));
    }
    if (at === NO_INDEX) return NO_INDEX;
    at = skipSpace(bytes, at);
    if (bytes[at] !== COMMA) return bytes[at] === CLOSE_BRACE ? at + 1 : NO_INDEX;
    at = skipSpace(bytes, at + 1);
  }
}

export function textOf({ bytes, text }: Scanned, from: number, to: number): string {
  return text === '' ? bytes.toString('utf8', from, to) : text.slice(from, to);
}

/** Reads a value that was skipped. */
function readValue(source: Scanned, from: number, to: number, isKept: boolean): JsonFields[string] {
  switch (source.bytes[from]) {
    case QUOTE:
      return readString(source, from, to);
    case TRUE[0]:
      return true;
    case FALSE[0]:
      return false;
    case NULL[0]:
      return null;
    case OPEN_BRACE:
    case OPEN_BRACKET:
      return isKept ? keep(source, from, to) : exactValue(source, from, to);
    default: {
      const value = Number(textOf(source, from, to));
      if (String(value) === textOf(source, from, to)) return value;
      return isKept ? keep(source, from, to) : exactValue(source, from, to);
    }
  }
}

function keep({ bytes, text }: Scanned, from: number, to: number): JsonText {
  return text === '' ? JsonText.ofBytes(bytes.subarray(from, to)) : JsonText.ofText(text.slice(from, to));
}

function exactValue(source: Scanned, from: number, to: number): JsonFields[string] {
  // The parser gives JSON values and JsonTexts, and nothing else.
  return parseExact(textOf(source, from, to)) as JsonFields[string];
}

function readString(source: Scanned, from: number, to: number): string {
  for (const usual of USUAL_TEXTS[to - from - 2] ?? [])
    if (source.text.startsWith(usual, from + 1)) return usual;
  const text = textOf(source, from + 1, to - 1);
  return text.includes('\\') ? String(JSON.parse(`"${text}"`)) : text;
}

/** Texts of most calls, by their length. They are not made again, and V8 need not look them up when they are keys. */
const USUAL_TEXTS = byLength([
  ...['jsonrpc', '2.0', 'id', 'method', 'tools/call', 'params', 'name', 'arguments', '_meta', '2026-07-28'],
  ...['protocolVersion', 'clientCapabilities', 'clientInfo'].map((key) => `io.modelcontextprotocol/${key}`),
]);

function byLength(texts: readonly string[]): readonly (readonly string[])[] {
  const longest = Math.max(...texts.map(({ length }) => length));
  return Array.from({ length: longest + 1 }, (_, length) => texts.filter((text) => text.length === length));
}

/** `__proto__` is a key like any other. */
export function setField<V>(fields: Record<string, V>, key: string, value: V): void {
  if (key !== '__proto__') fields[key] = value;
  else Object.defineProperty(fields, key, { value, enumerable: true, configurable: true, writable: true });
}

/** The index of the next byte that is not white space. */
export function skipSpace(bytes: Buffer, start: number): number {
  let at = start;
  while (isSpace(bytes[at])) at += 1;
  return at;
}

/** The index after the string that begins at `start`; NO_INDEX when none does, or it is not valid. */
export function skipString({ bytes, words, offset }: Scanned, start: number): number {
  if (bytes[start] !== QUOTE) return NO_INDEX;
  const { length } = words;
  let at = start + 1;
  for (;;) {
    if (((offset + at) & 3) === 0) {
      let word = (offset + at) >> 2;
      while (word < length && isPlain(words[word] ?? 0)) word += 1;
      at = (word << 2) - offset;
    }
    const byte = bytes[at];
    if (byte === undefined || byte < 0x20) return NO_INDEX;
    if (byte === QUOTE) return at + 1;
    if (byte !== BACKSLASH) {
      at += 1;
      continue;
    }
    at = skipEscape(bytes, at);
    if (at === NO_INDEX) return NO_INDEX;
  }
}

/** A value of any kind, `depth` levels inside others. */
export function skipValue(source: Scanned, start: number, depth = 0): number {
  const { bytes } = source;
  source.left -= 1;
  if (source.left < 0) return exceed(source, 'values');
  switch (bytes[start]) {
    case QUOTE:
      return skipString(source, start);
    case OPEN_BRACE:
      return depth === source.levels ? exceed(source, 'depth') : skipObject(source, start, depth + 1);
    case OPEN_BRACKET:
      return depth === source.levels ? exceed(source, 'depth') : skipArray(source, start, depth + 1);
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

/** Counts as one value, whatever is in it. */
function skipUncounted(source: Scanned, start: number, depth: number): number {
  const left = source.left - 1;
  if (left < 0) return exceed(source, 'values');
  source.left = source.bytes.length; // it has fewer values than bytes
  const end = skipValue(source, start, depth);
  source.left = left;
  return end;
}

/** True when JSON that is valid has more values than that, where a key counts as one. */
export function hasMoreValues(bytes: Buffer, most: number): boolean {
  // Every value takes two bytes, with its comma.
  return bytes.length >= 2 * most && valuesInBytes(bytes, most) > most;
}

/** The number of values in JSON that is valid, where a key counts as one. Counting stops above `most`. */
export function valuesInBytes(bytes: Buffer, most: number): number {
  const source = scanned(bytes, { levels: Number.POSITIVE_INFINITY, values: most });
  skipValue(source, skipSpace(bytes, 0));
  return most - source.left;
}

/** The bytes of the last value of that key in a JSON object that is valid; undefined when there is none. Nothing is built. */
export function memberBytes(json: Buffer, key: string): Buffer | undefined {
  return membersOf(json, (name) => name === key).get(key);
}

/** The same member as text, if it is a string. */
export function memberText(json: Buffer, key: string): string | undefined {
  const written = memberBytes(json, key);
  return written?.[0] === QUOTE ? String(JSON.parse(written.toString())) : undefined;
}

/**
 * The bytes of the members of an object that is valid JSON, none of anything else, in one pass. Of repeated keys
 * the last one counts, as for a parser.
 */
export function membersOf(json: Buffer, isWanted: (key: string) => boolean): Map<string, Buffer> {
  const source = scanned(json, { levels: Number.POSITIVE_INFINITY, values: json.length });
  const found = new Map<string, Buffer>();
  let at = skipSpace(json, 0);
  if (json[at] !== OPEN_BRACE) return found;
  at = skipSpace(json, at + 1);
  while (json[at] === QUOTE) {
    const keyEnd = skipString(source, at);
    const value = skipColon(json, keyEnd);
    const key = readString(source, at, keyEnd);
    const end = skipValue(source, value, 1);
    if (isWanted(key)) found.set(key, json.subarray(value, end));
    at = skipSpace(json, end);
    if (json[at] === COMMA) at = skipSpace(json, at + 1);
  }
  return found;
}

/**
 * The JSON-RPC request in bytes that were refused: its id, as far as the bytes can be read. Undefined for anything else, answers
 * included. Values are skipped without recursion.
 */
export function requestIdIn(bytes: Buffer): JsonFields[string] {
  const source = scanned(bytes, { levels: 0, values: bytes.length });
  let at = skipSpace(bytes, 0);
  if (bytes[at] !== OPEN_BRACE) return undefined;
  let [id, isRequest]: [JsonFields[string], boolean] = [undefined, false];
  do {
    at = skipSpace(bytes, at + 1);
    const keyEnd = skipString(source, at);
    const from = keyEnd === NO_INDEX ? NO_INDEX : skipColon(bytes, keyEnd);
    const end = from === NO_INDEX ? NO_INDEX : skipAny(source, from);
    if (end === NO_INDEX) break;
    const key = textOf(source, at, keyEnd);
    if (key === '"method"') isRequest = true;
    if (key === '"id"' && bytes[from] !== OPEN_BRACE && bytes[from] !== OPEN_BRACKET)
      id = exactValue(source, from, end);
    at = skipSpace(bytes, end);
  } while (bytes[at] === COMMA);
  return isRequest ? id : undefined;
}

/** A value of any depth; what is inside of arrays and objects is not checked. */
function skipAny(source: Scanned, start: number): number {
  const { bytes } = source;
  if (bytes[start] !== OPEN_BRACE && bytes[start] !== OPEN_BRACKET) return skipValue(source, start);
  let depth = 0;
  let at = start;
  while (at < bytes.length) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = skipString(source, at);
      if (at === NO_INDEX) return NO_INDEX;
      continue;
    }
    at += 1;
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth += 1;
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth -= 1;
    if (depth === 0) return at;
  }
  return NO_INDEX;
}

function exceed(source: Scanned, excess: Excess): number {
  source.excess = excess;
  return NO_INDEX;
}

function skipKey(source: Scanned, start: number): number {
  source.left -= 1;
  return skipString(source, start);
}

/** Skips the colon after a key. Returns the start of the value, or NO_INDEX. */
export function skipColon(bytes: Buffer, keyEnd: number): number {
  const colon = skipSpace(bytes, keyEnd);
  return bytes[colon] === COLON ? skipSpace(bytes, colon + 1) : NO_INDEX;
}

function skipObject(source: Scanned, start: number, depth: number): number {
  const { bytes } = source;
  let at = skipSpace(bytes, start + 1);
  if (bytes[at] === CLOSE_BRACE) return at + 1;
  for (;;) {
    at = skipKey(source, at);
    if (at === NO_INDEX) return NO_INDEX;
    at = skipColon(bytes, at);
    if (at === NO_INDEX) return NO_INDEX;
    at = skipValue(source, at, depth);
    if (at === NO_INDEX) return NO_INDEX;
    at = skipSpace(bytes, at);
    if (bytes[at] !== COMMA) return bytes[at] === CLOSE_BRACE ? at + 1 : NO_INDEX;
    at = skipSpace(bytes, at + 1);
  }
}

function skipArray(source: Scanned, start: number, depth: number): number {
  const { bytes } = source;
  let at = skipSpace(bytes, start + 1);
  if (bytes[at] === CLOSE_BRACKET) return at + 1;
  for (;;) {
    at = skipValue(source, at, depth);
    if (at === NO_INDEX) return NO_INDEX;
    at = skipSpace(bytes, at);
    if (bytes[at] !== COMMA) return bytes[at] === CLOSE_BRACKET ? at + 1 : NO_INDEX;
    at = skipSpace(bytes, at + 1);
  }
}

/** A backslash in a string, and the characters that belong to it. */
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
      for (let at = start + 2; at < start + 6; at += 1) if (!isHex(bytes[at])) return NO_INDEX;
      return start + 6;
    default:
      return NO_INDEX;
  }
}

function skipNumber(bytes: Buffer, start: number): number {
  const first = bytes[start] === MINUS ? start + 1 : start;
  let at = skipDigits(bytes, first);
  if (at === NO_INDEX || (bytes[first] === ZERO && at > first + 1)) return NO_INDEX;
  if (bytes[at] === POINT) {
    at = skipDigits(bytes, at + 1);
    if (at === NO_INDEX) return NO_INDEX;
  }
  if (bytes[at] !== EXPONENT && bytes[at] !== CAPITAL_EXPONENT) return at;
  const sign = bytes[at + 1];
  return skipDigits(bytes, sign === PLUS || sign === MINUS ? at + 2 : at + 1);
}

/** The place behind one or more digits; NO_INDEX without a digit. */
function skipDigits(bytes: Buffer, start: number): number {
  let at = start;
  while (isDigit(bytes[at])) at += 1;
  return at > start ? at : NO_INDEX;
}

function skipWord(bytes: Buffer, start: number, word: readonly number[]): number {
  for (let index = 1; index < word.length; index += 1) {
    if (bytes[start + index] !== word[index]) return NO_INDEX;
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
 * True when none of four bytes ends a string, begins an escape or is a control character. A subtraction sets
 * the highest bit of a byte that is less than the subtrahend; `& ~` masks bytes that were 0x80 or more.
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
