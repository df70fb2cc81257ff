// Query strings: text to the types a route declares. TypeBox's own Convert makes 5 of "5.5" and 0 of ""; this one
// leaves what does not parse as it is, so that the check refuses it.

import type { TSchema } from 'typebox';
import type { ValidationItem } from '../domain/errors.ts';
import { validationFailed } from '../domain/request-errors.ts';
import { NOT_UNICODE } from '../domain/text.ts';

/** Turns a raw query string (without `?`) into an object. Of a repeated field the last value counts. */
export type ReadQuery = (raw: string) => Readonly<Record<string, unknown>>;

/**
 * Makes a reader that knows which fields are numbers and booleans. It raises VALIDATION_ERROR for NUL characters and
 * encoded surrogates, whether or not the route reads the field.
 */
export function queryReader(schema: TSchema | undefined): ReadQuery {
  const types = fieldTypes(schema);
  return (raw) => {
    if (raw === '') return {};
    if (HIDES_BAD_TEXT.test(raw)) throw validationFailed([BAD_QUERY]);
    const fields = new Map(new URLSearchParams(raw));
    return Object.fromEntries([...fields].map(([field, text]) => [field, convert(text, types.get(field))]));
  };
}

/** A NUL character, or the three bytes that UTF-8 forbids for a surrogate, percent-encoded. */
export const HIDES_BAD_TEXT = /%00|%ed%[ab][0-9a-f]/i;

const BAD_QUERY: ValidationItem = { loc: ['query'], ...NOT_UNICODE };

function convert(text: string, type: unknown): unknown {
  if (type === 'integer' && /^-?\d{1,15}$/.test(text)) return Number(text);
  if (type === 'number' && /^-?\d{1,15}(?:\.\d{1,15})?$/.test(text)) return Number(text);
  if (type === 'boolean') return BOOLEANS.get(text.toLowerCase()) ?? text;
  return text;
}

/** What pydantic takes for a boolean. */
const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ...['true', '1', 'yes', 'on', 't', 'y'].map((word) => [word, true] as const),
  ...['false', '0', 'no', 'off', 'f', 'n'].map((word) => [word, false] as const),
]);

function fieldTypes(schema: TSchema | undefined): ReadonlyMap<string, unknown> {
  const properties: unknown = schema !== undefined && 'properties' in schema ? schema.properties : {};
  return new Map(
    Object.entries(properties ?? {}).map(([field, fieldSchema]: [string, unknown]) => [
      field,
      typeof fieldSchema === 'object' && fieldSchema !== null && 'type' in fieldSchema
        ? fieldSchema.type
        : undefined,
    ]),
  );
}
