// Schemas in the API description: plain JSON Schema 2020-12, with references to named schemas, and examples made
// from the examples of their parts.

import type { TSchema } from 'typebox';

/** A part of the description, as plain JSON. */
export type Described = Readonly<Record<string, unknown>>;

/**
 * Describes schemas for one document. `describe` returns a schema, or a reference to it when it has a name, also inside others.
 * `named` gets the schemas with names in full.
 */
export function schemaWriter() {
  const named: Record<string, Described> = {};
  const describe = (schema: TSchema): Described => {
    // Enumerable properties only: TypeBox has its own marks in the others.
    const text = JSON.stringify(schema, (_name, part: unknown) => (isNamed(part) ? referenceTo(part) : part));
    return Object(JSON.parse(text, (_name, part: unknown) => readable(part)));
  };
  const referenceTo = ({ schemaName, ...schema }: TSchema & { readonly schemaName: string }) => {
    named[schemaName] ??= { ...describe(schema), examples: [exampleOf(schema)] };
    return { $ref: `#/components/schemas/${schemaName}` };
  };
  return { describe, named };
}

function isNamed(part: unknown): part is TSchema & { readonly schemaName: string } {
  return isObject(part) && typeof part.schemaName === 'string';
}

/**
 * Uses the common notation for records with arbitrary names, and names the type of enumerations. Says that an object without
 * fields has any: linters take it as empty. Describes a pattern in the words of its refusal.
 */
function readable(part: unknown): unknown {
  if (!isObject(part)) return part;
  const { 'x-words': words, ...others } = part;
  if (typeof words === 'string') return { ...others, description: words };
  const { patternProperties, ...rest } = part;
  const patterns = isObject(patternProperties) ? Object.entries(patternProperties) : [];
  const [pattern, valueSchema] = patterns[0] ?? [];
  if (patterns.length === 1 && pattern === ANY_NAME && !('additionalProperties' in rest))
    return { ...rest, additionalProperties: valueSchema };
  if (rest.type === 'object' && hasNoFields(rest) && patterns.length === 0)
    return { additionalProperties: true, ...rest };
  if (!('type' in rest) && Array.isArray(rest.enum) && rest.enum.every((word) => typeof word === 'string'))
    return { type: 'string', ...part };
  return part;
}

function hasNoFields({ properties = {} }: Readonly<Record<string, unknown>>): boolean {
  return Object.keys(Object(properties)).length === 0;
}

/** The pattern that TypeBox writes for `Type.Record(Type.String(), …)`. */
const ANY_NAME = '^.*$';

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

/** The example of an object. That of a record has one entry, whose name is an example of `propertyNames`. */
function exampleObject({ properties = {}, required = [], patternProperties = {}, propertyNames }: Keywords) {
  const fields = Object.entries(properties)
    .filter(([name, property]) => required.includes(name) || property.examples !== undefined)
    .map(([name, property]) => [name, exampleOf(property)] as const);
  const [value] = Object.values(patternProperties);
  if (value !== undefined && propertyNames !== undefined)
    fields.push([String(exampleOf(propertyNames)), exampleOf(value)]);
  return Object.fromEntries(fields);
}
