// Resources of a template: list them and their templates, read one.

import Type, { type TSchema } from 'typebox';
import type { ErrorCode } from '../../domain/errors.ts';
import type { ListField } from '../../domain/mcp.ts';
import { exchangeReply, gatherList, RESULT_TYPES } from '../exchange-reply.ts';
import { TemplateParams } from '../parameters.ts';
import { json } from '../reply.ts';
import { defineRoute, FROM_BACKEND, type Route } from '../route.ts';
import { anyObject, CLOSED, Meta } from '../schemas.ts';

const DOCUMENT = 'demo://resource/static/document/features.md';

const ReadResourceBody = Type.Object(
  { uri: Type.String({ minLength: 1, examples: [DOCUMENT] }), _meta: Meta },
  CLOSED,
);

export const resourceRoutes: readonly Route[] = [
  listRoute('resources', 'resources/list', {
    what: 'resources',
    item: anyObject({ uri: DOCUMENT, name: 'features.md', mimeType: 'text/markdown' }),
  }),
  listRoute('resourceTemplates', 'resources/templates/list', {
    what: 'resource templates',
    offered: 'resources',
    item: anyObject({
      uriTemplate: 'demo://resource/dynamic/text/{resourceId}',
      name: 'Dynamic Text Resource',
    }),
  }),
  requestRoute('resources/read', 'Read a resource from a healthy instance', {
    body: ReadResourceBody,
    result: Type.Object({
      contents: Type.Array(anyObject({ uri: DOCUMENT, mimeType: 'text/markdown', text: '# Features' })),
    }),
    missing: 'RESOURCE_NOT_FOUND',
  }),
];

/** Answers a whole list of a template. */
export function listRoute(
  field: Exclude<ListField, 'tools'>,
  method: string,
  {
    what,
    offered = what,
    item,
  }: { readonly what: string; readonly offered?: string; readonly item: TSchema },
): Route {
  return defineRoute('GET', `/mcp/:template/${method}`, {
    summary: `List the ${what} of a template`,
    scope: ['gateway:read', 'tools:call'],
    request: { params: TemplateParams },
    answers: {
      200: {
        description: `All ${what}, from one instance; none when its server offers no ${offered}`,
        body: Type.Object({ [field]: Type.Array(item), count: Type.Integer() }),
      },
    },
    errors: FROM_BACKEND,
    handler: async ({ params, request }, { gateway }) => {
      const { items, instanceId } = await gatherList(gateway, params.template, field, request);
      return json(200, { [field]: items, count: items.length }, { instanceId });
    },
  });
}

/** Passes a request of MCP on to a template. `missing`: the error for what its server does not have. */
export function requestRoute(
  method: string,
  summary: string,
  {
    body,
    result,
    missing,
  }: { readonly body: TSchema; readonly result: TSchema; readonly missing: ErrorCode },
): Route {
  return defineRoute('POST', `/mcp/:template/${method}`, {
    summary,
    scope: 'tools:call',
    reader: 'direct',
    request: { params: TemplateParams, body },
    answers: {
      200: { description: 'The MCP result as the instance gave it', types: RESULT_TYPES, body: result },
    },
    errors: [...FROM_BACKEND, missing],
    handler: ({ params, fields, request }, { gateway }) =>
      exchangeReply(gateway, params.template, { method, params: fields }, request),
  });
}
