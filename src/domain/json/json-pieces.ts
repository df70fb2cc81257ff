// Writes large values in pieces, so that no turn of the event loop has to write all of one.

import { isJsonObject } from './json.ts';

/** The most fields or items that are written at once, where none contains others. */
const MAX_WRITTEN_TOGETHER = 32;

/** An object whose fields are made when they are written; for jsonPieces, not as a field of another kind of object. */
export class LazyFields {
  readonly entries: () => Iterable<readonly [string, unknown]>;

  constructor(entries: () => Iterable<readonly [string, unknown]>) {
    this.entries = entries;
  }
}

/** The JSON of a value, as JSON.stringify writes it. `value` is not nested deeper than LIMITS.nestingDepth. */
export function* jsonPieces(value: unknown): Generator<string> {
  if (value instanceof LazyFields) return yield* fieldPieces(value.entries());
  const isArray = Array.isArray(value);
  if (!isArray && !isJsonObject(value)) return yield JSON.stringify(value);
  // Once: for an object with many keys this takes longer than anything else.
  const keys = isArray ? [] : Object.keys(value);
  const contents = isArray ? value : keys.length > MAX_WRITTEN_TOGETHER ? keys : Object.values(value);
  if (contents.length <= MAX_WRITTEN_TOGETHER && !contents.some(contains)) return yield JSON.stringify(value);
  yield* isArray ? itemPieces(value) : fieldPieces(eachField(value, keys));
}

function contains(value: unknown): boolean {
  return Array.isArray(value) || isJsonObject(value);
}

/** The fields of an object, one after the other; Object.entries would make all pairs at once. */
export function* eachField(
  object: Readonly<Record<string, unknown>>,
  keys: readonly string[] = Object.keys(object),
): Generator<readonly [string, unknown]> {
  for (const key of keys) yield [key, object[key]];
}

function* itemPieces(items: readonly unknown[]): Generator<string> {
  let separator = '[';
  for (const item of items) {
    yield separator;
    yield* jsonPieces(item);
    separator = ',';
  }
  yield ']';
}

function* fieldPieces(fields: Iterable<readonly [string, unknown]>): Generator<string> {
  let separator = '{';
  for (const [key, field] of fields) {
    if (field === undefined) continue;
    yield `${separator}${JSON.stringify(key)}:`;
    yield* jsonPieces(field);
    separator = ',';
  }
  yield separator === '{' ? '{}' : '}';
}
