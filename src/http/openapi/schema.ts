// Schemas in the API description: plain JSON Schema 2020-12, with references to named schemas.

import type { TSchema } from 'typebox';

export type JsonSchema = Readonly<Record<string, unknown>>;

/**
 * Describes schemas for one document. `describe` returns a schema, or a reference to it when it has a name; named schemas are
 * recognised by content, also inside others. `named` has those schemas in full.
 */
export function schemaWriter(names: Readonly<Record<string, TSchema>>) {
  const known = new Map(Object.entries(names).map(([name, schema]) => [JSON.stringify(plain(schema)), name]));
  const write = (value: unknown): unknown => {
    const name = isObject(value) ? known.get(JSON.stringify(value)) : undefined;
    return name === undefined ? inside(value, write) : { $ref: `#/components/schemas/${name}` };
  };
  const describe = (schema: TSchema): JsonSchema => objectOf(write(plain(schema)));
  return {
    describe,
    named: Object.fromEntries(
      Object.entries(names).map(([name, schema]) => [name, objectOf(inside(plain(schema), write))]),
    ),
  };
}

/** Enumerable properties only: TypeBox has its own marks in the others. */
function plain(schema: TSchema): unknown {
  return readable(JSON.parse(JSON.stringify(schema)));
}

/** With the common notation for records with arbitrary names and for the type of enumerations. */
function readable(value: unknown): unknown {
  const written = inside(value, readable);
  if (!isObject(written)) return written;
  const { patternProperties, ...rest } = written;
  const patterns = isObject(patternProperties) ? Object.entries(patternProperties) : [];
  const [pattern, valueSchema] = patterns[0] ?? [];
  if (patterns.length === 1 && pattern === ANY_NAME && !('additionalProperties' in rest)) {
    return { ...rest, additionalProperties: valueSchema };
  }
  if (!('type' in rest) && Array.isArray(rest.enum) && rest.enum.every((word) => typeof word === 'string')) {
    return { type: 'string', ...written };
  }
  return written;
}

/** What TypeBox writes for `Type.Record(Type.String(), …)`. */
const ANY_NAME = '^.*$';

function inside(value: unknown, change: (value: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map(change);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, change(child)]));
}

function objectOf(value: unknown): JsonSchema {
  if (isObject(value)) return value;
  throw new TypeError('the schema of a route is not an object');
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
