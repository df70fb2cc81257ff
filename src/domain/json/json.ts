// JSON as values, and as text that is forwarded without being parsed. jsonrpc.ts has JSON-RPC.

import { LIMITS } from '../limits.ts';

export type JsonValue = string | number | boolean | null | JsonValue[] | JsonObject;
/** A JSON object as JSON.parse returns it. */
export interface JsonObject {
  [key: string]: JsonValue | undefined;
}

/** An object with some fields that are kept as text; `_meta` may be such an object, too. `writeFields` serializes it. */
export interface JsonFields {
  readonly [key: string]: JsonValue | JsonText | JsonFields | undefined;
}

/** True for a plain JSON object: not null, not an array, not JSON that is kept as text. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof JsonText);
}

/** The objects in an array; none of any other value. */
export function jsonObjectsIn(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

/** The value as JSON holds it; undefined for one that cannot be written as JSON. */
export function jsonCopy(written: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(written));
  } catch {
    return undefined;
  }
}

/** The field of an object whose fields may have any name, such as `constructor`. */
export function ownField<V>(fields: Readonly<Record<string, V>> | undefined, name: string): V | undefined {
  return fields !== undefined && Object.hasOwn(fields, name) ? fields[name] : undefined;
}

/** True for an object of fields, some of which may be kept as text; otherwise like `isJsonObject`. */
export function isFields(value: JsonFields[string]): value is JsonFields {
  return isJsonObject(value);
}

/** The fields that have a value: `{ a: 1, b: undefined }` is `{ a: 1 }`. */
export function definedFields<T extends object>(
  fields: T,
): { readonly [K in keyof T]?: Exclude<T[K], undefined> } {
  const defined = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(defined) as Partial<T> as ReturnType<typeof definedFields<T>>;
}

/** True when arrays and objects are nested deeper than `levels`, which bounds the recursion. */
export function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  for (const field of Object.values(value)) if (isDeeper(field, levels - 1)) return true;
  return false;
}

/**
 * Gives objects in a value their JSON as text where a field of theirs, such as `toString`, takes the place of what makes a text.
 * `value` is not nested deeply.
 */
export function giveTexts(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  if (Object.hasOwn(value, 'toString') || Object.hasOwn(value, 'valueOf'))
    Object.defineProperty(value, Symbol.toPrimitive, { value: () => JSON.stringify(value) });
  for (const field of Object.values(value)) giveTexts(field);
}

/**
 * The number of values, where a key counts as one, and a number that is kept as text as four. Counting stops above
 * `most`. `value` is not nested deeper than LIMITS.nestingDepth.
 */
export function valuesIn(value: unknown, most: number): number {
  if (typeof value !== 'object' || value === null) return 1;
  if (value instanceof JsonText) return 4;
  const perField = Array.isArray(value) ? 0 : 1;
  let count = 1;
  for (const field of Object.values(value)) {
    count += perField + valuesIn(field, most - count);
    if (count > most) break;
  }
  return count;
}

/** The JSON of the value, independent of the order of its keys. */
export function canonicalText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join()}]`;
  if (!isJsonObject(value)) return JSON.stringify(value ?? null);
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonicalText(value[key])}`).join()}}`;
}

/**
 * One JSON value, kept as UTF-8 bytes, text or value; other forms are made on first use. A result of a backend is
 * not parsed unless its value is read.
 */
export class JsonText {
  #bytes: Buffer | undefined;
  readonly #text: string | undefined;
  #value: unknown;

  private constructor(bytes?: Buffer, text?: string, value?: unknown) {
    this.#bytes = bytes;
    this.#text = text;
    this.#value = value;
  }

  /** Wraps bytes that hold exactly one JSON value. They are not copied: do not reuse the buffer. */
  static ofBytes(bytes: Buffer): JsonText {
    return new JsonText(bytes);
  }

  /** Wraps a text that holds exactly one JSON value. */
  static ofText(text: string): JsonText {
    return new JsonText(undefined, text);
  }

  static ofValue(value: unknown): JsonText {
    return new JsonText(undefined, undefined, value);
  }

  /** UTF-8 bytes of the JSON text. */
  get bytes(): Buffer {
    this.#bytes ??= Buffer.from(this.#text ?? JSON.stringify(this.#value ?? null));
    return this.#bytes;
  }

  /** The text if it is kept as such, else the bytes. */
  get source(): Buffer | string {
    return this.#text ?? this.bytes;
  }

  get text(): string {
    return this.#text ?? this.bytes.toString('utf8');
  }

  /** The value for JSON.stringify, with each number as it was written. */
  toJSON(): unknown {
    const value = this.exactValue;
    return value instanceof JsonText ? JSON.rawJSON(value.text) : value;
  }

  /** The parsed value, in which each number that JavaScript would change is a JsonText: see `parseExact`. */
  get exactValue(): unknown {
    return parseExact(this.text);
  }

  /**
   * The parsed value, which is kept if it is small. Throws SyntaxError when the bytes are not JSON; those of
   * `readMessage` are.
   */
  get value(): unknown {
    if (this.#value !== undefined) return this.#value;
    const value: unknown = JSON.parse(this.text);
    if (this.source.length <= LIMITS.inspectedResultBytes) this.#value = value;
    return value;
  }
}

declare global {
  interface JSON {
    /** Source: ECMAScript 2026; in Node since version 21. */
    rawJSON(text: string): unknown;
  }
}

/**
 * Parses JSON. A number that JavaScript would change (beyond 2^53, beyond what a double holds, negative zero) is a
 * JsonText, which JSON.stringify writes as it came. Throws SyntaxError. Source: ADR 43.
 */
export function parseExact(text: string): unknown {
  const value: unknown = JSON.parse(text);
  return MAYBE_CHANGED.test(text) ? withExactNumbers(value, text) : value;
}

/**
 * The value of the text, with exact numbers. Only they are looked for: a reviver would be called for every value,
 * which takes five times as long as the parser. Of repeated keys the last one counts: what the parser has dropped
 * is not there.
 */
function withExactNumbers(value: unknown, text: string): unknown {
  const root = { value };
  /**
   * The open arrays and objects, as far as they are there, and where the text is in each: the key as it is
   * written, or the index.
   */
  const nodes: unknown[] = [root];
  const places: (string | number)[] = ['"value"'];
  const changed = new Set<number>();
  let isKeyNext = false;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text[at];
    const place = places.at(-1) ?? '';
    if (unit === '"') {
      const start = at;
      at = endOfString(text, start);
      if (isKeyNext) places[places.length - 1] = text.slice(start, at + 1);
      isKeyNext = false;
    } else if (unit === '{' || unit === '[') {
      isKeyNext = unit === '{';
      nodes.push(memberAt(nodes.at(-1), place));
      places.push(isKeyNext ? '' : 0);
    } else if (unit === '}' || unit === ']') {
      isKeyNext = false;
      nodes.pop();
      places.pop();
    } else if (unit === ',') {
      isKeyNext = typeof place === 'string';
      if (typeof place === 'number') places[places.length - 1] = place + 1;
    } else if (unit !== undefined && NUMBER_START.has(unit)) {
      const start = at;
      while (NUMBER_UNITS.has(text.charCodeAt(at + 1))) at += 1;
      const source = text.slice(start, at + 1);
      const number = Number(source);
      const isInexact = isChanged(number, source);
      if (isInexact) changed.add(number);
      // One that is equal may replace it under a repeated key.
      if (changed.has(number))
        replaceMember(nodes.at(-1), place, number, isInexact ? JsonText.ofText(source) : number);
    }
  }
  return root.value;
}

const NUMBER_START: ReadonlySet<string> = new Set('-0123456789');
const NUMBER_UNITS: ReadonlySet<number> = new Set([...'+-.0123456789Ee'].map((unit) => unit.charCodeAt(0)));

/** The index of the quote that ends a string. */
function endOfString(text: string, start: number): number {
  let at = text.indexOf('"', start + 1);
  for (;;) {
    let slash = at - 1;
    while (text[slash] === '\\') slash -= 1;
    if ((at - slash) % 2 === 1) return at;
    at = text.indexOf('"', at + 1);
  }
}

function keyOf(place: string | number): string | number {
  if (typeof place === 'number') return place;
  return place.includes('\\') ? String(JSON.parse(place)) : place.slice(1, -1);
}

function memberAt(node: unknown, place: string | number): unknown {
  if (typeof node !== 'object' || node === null) return undefined;
  const key = keyOf(place);
  return Object.hasOwn(node, key) ? Reflect.get(node, key) : undefined;
}

function replaceMember(
  node: unknown,
  place: string | number,
  number: number,
  exact: JsonText | number,
): void {
  const found = memberAt(node, place);
  const present = found instanceof JsonText ? Number(found.text) : found;
  if (typeof node === 'object' && node !== null && Object.is(present, number))
    Reflect.set(node, keyOf(place), exact);
}

/**
 * Steps of one key each, which throw a SyntaxError at the first key that its object has twice: JSON.parse drops all but the
 * last. The text is JSON.
 */
export function* uniqueKeySteps(text: string): Generator<void> {
  const mark = /["{}]/g;
  const colon = /\s*:/y;
  const objects: Set<string>[] = [];
  for (let found = mark.exec(text); found !== null; found = mark.exec(text)) {
    if (found[0] === '{') objects.push(new Set());
    else if (found[0] === '}') objects.pop();
    else {
      const end = endOfString(text, found.index) + 1;
      mark.lastIndex = end;
      colon.lastIndex = end;
      if (!colon.test(text)) continue;
      const key = keyOf(text.slice(found.index, end));
      if (objects.at(-1)?.has(String(key)))
        throw new SyntaxError(`Keys must be unique at ${placeIn(text, found.index)}`);
      objects.at(-1)?.add(String(key));
      yield;
    }
  }
}

/** The place in a text, as the parser of YAML names it. */
function placeIn(text: string, index: number): string {
  const before = text.slice(0, index);
  return `line ${before.split('\n').length}, column ${index - before.lastIndexOf('\n')}`;
}

/** The value of a text that may be JSON; undefined when it is not. `parse` throws SyntaxError. */
export function jsonIn(text: string, parse: (text: string) => unknown = JSON.parse): unknown {
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}

/** Numbers that a double may not hold, and negative zero; a match in a string only costs time, so repetitions are bounded. */
const MAYBE_CHANGED = /(?:^|[\s:,[-])(?:(?:\d\.?){16}|\d{1,15}(?:\.\d{1,15})?[eE][+-]?\d{3})|(?:^|[\s:,[])-0/;

function isChanged(value: number, source: string): boolean {
  if (value === 0 || !Number.isFinite(value)) return /^-|[1-9]/.test(source);
  return source.length > MAX_EXACT_DIGITS && String(value) !== source;
}

/** A double holds every number with this many digits. */
const MAX_EXACT_DIGITS = 15;

/** The value of a field, which may be kept as text; see `exactValue`. */
export function fieldValue(field: JsonFields[string]): unknown {
  return field instanceof JsonText ? field.exactValue : field;
}

/** The JSON of an object; fields that are kept as text are inserted unchanged. */
export function writeFields(fields: JsonFields): string {
  let text = '';
  for (const key of Object.keys(fields)) {
    const field = writeField(key, fields[key]);
    if (field === undefined) continue;
    if (text === '') text = `{${JSON.stringify(key)}:${field}`;
    else text += (HEADS.get(key) ?? headOf(key)) + field;
  }
  return text === '' ? '{}' : `${text}}`;
}

/** The text before a field that is not the first. */
function headOf(key: string): string {
  return `,${JSON.stringify(key)}:`;
}

/** The texts before the fields that most calls have; made once. */
const HEADS: ReadonlyMap<string, string> = new Map(
  [
    ...['arguments', '_meta', 'progressToken', 'traceparent'],
    ...['protocolVersion', 'clientCapabilities', 'clientInfo'].map((key) => `io.modelcontextprotocol/${key}`),
  ].map((key) => [key, headOf(key)]),
);

/** The JSON of a field; undefined for values without JSON, as in JSON.stringify. */
function writeField(key: string, field: JsonFields[string]): string | undefined {
  if (field instanceof JsonText) return field.text;
  return key === '_meta' && isFields(field) ? writeFields(field) : JSON.stringify(field);
}
