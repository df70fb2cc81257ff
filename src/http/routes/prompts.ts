// Prompts of a template: list them, get one, complete an argument.
// Source: MCP server/prompts and server/utilities/completion.

import Type from 'typebox';
import type { Route } from '../route.ts';
import { AnyObject, anyObject, CLOSED, Meta, text } from '../schemas.ts';
import { listRoute, requestRoute } from './resources.ts';

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
  listRoute('prompts', 'prompts/list', {
    what: 'prompts',
    item: anyObject({ name: 'args-prompt', arguments: [{ name: 'city', required: true }] }),
  }),
  requestRoute('prompts/get', 'Get a prompt from a healthy instance', {
    body: GetPromptBody,
    result: Type.Object({
      messages: Type.Array(
        anyObject({ role: 'user', content: { type: 'text', text: "What's weather in Paris?" } }),
      ),
    }),
    missing: 'PROMPT_NOT_FOUND',
  }),
  requestRoute('completion/complete', 'Complete an argument of a prompt or a resource template', {
    body: CompleteBody,
    result: Type.Object({ completion: anyObject({ values: ['Engineering'], total: 1, hasMore: false }) }),
    missing: 'PROMPT_NOT_FOUND',
  }),
];
