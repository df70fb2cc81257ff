// Tools of a template: call one, list them. Source: spec, "Endpoints", surface A; decisions, "Surface A bodies".

import Type from 'typebox';
import { exchangeReply, RESULT_TYPES } from '../exchange-reply.ts';
import { gatherList } from '../list-reply.ts';
import { TemplateParams } from '../path-params.ts';
import { json } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { FROM_BACKEND } from '../route-errors.ts';
import { AnyObject, CLOSED, Meta } from '../schemas.ts';
import { ToolList, toolList } from '../views/tool-list.ts';

const CallToolBody = Type.Object(
  { name: Type.String({ minLength: 1 }), arguments: Type.Optional(AnyObject), _meta: Meta },
  CLOSED,
);

const CallToolResult = Type.Object({
  content: Type.Optional(Type.Array(AnyObject)),
  structuredContent: Type.Optional(Type.Unknown()),
  isError: Type.Optional(Type.Boolean()),
});

export const toolRoutes: readonly Route[] = [
  defineRoute({
    method: 'POST',
    path: '/mcp/:template/tools/call',
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
  defineRoute({
    method: 'GET',
    path: '/mcp/:template/tools/list',
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
