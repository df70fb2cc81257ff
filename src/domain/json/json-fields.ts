// Finds and changes fields of an object that is valid JSON, without parsing it: everything else keeps its bytes.

import { caseless } from '../text.ts';
import {
  CLOSE_BRACE,
  COMMA,
  memberBytes,
  NO_INDEX,
  OPEN_BRACE,
  OPEN_BRACKET,
  scanned,
  skipColon,
  skipSpace,
  skipString,
  skipValue,
} from './json-scanner.ts';

/**
 * The bytes of a field of an object that is valid JSON; undefined when there is none. One pass; an object without
 * the text of the key, which is the usual case, costs one native search. Of repeated fields the first; a key with
 * escapes is not found.
 */
export function fieldIn(object: Buffer, key: string): Buffer | undefined {
  const quoted = Buffer.from(`"${key}"`);
  if (!object.includes(quoted)) return undefined;
  for (const { start, keyEnd, value, end } of fieldsOf(object)) {
    if (object.subarray(start, keyEnd).equals(quoted)) return object.subarray(value, end);
  }
  return undefined;
}

/** The new value with which an edit removes a field. */
export const REMOVED = Buffer.alloc(0);

/**
 * An object that is valid JSON, with other fields: `edit` gets each key, however it is written, and its value, and
 * returns the new value, REMOVED, or undefined to keep it. Everything else keeps its bytes;
 * anything but an object is unchanged.
 */
export function editedFields(
  object: Buffer,
  edit: (key: string, value: Buffer) => Buffer | undefined,
): Buffer {
  const parts: Buffer[] = [];
  let run: { readonly start: number; end: number } | undefined; // fields in a row that are kept
  let isEdited = false;
  const endRun = () => run && parts.push(object.subarray(run.start, run.end));
  for (const { start, keyEnd, value, end } of fieldsOf(object)) {
    const edited = edit(keyOf(object, start, keyEnd), object.subarray(value, end));
    if (edited === undefined) {
      run ??= { start, end };
      run.end = end;
      continue;
    }
    isEdited = true;
    endRun();
    run = undefined;
    if (edited.length > 0) parts.push(Buffer.concat([object.subarray(start, value), edited]));
  }
  if (!isEdited) return object;
  endRun();
  const separated = parts.flatMap((part, index) => (index === 0 ? [part] : [COMMA_TEXT, part]));
  return Buffer.concat([OPEN_TEXT, ...separated, CLOSE_TEXT]);
}

/**
 * An array that is valid JSON, with other items: `edit` returns the new one, or undefined to keep it. Everything
 * else keeps its bytes; anything but an array is unchanged.
 */
export function editedItems(array: Buffer, edit: (item: Buffer) => Buffer | undefined): Buffer {
  const parts: Buffer[] = [];
  let keptFrom = 0;
  for (const { start, end } of itemsOf(array)) {
    const edited = edit(array.subarray(start, end));
    if (edited === undefined) continue;
    parts.push(array.subarray(keptFrom, start), edited);
    keptFrom = end;
  }
  return parts.length === 0 ? array : Buffer.concat([...parts, array.subarray(keptFrom)]);
}

/** The items of an array that is valid JSON; none of anything else. */
export function* itemsOf(array: Buffer): Generator<{ readonly start: number; readonly end: number }> {
  let at = skipSpace(array, 0);
  if (array[at] !== OPEN_BRACKET) return;
  const source = scanned(array, { levels: Number.POSITIVE_INFINITY, values: array.length });
  do {
    const start = skipSpace(array, at + 1);
    const end = skipValue(source, start, 1);
    if (end === NO_INDEX) return; // it is empty
    yield { start, end };
    at = skipSpace(array, end);
  } while (array[at] === COMMA);
}

/** An object that is valid JSON, whose array in this field has other items: `edit` returns undefined for one that is removed. */
export function withItems(
  object: Buffer,
  field: string,
  edit: (item: Buffer, index: number) => Buffer | undefined,
): Buffer {
  const array = memberBytes(object, field);
  if (array === undefined) return object;
  const edited = Array.from(itemsOf(array)).flatMap(
    ({ start, end }, index) => edit(array.subarray(start, end), index) ?? [],
  );
  const whole = arrayOf(edited);
  return editedFields(object, (key) => (key === field ? whole : undefined));
}

/** An array with these items. */
export function arrayOf(items: readonly Buffer[]): Buffer {
  const parts = items.flatMap((item, index) => (index === 0 ? [item] : [COMMA_TEXT, item]));
  return Buffer.concat([OPEN_ARRAY, ...parts, CLOSE_ARRAY]);
}

const COMMA_TEXT = Buffer.from(',');
const OPEN_TEXT = Buffer.from('{');
const CLOSE_TEXT = Buffer.from('}');
const OPEN_ARRAY = Buffer.from('[');
const CLOSE_ARRAY = Buffer.from(']');

interface FieldSpan {
  /** The places where the key, the value and the field begin or end. */
  readonly start: number;
  readonly keyEnd: number;
  readonly value: number;
  readonly end: number;
}

/** The fields of an object that is valid JSON; none of anything else. */
function* fieldsOf(object: Buffer): Generator<FieldSpan> {
  let at = skipSpace(object, 0);
  if (object[at] !== OPEN_BRACE) return;
  const source = scanned(object, { levels: Number.POSITIVE_INFINITY, values: object.length });
  do {
    const start = skipSpace(object, at + 1);
    const keyEnd = skipString(source, start);
    const value = keyEnd === NO_INDEX ? NO_INDEX : skipColon(object, keyEnd);
    const end = value === NO_INDEX ? NO_INDEX : skipValue(source, value, 1);
    if (end === NO_INDEX) return;
    yield { start, keyEnd, value, end };
    at = skipSpace(object, end);
  } while (object[at] === COMMA);
}

/**
 * The first of these fields that an object has, however its key is written: with escapes, or in other letters.
 * Empty for none, undefined for anything but an object. The JSON is valid. `names`: in the form of `caseless`.
 */
export function hasField(object: Buffer, names: ReadonlySet<string>): string | undefined {
  if (object[skipSpace(object, 0)] !== OPEN_BRACE) return undefined;
  for (const { start, keyEnd } of fieldsOf(object)) {
    const key = keyOf(object, start, keyEnd);
    if (names.has(caseless(key))) return key;
  }
  return '';
}

function keyOf(object: Buffer, start: number, end: number): string {
  const written = object.toString('utf8', start, end);
  return written.includes('\\') ? String(JSON.parse(written)) : written.slice(1, -1);
}

/** An object that is valid JSON, with `fields`, JSON without braces, at its end. Everything else keeps its bytes. */
export function withFields(object: Buffer, fields: Buffer): Buffer {
  const end = object.lastIndexOf(CLOSE_TEXT);
  const isEmpty = object[skipSpace(object, skipSpace(object, 0) + 1)] === CLOSE_BRACE;
  const before = object.subarray(0, end);
  return Buffer.concat(isEmpty ? [before, fields, CLOSE_TEXT] : [before, COMMA_TEXT, fields, CLOSE_TEXT]);
}
