// Prompts of a template: list them, get one, complete an argument.
// Source: MCP server/prompts and server/utilities/completion.

import Type from 'typebox';
import { exchangeReply, gatherList, RESULT_TYPES } from '../exchange-reply.ts';
import { TemplateParams } from '../parameters.ts';
import { json } from '../reply.ts';
import { defineRoute, FROM_BACKEND, type Route } from '../route.ts';
import { AnyObject, anyObject, CLOSED, Meta, text } from '../schemas.ts';

const GetPromptBody = Type.Object(
  { name: Type.String({ minLength: 1 }), arguments: Type.Optional(AnyObject), _meta: Meta },
  { ...CLOSED, examples: [{ name: 'args-prompt', arguments: { city: 'Paris' } }] },
);

const CompleteBody = Type.Object(
  {
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
  },
  CLOSED,
);

export const promptRoutes: readonly Route[] = [
  defineRoute({
    method: 'GET',
    path: '/mcp/:template/prompts/list',
    summary: 'List the prompts of a template',
    scope: ['gateway:read', 'tools:call'],
    request: { params: TemplateParams },
    answers: {
      200: {
        description: 'All prompts, from one instance; none when its server offers no prompts',
        body: Type.Object({
          prompts: Type.Array(
            anyObject({ name: 'args-prompt', arguments: [{ name: 'city', required: true }] }),
          ),
          count: Type.Integer(),
        }),
      },
    },
    errors: FROM_BACKEND,
    handler: async ({ params, request }, { gateway }) => {
      const { items, instanceId } = await gatherList(gateway, params.template, 'prompts', request);
      return json(200, { prompts: items, count: items.length }, { instanceId });
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/mcp/:template/prompts/get',
    summary: 'Get a prompt from a healthy instance',
    scope: 'tools:call',
    reader: 'direct',
    request: { params: TemplateParams, body: GetPromptBody },
    answers: {
      200: {
        description: 'The MCP result as the instance gave it',
        types: RESULT_TYPES,
        body: Type.Object({
          messages: Type.Array(
            anyObject({ role: 'user', content: { type: 'text', text: "What's weather in Paris?" } }),
          ),
        }),
      },
    },
    errors: [...FROM_BACKEND, 'PROMPT_NOT_FOUND'],
    handler: ({ params, fields, request }, { gateway }) =>
      exchangeReply(gateway, params.template, { method: 'prompts/get', params: fields }, request),
  }),
  defineRoute({
    method: 'POST',
    path: '/mcp/:template/completion/complete',
    summary: 'Complete an argument of a prompt or a resource template',
    scope: 'tools:call',
    reader: 'direct',
    request: { params: TemplateParams, body: CompleteBody },
    answers: {
      200: {
        description: 'The MCP result as the instance gave it',
        types: RESULT_TYPES,
        body: Type.Object({ completion: anyObject({ values: ['Engineering'], total: 1, hasMore: false }) }),
      },
    },
    errors: [...FROM_BACKEND, 'PROMPT_NOT_FOUND'],
    handler: ({ params, fields, request }, { gateway }) =>
      exchangeReply(gateway, params.template, { method: 'completion/complete', params: fields }, request),
  }),
];
