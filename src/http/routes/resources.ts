// Resources of a template: list them and their templates, read one.

import Type from 'typebox';
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
  defineRoute({
    method: 'GET',
    path: '/mcp/:template/resources/list',
    summary: 'List the resources of a template',
    scope: ['gateway:read', 'tools:call'],
    request: { params: TemplateParams },
    answers: {
      200: {
        description: 'All resources, from one instance; none when its server offers no resources',
        body: Type.Object({
          resources: Type.Array(anyObject({ uri: DOCUMENT, name: 'features.md', mimeType: 'text/markdown' })),
          count: Type.Integer(),
        }),
      },
    },
    errors: FROM_BACKEND,
    handler: async ({ params, request }, { gateway }) => {
      const { items, instanceId } = await gatherList(gateway, params.template, 'resources', request);
      return json(200, { resources: items, count: items.length }, { instanceId });
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/mcp/:template/resources/templates/list',
    summary: 'List the resource templates of a template',
    scope: ['gateway:read', 'tools:call'],
    request: { params: TemplateParams },
    answers: {
      200: {
        description: 'All resource templates, from one instance; none when its server offers no resources',
        body: Type.Object({
          resourceTemplates: Type.Array(
            anyObject({
              uriTemplate: 'demo://resource/dynamic/text/{resourceId}',
              name: 'Dynamic Text Resource',
            }),
          ),
          count: Type.Integer(),
        }),
      },
    },
    errors: FROM_BACKEND,
    handler: async ({ params, request }, { gateway }) => {
      const { items, instanceId } = await gatherList(gateway, params.template, 'resourceTemplates', request);
      return json(200, { resourceTemplates: items, count: items.length }, { instanceId });
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/mcp/:template/resources/read',
    summary: 'Read a resource from a healthy instance',
    scope: 'tools:call',
    reader: 'direct',
    request: { params: TemplateParams, body: ReadResourceBody },
    answers: {
      200: {
        description: 'The MCP result as the instance gave it',
        types: RESULT_TYPES,
        body: Type.Object({
          contents: Type.Array(anyObject({ uri: DOCUMENT, mimeType: 'text/markdown', text: '# Features' })),
        }),
      },
    },
    errors: [...FROM_BACKEND, 'RESOURCE_NOT_FOUND'],
    handler: ({ params, fields, request }, { gateway }) =>
      exchangeReply(gateway, params.template, { method: 'resources/read', params: fields }, request),
  }),
];
