// The requests of MCP to a template over REST: its tools, resources and prompts. Source: MCP server/prompts, server/resources,
// server/tools and server/utilities/completion.

import Type, { type TSchema } from 'typebox';
import type { ErrorCode } from '../../domain/errors/errors.ts';
import { isJsonObject, type JsonObject } from '../../domain/json/json.ts';
import { eachField, LazyFields } from '../../domain/json/json-pieces.ts';
import { LIST_METHODS, type ListField } from '../../domain/mcp/mcp.ts';
import { AnyObject, anyObject, closed, Meta, named, text } from '../records/schemas.ts';
import { RESULT_TYPES, resultReply, streamReply } from '../replies/exchange-reply.ts';
import { listReply } from '../replies/list-reply.ts';
import { defineRoute, FROM_BACKEND, type HttpRoute } from '../routing/route.ts';
import { TemplateParams } from '../routing/route-params.ts';

const Parameters = Type.Object(
  {
    type: Type.Literal('object'),
    properties: Type.Record(
      Type.String(),
      Type.Object({ type: Type.Unknown(), description: Type.Unknown() }, { additionalProperties: true }),
    ),
  },
  {
    additionalProperties: true,
    examples: [
      {
        type: 'object',
        properties: { message: { type: 'string', description: 'Message to echo' } },
        required: ['message'],
      },
    ],
  },
);

/** Every field of MCP, with `description` and `parameters` added. */
const Tool = Type.Object({
  name: text('echo'),
  description: text('Echoes back the input string'),
  parameters: Parameters,
});
/** The warning about a list that has no end or too many items, or a view whose templates are missing or not up to date. */
const ListWarning = Type.String({ examples: ['The list ends early: its cursor repeats.'] });

const ToolListAnswer = named('ToolList', {
  tools: Type.Array(Tool),
  count: Type.Integer(),
  warning: Type.Optional(ListWarning),
});

const CallToolBody = closed({
  name: Type.String({ minLength: 1, examples: ['echo'] }),
  arguments: Type.Optional(anyObject({ message: 'hello' })),
  _meta: Meta,
});

const CallToolResult = Type.Object({
  content: Type.Optional(Type.Array(AnyObject, { examples: [[{ type: 'text', text: 'Echo: hello' }]] })),
  structuredContent: Type.Optional(Type.Unknown()),
  isError: Type.Optional(Type.Boolean()),
});

const DOCUMENT = 'demo://resource/static/document/features.md';

const Resource = anyObject({ uri: DOCUMENT, name: 'features.md', mimeType: 'text/markdown' });

const ResourceTemplate = anyObject({
  uriTemplate: 'demo://resource/dynamic/text/{resourceId}',
  name: 'Dynamic Text Resource',
});

const ReadResourceBody = closed({ uri: Type.String({ minLength: 1, examples: [DOCUMENT] }), _meta: Meta });

const Prompt = anyObject({ name: 'args-prompt', arguments: [{ name: 'city', required: true }] });

const GetPromptBody = closed(
  { name: Type.String({ minLength: 1 }), arguments: Type.Optional(AnyObject), _meta: Meta },
  { examples: [{ name: 'args-prompt', arguments: { city: 'Paris' } }] },
);

const CompleteBody = closed({
  ref: Type.Object(
    {
      type: Type.Enum(['ref/prompt', 'ref/resource']),
      name: Type.Optional(Type.String()),
      uri: Type.Optional(Type.String()),
    },
    { examples: [{ type: 'ref/prompt', name: 'completable-prompt' }] },
  ),
  argument: Type.Object({ name: text('department'), value: text('E') }),
  context: Type.Optional(AnyObject),
  _meta: Meta,
});

export const restCallRoutes: readonly HttpRoute[] = [
  requestRoute('tools/call', 'Call a tool on a healthy instance', {
    body: CallToolBody,
    result: CallToolResult,
    errors: ['TOOL_NOT_FOUND', 'INVALID_TOOL_ARGUMENTS', 'CONFIRMATION_REQUIRED'],
  }),
  listRoute('tools', { item: Tool, show: toolRecord, body: ToolListAnswer }),
  listRoute('resources', { item: Resource }),
  listRoute('resourceTemplates', {
    what: 'resource templates',
    feature: 'resources',
    item: ResourceTemplate,
  }),
  requestRoute('resources/read', 'Read a resource from a healthy instance', {
    body: ReadResourceBody,
    result: Type.Object({
      contents: Type.Array(anyObject({ uri: DOCUMENT, mimeType: 'text/markdown', text: '# Features' })),
    }),
    errors: ['RESOURCE_NOT_FOUND'],
  }),
  listRoute('prompts', { item: Prompt }),
  requestRoute('prompts/get', 'Get a prompt from a healthy instance', {
    body: GetPromptBody,
    result: Type.Object({
      messages: Type.Array(
        anyObject({ role: 'user', content: { type: 'text', text: "What's weather in Paris?" } }),
      ),
    }),
    errors: ['PROMPT_NOT_FOUND'],
  }),
  requestRoute('completion/complete', 'Complete an argument of a prompt or a resource template', {
    body: CompleteBody,
    result: Type.Object({ completion: anyObject({ values: ['Engineering'], total: 1, hasMore: false }) }),
    errors: ['PROMPT_NOT_FOUND'],
  }),
];

interface ListRouteOptions {
  readonly item: TSchema;
  /** What the list has, for its description. Default: the field. */
  readonly what?: string;
  /** The capability of servers with such a list. Default: the field. */
  readonly feature?: string;
  /** Makes the record of an item. Default: the item itself. */
  readonly show?: (value: JsonObject) => object;
  /** The schema of the answer. Default: an object with the items, their count, and a warning. */
  readonly body?: TSchema;
}

/** Answers a list of a template. */
function listRoute(field: ListField, options: ListRouteOptions): HttpRoute {
  const { item, what = field, feature = field, show = (value) => value } = options;
  const items = { [field]: Type.Array(item), count: Type.Integer(), warning: Type.Optional(ListWarning) };
  const { body = Type.Object(items) } = options;
  return defineRoute('GET', `/mcp/:template/${LIST_METHODS[field]}`, {
    summary: `List the ${what} of a template`,
    scope: ['gateway:read', 'tools:call'],
    asksServers: true,
    request: { params: TemplateParams },
    answers: {
      200: {
        description: `All ${what}, from one instance; none when its server offers no ${feature}`,
        body,
      },
    },
    errors: FROM_BACKEND,
    handler: ({ params, request }, services) =>
      listReply({ template: params.template, list: field, request, show }, services),
  });
}

/** Passes an MCP request on to a template. `errors`: in addition to those of every such request. */
function requestRoute(
  method: string,
  summary: string,
  route: { readonly body: TSchema; readonly result: TSchema; readonly errors: readonly ErrorCode[] },
): HttpRoute {
  return defineRoute('POST', `/mcp/:template/${method}`, {
    summary,
    scope: 'tools:call',
    asksServers: true,
    changesNothing: true,
    bodyKind: 'call',
    request: { params: TemplateParams, body: route.body },
    answers: {
      200: {
        description: 'The MCP result as the instance gave it',
        types: RESULT_TYPES,
        body: route.result,
      },
    },
    errors: [...FROM_BACKEND, ...route.errors],
    handler: ({ params: { template }, fields, request }, { gateway }) => {
      const asked = { method, params: fields };
      const reply = request.wantsEventStream ? streamReply : resultReply;
      return reply({ gateway, template }, asked, request);
    },
  });
}

/** The tool with `description` and `parameters`. */
function toolRecord(tool: JsonObject): LazyFields {
  const description = tool.description ?? '';
  return new LazyFields(() =>
    eachField({ ...tool, description, parameters: parametersOf(tool.inputSchema) }),
  );
}

/** The input schema, always as an object, every property with a type and a description. */
function parametersOf(inputSchema: unknown): LazyFields {
  const schema = isJsonObject(inputSchema) ? inputSchema : {};
  const properties = isJsonObject(schema.properties) ? schema.properties : {};
  const described = new LazyFields(() => describedIn(properties));
  return new LazyFields(() => eachField({ ...schema, type: 'object', properties: described }));
}

function* describedIn(properties: JsonObject): Generator<readonly [string, JsonObject]> {
  for (const [name, property] of eachField(properties)) {
    const known = isJsonObject(property) ? property : {};
    yield [name, { ...known, type: known.type ?? 'any', description: known.description ?? '' }];
  }
}
