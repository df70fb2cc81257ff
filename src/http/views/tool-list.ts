// How the tools of a template look: every MCP field, and the two that the spec's tool list has besides.
// Source: spec, "Tool list response"; decisions, "Surface A bodies".

import Type, { type Static } from 'typebox';
import { isJsonObject, type JsonObject } from '../../domain/json.ts';

const Parameters = Type.Object({
  type: Type.Literal('object'),
  properties: Type.Record(
    Type.String(),
    Type.Object({ type: Type.Unknown(), description: Type.Unknown() }, { additionalProperties: true }),
  ),
});
type Parameters = Static<typeof Parameters>;

/** Schema of the tool list. */
export const ToolList = Type.Object({
  tools: Type.Array(Type.Object({ name: Type.String(), description: Type.String(), parameters: Parameters })),
  count: Type.Integer(),
});

/** Adds `description` and `parameters` to each tool, and the count. */
export function toolList(tools: readonly JsonObject[]) {
  return { tools: tools.map(toolView), count: tools.length };
}

function toolView(tool: JsonObject) {
  return { ...tool, description: tool.description ?? '', parameters: parametersOf(tool.inputSchema) };
}

/** The input schema as the spec shows it: always an object, every property with a type and a description. */
function parametersOf(inputSchema: unknown): Parameters {
  const schema = isJsonObject(inputSchema) ? inputSchema : {};
  const properties = isJsonObject(schema.properties) ? schema.properties : {};
  const described = Object.entries(properties).map(([name, property]) => {
    const known = isJsonObject(property) ? property : {};
    return [name, { ...known, type: known.type ?? 'any', description: known.description ?? '' }] as const;
  });
  // fromEntries defines properties instead of assigning them: a parameter called __proto__ stays a parameter.
  return { ...schema, type: 'object', properties: Object.fromEntries(described) };
}
