// Schemas in the API description: plain JSON Schema 2020-12, with references to named schemas, and examples made from the examples of
// their parts.

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
  return {
    describe: (schema: TSchema): JsonSchema => Object(write(plain(schema))),
    named: Object.fromEntries(
      Object.entries(names).map(([name, schema]) => [name, Object(inside(plain(schema), write))]),
    ),
  };
}

/** Enumerable properties only: TypeBox has its own marks in the others. */
function plain(schema: TSchema): unknown {
  return readable(JSON.parse(JSON.stringify(schema)));
}

/** Uses the common notation for records with arbitrary names, and names the type of enumerations. */
function readable(value: unknown): unknown {
  const written = inside(value, readable);
  if (!isObject(written)) return written;
  const { patternProperties, ...rest } = written;
  const patterns = isObject(patternProperties) ? Object.entries(patternProperties) : [];
  const [pattern, valueSchema] = patterns[0] ?? [];
  if (patterns.length === 1 && pattern === ANY_NAME && !('additionalProperties' in rest))
    return { ...rest, additionalProperties: valueSchema };
  if (!('type' in rest) && Array.isArray(rest.enum) && rest.enum.every((word) => typeof word === 'string'))
    return { type: 'string', ...written };
  return written;
}

/** The pattern that TypeBox writes for `Type.Record(Type.String(), …)`. */
const ANY_NAME = '^.*$';

function inside(value: unknown, change: (value: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map(change);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, change(child)]));
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The keywords of a schema from which an example is made. */
interface Keywords {
  readonly examples?: readonly unknown[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Keywords[];
  readonly allOf?: readonly Keywords[];
  readonly type?: unknown;
  readonly items?: Keywords;
  readonly minimum?: number;
  readonly properties?: Readonly<Record<string, Keywords>>;
  readonly required?: readonly string[];
  readonly patternProperties?: Readonly<Record<string, Keywords>>;
  readonly propertyNames?: Keywords;
}

/**
 * A value that fits the schema: the first of its `examples`, else made from the fields, without optional fields that have no
 * example, and from the first of several variants.
 */
export function exampleOf(written: TSchema): unknown {
  const schema: Keywords = written;
  const { examples, enum: words, anyOf: [variant] = [], allOf } = schema;
  if (examples !== undefined) return examples[0];
  if ('const' in schema) return schema.const;
  if (words !== undefined) return words[0];
  if (variant !== undefined) return exampleOf(variant);
  if (allOf !== undefined) return Object.assign({}, ...allOf.map(exampleOf));
  switch (schema.type) {
    case 'object':
      return exampleObject(schema);
    case 'array':
      return schema.items === undefined ? [] : [exampleOf(schema.items)];
    case 'string':
      return 'text';
    case 'integer':
    case 'number':
      return schema.minimum ?? 1;
    case 'boolean':
      return true;
    default:
      return null;
  }
}

/** For a record: one entry, whose name is an example of `propertyNames`. */
function exampleObject({ properties = {}, required = [], patternProperties = {}, propertyNames }: Keywords) {
  const fields = Object.entries(properties)
    .filter(([name, property]) => required.includes(name) || property.examples !== undefined)
    .map(([name, property]) => [name, exampleOf(property)] as const);
  const [value] = Object.values(patternProperties);
  if (value !== undefined && propertyNames !== undefined)
    fields.push([String(exampleOf(propertyNames)), exampleOf(value)]);
  return Object.fromEntries(fields);
}
