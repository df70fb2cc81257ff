// Makes an example of a schema: a small value that fits it and looks like a real one.

import type { TSchema } from 'typebox';
import { Check } from 'typebox/schema';
import { OTHER_SAMPLE_NAME, OWNERS, SAMPLE_NAMES, SAMPLE_VALUES } from './sample-values.ts';

/**
 * A value that fits the schema. Fields take the sample of their name where one fits; optional fields without a sample
 * are left out, and of several variants the first is shown. Throws when the schema asks for what nobody gave a sample of.
 */
export function exampleOf(schema: TSchema): unknown {
  const example = build(schema, '');
  if (Check(schema, example)) return example;
  throw new Error(`no example fits ${JSON.stringify(schema).slice(0, 200)}: ${JSON.stringify(example)}`);
}

function build(schema: TSchema, field: string): unknown {
  const sample = sampleOf(schema, field);
  if (sample !== undefined) return sample;
  if ('const' in schema) return schema.const;
  if ('enum' in schema && Array.isArray(schema.enum)) return schema.enum[0];
  const [variant] = schemasIn(schema, 'anyOf');
  if (variant !== undefined) return build(variant, field);
  const parts = schemasIn(schema, 'allOf');
  if (parts.length > 0) return Object.assign({}, ...parts.map((part) => build(part, field)));
  switch ('type' in schema ? schema.type : undefined) {
    case 'object':
      return buildObject(schema, field);
    case 'array':
      return 'items' in schema && isSchema(schema.items) ? [build(schema.items, field)] : [];
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

function sampleOf(schema: TSchema, field: string): unknown {
  const samples = Object.hasOwn(SAMPLE_VALUES, field) ? SAMPLE_VALUES[field] : undefined;
  return samples?.find((sample) => Check(schema, sample));
}

function buildObject(schema: TSchema, field: string): Record<string, unknown> {
  const properties = Object.entries(
    'properties' in schema && typeof schema.properties === 'object' ? (schema.properties ?? {}) : {},
  );
  const required = 'required' in schema && Array.isArray(schema.required) ? schema.required : [];
  const owner = properties.map(([name]) => OWNERS[name]).find((known) => known !== undefined);
  const fields = properties
    .map(([name, property]) => ({ name, property, known: fieldOf(owner, name) }))
    .filter(({ name, property, known }) => required.includes(name) || sampleOf(property, known) !== undefined)
    .map(({ name, property, known }) => [name, build(property, known)] as const);
  return { ...Object.fromEntries(fields), ...buildFreeNames(schema, field) };
}

/** The name under which there may be a sample. */
function fieldOf(owner: string | undefined, name: string): string {
  const owned = `${owner}.${name}`;
  return Object.hasOwn(SAMPLE_VALUES, owned) ? owned : name;
}

/** One entry of a record. */
function buildFreeNames(schema: TSchema, field: string): Record<string, unknown> {
  if (!('patternProperties' in schema)) return {};
  const [first] = Object.entries(schema.patternProperties ?? {});
  const name = SAMPLE_NAMES[field] ?? OTHER_SAMPLE_NAME;
  if (first === undefined || !isSchema(first[1]) || !new RegExp(first[0]).test(name)) return {};
  return { [name]: build(first[1], '') };
}

function schemasIn(schema: TSchema, keyword: 'anyOf' | 'allOf'): readonly TSchema[] {
  const list: unknown = Reflect.get(schema, keyword);
  return Array.isArray(list) ? list.filter(isSchema) : [];
}

function isSchema(value: unknown): value is TSchema {
  return typeof value === 'object' && value !== null;
}
