// Makes the schemas of a tool acceptable to clients. They check the root of an input schema. They compile an
// output schema, and some reject the whole list if that fails; so one that may not compile is left out. The
// gateway compiles none: that can take seconds, and its backend would choose how many. Source: ADR 116.

import { isJsonObject, type JsonObject, type JsonValue } from '../../../domain/json/json.ts';
import { compiles } from './compilable-schema.ts';

/** The schema as an object schema, without the parts that clients do not accept; the same object if it has none. */
export function inputSchemaOf(schema: unknown): JsonObject {
  if (!isJsonObject(schema)) return { type: 'object' };
  const repaired = withoutBadParts(schema);
  return repaired.type === 'object' ? repaired : { ...repaired, type: 'object' };
}

/** The output schema, made compilable as `inputSchemaOf` does; undefined if it may not compile. */
export function outputSchemaOf(schema: unknown): JsonObject | undefined {
  if (!isJsonObject(schema)) return undefined;
  const repaired = withoutBadParts(schema);
  return compiles(repaired) ? repaired : undefined;
}

/**
 * The output schema for a client of the legacy era, for which it must be an object schema; undefined if it is for
 * something else. A schema without a type gets this one: `structuredContent` is always an object in that era.
 */
export function objectSchemaOf(schema: JsonObject): JsonObject | undefined {
  const { type } = schema;
  if (type === 'object') return schema;
  return type === undefined || (Array.isArray(type) && type.includes('object'))
    ? { ...schema, type: 'object' }
    : undefined;
}

/** Clients check these at the root of a schema. */
function withoutBadParts(schema: JsonObject): JsonObject {
  let repaired = schema;
  for (const [name, repair] of Object.entries(ROOT)) {
    const value = schema[name];
    if (value === undefined) continue;
    const acceptable = repair(value);
    if (acceptable === value) continue;
    const { [name]: _bad, ...others } = repaired;
    repaired = acceptable === undefined ? others : { ...repaired, [name]: acceptable };
  }
  return repaired;
}

const ROOT: Readonly<Record<string, (value: JsonValue) => JsonValue | undefined>> = {
  $schema: (value) => (typeof value === 'string' ? value : undefined),
  type: (value) => (value === null ? undefined : value),
  properties: (value) => (isJsonObject(value) ? ofObjects(value) : undefined),
  required: (value) => (Array.isArray(value) ? ofTexts(value) : undefined),
};

/** Some clients accept no `true` or `false` as the schema of a property. */
function ofObjects(properties: JsonObject): JsonObject {
  if (Object.values(properties).every(isJsonObject)) return properties;
  const repaired = Object.entries(properties).map(([name, schema]) => {
    const anything = schema === false ? { not: {} } : {};
    return [name, isJsonObject(schema) ? schema : anything] as const;
  });
  return Object.fromEntries(repaired); // defines properties instead of assigning them: one may be called __proto__
}

function ofTexts(names: JsonValue[]): JsonValue[] {
  const texts = names.filter((name) => typeof name === 'string');
  return texts.length === names.length ? names : texts;
}
