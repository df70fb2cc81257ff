// Reads in one pass over the bytes what has to be known of JSON before, or instead of, parsing it: whether it holds too
// much, and where the fields of an object are.

import { isFields, type JsonFields, JsonText } from './json.ts';
import { LIMITS } from './limits.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COMMA = 0x2c;
const COLON = 0x3a;

/** What is too much in a body. */
export type Excess = 'depth' | 'values';

/**
 * What there is too much of: more than `mostLevels` levels of arrays and objects, or more than LIMITS.bodyValues values,
 * where a key counts as one. Undefined when all is within bounds. Bytes that are not JSON give any answer: the parser
 * refuses them. Source: ADR 42.
 */
export function excessIn(bytes: Buffer, mostLevels: number): Excess | undefined {
  // Nothing shorter can be too deep, or hold too many values.
  if (bytes.length <= 2 * mostLevels && bytes.length <= LIMITS.bodyValues) return undefined;
  let levels = 0;
  let values = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (isBetweenValues(byte)) continue;
    if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      levels -= 1;
      continue;
    }
    values += 1;
    if (values > LIMITS.bodyValues) return 'values';
    if (byte === QUOTE) at = endOfString(bytes, at);
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      levels += 1;
      if (levels > mostLevels) return 'depth';
    } else at = endOfWord(bytes, at) - 1;
  }
  return undefined;
}

/**
 * The fields of the object that begins at `start`, as `parsed` has them; but arrays, objects and numbers that would be
 * written otherwise are kept as text, here and inside `_meta`. The bytes must be those that were parsed; they are not copied.
 */
export function readFields(bytes: Buffer, start: number, parsed: JsonFields): JsonFields {
  const fields: Record<string, JsonFields[string]> = {};
  eachField(bytes, start, (key, from, to) => {
    const value = parsed[key];
    if (key === '_meta' && isFields(value)) fields[key] = readFields(bytes, from, value);
    else if (isKeptAsText(value, bytes, from, to))
      set(fields, key, JsonText.ofBytes(bytes.subarray(from, to)));
    else set(fields, key, value);
  });
  return fields;
}

/** Where the value of a field begins in the object that begins at `start`; the last one of that name, as for JSON.parse. */
export function fieldStart(bytes: Buffer, start: number, name: string): number | undefined {
  let found: number | undefined;
  eachField(bytes, start, (key, from) => {
    if (key === name) found = from;
  });
  return found;
}

/** Where the items of the array begin that begins at `start`. */
export function itemStarts(bytes: Buffer, start: number): number[] {
  const starts: number[] = [];
  let at = firstByte(bytes, start + 1);
  while (at < bytes.length && bytes[at] !== CLOSE_BRACKET) {
    starts.push(at);
    at = firstByte(bytes, endOfValue(bytes, at));
    if (bytes[at] === COMMA) at = firstByte(bytes, at + 1);
  }
  return starts;
}

/** Where the first byte is that is no white space. */
export function firstByte(bytes: Buffer, from = 0): number {
  let at = from;
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at += 1;
  return at;
}

/** Where the string that begins at `start` ends: its closing quote, or the end of everything. */
export function endOfString(bytes: Buffer, start: number): number {
  let at = start + 1;
  for (;;) {
    // Most strings are short; in a long one the machine looks for the quote.
    for (const near = at + NEAR_BYTES; at < near; at += 1) {
      const byte = bytes[at];
      if (byte === QUOTE || byte === undefined) return Math.min(at, bytes.length);
      if (byte === BACKSLASH) at += 1;
    }
    const quote = bytes.indexOf(QUOTE, at);
    if (quote === -1) return bytes.length;
    let escapes = 0;
    while (quote - escapes > at && bytes[quote - escapes - 1] === BACKSLASH) escapes += 1;
    if (escapes % 2 === 0) return quote;
    at = quote + 1;
  }
}

const NEAR_BYTES = 64;

function isKeptAsText(value: JsonFields[string], bytes: Buffer, from: number, to: number): boolean {
  if (typeof value === 'object') return value !== null;
  return typeof value === 'number' && String(value) !== bytes.toString('latin1', from, to);
}

/** `__proto__` is a key like any other. */
function set(fields: Record<string, JsonFields[string]>, key: string, value: JsonFields[string]): void {
  if (key !== '__proto__') fields[key] = value;
  else Object.defineProperty(fields, key, { value, enumerable: true, configurable: true, writable: true });
}

/** The bytes must be valid JSON, with an object at `start`. */
function eachField(
  bytes: Buffer,
  start: number,
  visit: (key: string, from: number, to: number) => void,
): void {
  let at = firstByte(bytes, start + 1);
  while (bytes[at] === QUOTE) {
    const keyEnd = endOfString(bytes, at) + 1;
    const key = readString(bytes, at, keyEnd);
    const from = firstByte(bytes, firstByte(bytes, keyEnd) + 1);
    const to = endOfValue(bytes, from);
    visit(key, from, to);
    at = firstByte(bytes, to);
    if (bytes[at] === COMMA) at = firstByte(bytes, at + 1);
  }
}

function readString(bytes: Buffer, from: number, to: number): string {
  const text = bytes.toString('utf8', from + 1, to - 1);
  return text.includes('\\') ? String(JSON.parse(`"${text}"`)) : text;
}

function endOfValue(bytes: Buffer, start: number): number {
  let levels = 0;
  for (let at = start; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = endOfString(bytes, at);
      if (levels === 0) return at + 1;
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) levels += 1;
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      levels -= 1;
      if (levels === 0) return at + 1;
    } else if (levels === 0) return endOfWord(bytes, at);
  }
  return bytes.length;
}

/** Where a number, or one of the three words, ends. */
function endOfWord(bytes: Buffer, start: number): number {
  let at = start + 1;
  while (at < bytes.length && !isBetweenValues(bytes[at]) && !isClosing(bytes[at])) at += 1;
  return at;
}

function isClosing(byte: number | undefined): boolean {
  return byte === CLOSE_BRACE || byte === CLOSE_BRACKET;
}

function isBetweenValues(byte: number | undefined): boolean {
  return byte === COMMA || byte === COLON || byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
