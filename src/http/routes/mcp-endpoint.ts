// The routes of the MCP endpoint: of each template, under two paths, and of all templates of a caller.
// src/protocol handles the messages; the schemas here are for the API description. Source: MCP basic/transports;
// docs/reference/mcp.md.

import Type, { type TObject } from 'typebox';
import { EVENT_STREAM_TYPE, JSON_TYPE } from '../../domain/mcp/media-types.ts';
import { AnyObject, anyObject, named, text } from '../records/schemas.ts';
import { defineRoute, type HttpRoute } from '../routing/route.ts';
import { TemplateParams } from '../routing/route-params.ts';
import { serveMcp } from '../serve-mcp.ts';

const RpcVersion = Type.Literal('2.0');
const Id = Type.Union([Type.Integer(), Type.String()]);
const RpcError = Type.Object(
  { code: Type.Integer(), message: Type.String(), data: Type.Optional(Type.Unknown()) },
  { examples: [{ code: -32_001, message: 'Session not found. Initialize again.' }] },
);

const RpcMessage = Type.Object({
  jsonrpc: RpcVersion,
  id: Type.Optional(Id),
  method: Type.Optional(text('tools/list')),
  params: Type.Optional(AnyObject),
  result: Type.Optional(Type.Unknown()),
  error: Type.Optional(RpcError),
});

/** The first message of a client; all other messages need the session that it opens. */
const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'my-client', version: '1.0.0' },
  },
} as const;
/** Body of a POST; lists belong to revision 2025-03-26. The handler gets the unparsed bytes. */
const RpcMessages = Type.Unsafe<Buffer>(
  Type.Union([RpcMessage, Type.Array(RpcMessage)], { examples: [INITIALIZE] }),
);

const RpcAnswer = named('RpcAnswer', {
  jsonrpc: RpcVersion,
  id: Type.Union([Type.Integer(), Type.String(), Type.Null()], { examples: [1] }),
  result: Type.Optional(anyObject({ content: [{ type: 'text', text: 'Echo: hello' }] })),
  error: Type.Optional(RpcError),
});

const RpcAnswers = Type.Union([RpcAnswer, Type.Array(RpcAnswer)]);

/** A refusal. `id` is null where a client must not take it for the answer to a request. */
export const RpcRefusal = named('RpcRefusal', {
  jsonrpc: RpcVersion,
  id: Type.Union([Type.Integer(), Type.String(), Type.Null()], { examples: [1] }),
  error: RpcError,
});

const ENDPOINTS: readonly (readonly [path: string, named: { readonly params?: TObject }, what: string])[] = [
  ['/mcp/:template', { params: TemplateParams }, 'a template'],
  // The path that several other gateways use.
  ['/mcp/:template/mcp', { params: TemplateParams }, 'a template, under another path'],
  ['/mcp', {}, 'all templates of the caller'],
];

const SESSION_HEADERS = {
  'Mcp-Session-Id': 'Id of the session, from the answer to `initialize`. Not in revision 2026-07-28.',
  'MCP-Protocol-Version': 'The revision of the client.',
} as const;
const POST_HEADERS = {
  ...SESSION_HEADERS,
  'Mcp-Method': 'From revision 2026-07-28 on: the method of the request.',
  'Mcp-Name': 'From revision 2026-07-28 on: name of the tool or prompt, or URI of the resource.',
} as const;
const GET_HEADERS = {
  ...SESSION_HEADERS,
  'Last-Event-ID': 'Id of the last event that was read from an interrupted stream, which continues after it.',
} as const;

const INITIALIZE_ANSWER = {
  jsonrpc: '2.0',
  id: 1,
  result: {
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'mcp-servers/everything', version: '2.0.0' },
  },
} as const;

/** The id that the path of the `endpoint` event carries. */
const SseQuery = Type.Object({ sessionId: Type.Optional(Type.String()) });

const COMMON = {
  scope: 'tools:call',
  speaks: 'json-rpc',
  bodyKind: 'bytes',
  changesNothing: true,
} as const satisfies Partial<HttpRoute>;

const streamableRoutes: readonly HttpRoute[] = ENDPOINTS.flatMap(([path, named, what]) => {
  // Messages of HTTP+SSE for all templates use this path, because `messages` may be a template.
  const ofAll = path === '/mcp' ? { query: SseQuery } : {};
  return [
    defineRoute('POST', path, {
      ...COMMON,
      asksServers: true,
      summary: `Send an MCP message to ${what}`,
      request: { ...named, ...ofAll, body: RpcMessages },
      requestHeaders: POST_HEADERS,
      answers: {
        200: {
          description: 'The answers, or an event stream that ends with them',
          body: RpcAnswers,
          types: [JSON_TYPE, EVENT_STREAM_TYPE],
          headers: { 'Mcp-Session-Id': 'Id of the session that `initialize` opened' },
          example: INITIALIZE_ANSWER,
        },
        202: { description: 'Accepted; there is no answer' },
      },
      handler: (input, services) => serveMcp('POST', input, services),
    }),
    defineRoute('GET', path, {
      ...COMMON,
      summary: `Listen to ${what}`,
      request: named,
      requestHeaders: GET_HEADERS,
      answers: {
        200: {
          description:
            'Messages of the server, or those that follow an event: events named `message`, each with one JSON-RPC message. Without any of these headers, a stream of HTTP+SSE',
          body: RpcAnswers,
          types: [EVENT_STREAM_TYPE],
        },
      },
      handler: (input, services) => serveMcp('GET', input, services),
    }),
    defineRoute('DELETE', path, {
      ...COMMON,
      summary: `End a session with ${what}`,
      request: named,
      requestHeaders: SESSION_HEADERS,
      answers: { 200: { description: 'Ended' } },
      handler: (input, services) => serveMcp('DELETE', input, services),
    }),
  ];
});

const SSE_STREAM = {
  ...COMMON,
  answers: {
    200: {
      description:
        'The event `endpoint`, whose data is the path to POST messages to, then events named `message`, each with one JSON-RPC message',
      body: RpcAnswers,
      types: [EVENT_STREAM_TYPE],
    },
  },
} as const satisfies Partial<HttpRoute>;

/** HTTP+SSE: a stream for each path except `/mcp/{template}/mcp`. */
const sseRoutes: readonly HttpRoute[] = [
  defineRoute('GET', '/mcp/:template/sse', {
    ...SSE_STREAM,
    summary: 'Open a stream of HTTP+SSE to a template',
    request: { params: TemplateParams },
    handler: (input, services) => serveMcp('GET', input, services, { isSse: true }),
  }),
  defineRoute('GET', '/mcp/sse', {
    ...SSE_STREAM,
    unlessTemplate: 'sse',
    summary: 'Open a stream of HTTP+SSE to all templates of the caller',
    handler: (input, services) => serveMcp('GET', input, services, { isSse: true }),
  }),
  defineRoute('POST', '/mcp/:template/messages', {
    ...COMMON,
    asksServers: true,
    summary: 'Send a message of HTTP+SSE to a template',
    request: { params: TemplateParams, query: SseQuery, body: RpcMessages },
    answers: { 202: { description: 'Accepted; answers are sent on the stream' } },
    handler: (input, services) => serveMcp('POST', input, services, { isSse: true }),
  }),
];

export const mcpEndpointRoutes: readonly HttpRoute[] = [...sseRoutes, ...streamableRoutes];
