// Tools of a template: call one, list them.

import Type, { type Static } from 'typebox';
import { isJsonObject, type JsonObject } from '../../domain/json.ts';
import { exchangeReply, gatherList, RESULT_TYPES } from '../exchange-reply.ts';
import { TemplateParams } from '../parameters.ts';
import { json } from '../reply.ts';
import { defineRoute, FROM_BACKEND, type Route } from '../route.ts';
import { AnyObject, anyObject, CLOSED, Meta, text } from '../schemas.ts';

const Parameters = Type.Object(
  {
    type: Type.Literal('object'),
    properties: Type.Record(
      Type.String(),
      Type.Object({ type: Type.Unknown(), description: Type.Unknown() }, { additionalProperties: true }),
    ),
  },
  {
    examples: [
      {
        type: 'object',
        properties: { message: { type: 'string', description: 'Message to echo' } },
        required: ['message'],
      },
    ],
  },
);
type Parameters = Static<typeof Parameters>;

/** Every field of MCP, with `description` and `parameters` added. */
export const ToolList = Type.Object({
  tools: Type.Array(
    Type.Object({
      name: text('echo'),
      description: text('Echoes back the input string'),
      parameters: Parameters,
    }),
  ),
  count: Type.Integer(),
});

/** Adds `description` and `parameters` to each tool, and the count. */
export function toolList(tools: readonly JsonObject[]) {
  return { tools: tools.map(toolView), count: tools.length };
}

function toolView(tool: JsonObject) {
  return { ...tool, description: tool.description ?? '', parameters: parametersOf(tool.inputSchema) };
}

/** The input schema, always as an object, every property with a type and a description. */
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

const CallToolBody = Type.Object(
  {
    name: Type.String({ minLength: 1, examples: ['echo'] }),
    arguments: Type.Optional(anyObject({ message: 'hello' })),
    _meta: Meta,
  },
  CLOSED,
);

const CallToolResult = Type.Object({
  content: Type.Optional(Type.Array(AnyObject, { examples: [[{ type: 'text', text: 'Echo: hello' }]] })),
  structuredContent: Type.Optional(Type.Unknown()),
  isError: Type.Optional(Type.Boolean()),
});

export const toolRoutes: readonly Route[] = [
  defineRoute('POST', '/mcp/:template/tools/call', {
    summary: 'Call a tool on a healthy instance',
    scope: 'tools:call',
    reader: 'direct',
    request: { params: TemplateParams, body: CallToolBody },
    answers: {
      200: {
        description: 'The MCP result as the instance gave it',
        body: CallToolResult,
        types: RESULT_TYPES,
      },
    },
    errors: [...FROM_BACKEND, 'TOOL_NOT_FOUND', 'INVALID_TOOL_ARGUMENTS'],
    handler: ({ params, fields, request }, { gateway }) =>
      exchangeReply(gateway, params.template, { method: 'tools/call', params: fields }, request),
  }),
  defineRoute('GET', '/mcp/:template/tools/list', {
    summary: 'List the tools of a template',
    scope: ['gateway:read', 'tools:call'],
    request: { params: TemplateParams },
    answers: { 200: { description: 'All tools, from one instance', body: ToolList } },
    errors: FROM_BACKEND,
    handler: async ({ params, request }, { gateway }) => {
      const { items, instanceId } = await gatherList(gateway, params.template, 'tools', request);
      return json(200, toolList(items), { instanceId });
    },
  }),
];
