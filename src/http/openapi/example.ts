// Makes an example of a schema from the examples of its parts.

import type { TSchema } from 'typebox';
import { Check } from 'typebox/schema';

/**
 * A value that fits the schema: the first of its `examples`, else made from the fields, without optional fields that have no
 * example, and from the first of several variants. Throws when the result does not fit.
 */
export function exampleOf(schema: TSchema): unknown {
  const example = build(schema);
  if (Check(schema, example)) return example;
  throw new Error(`no example fits ${JSON.stringify(schema).slice(0, 200)}: ${JSON.stringify(example)}`);
}

function build(schema: TSchema): unknown {
  if ('examples' in schema && Array.isArray(schema.examples)) return schema.examples[0];
  if ('const' in schema) return schema.const;
  if ('enum' in schema && Array.isArray(schema.enum)) return schema.enum[0];
  const [variant] = schemasIn(schema, 'anyOf');
  if (variant !== undefined) return build(variant);
  const parts = schemasIn(schema, 'allOf');
  if (parts.length > 0) return Object.assign({}, ...parts.map(build));
  switch ('type' in schema ? schema.type : undefined) {
    case 'object':
      return buildObject(schema);
    case 'array':
      return 'items' in schema && isSchema(schema.items) ? [build(schema.items)] : [];
    case 'string':
      return 'text';
    case 'integer':
    case 'number':
      return 'minimum' in schema && typeof schema.minimum === 'number' ? schema.minimum : 1;
    case 'boolean':
      return true;
    default:
      return null;
  }
}

function buildObject(schema: TSchema): Record<string, unknown> {
  const properties: [string, TSchema][] =
    'properties' in schema && typeof schema.properties === 'object'
      ? Object.entries(schema.properties ?? {})
      : [];
  const required = 'required' in schema && Array.isArray(schema.required) ? schema.required : [];
  const fields = properties
    .filter(([name, property]) => required.includes(name) || 'examples' in property)
    .map(([name, property]) => [name, build(property)] as const);
  return { ...Object.fromEntries(fields), ...buildRecord(schema) };
}

/** One entry of a record, whose name is an example of `propertyNames`. */
function buildRecord(schema: TSchema): Record<string, unknown> {
  if (!('patternProperties' in schema)) return {};
  const [value] = Object.values(schema.patternProperties ?? {});
  const name =
    'propertyNames' in schema && isSchema(schema.propertyNames) ? build(schema.propertyNames) : undefined;
  return isSchema(value) && typeof name === 'string' ? { [name]: build(value) } : {};
}

function schemasIn(schema: TSchema, keyword: 'anyOf' | 'allOf'): readonly TSchema[] {
  const list: unknown = Reflect.get(schema, keyword);
  return Array.isArray(list) ? list.filter(isSchema) : [];
}

function isSchema(value: unknown): value is TSchema {
  return typeof value === 'object' && value !== null;
}
