// Health as people and monitors ask for it: of one template, and of the gateway on both surfaces.
// Whether this process may get requests at all is routes/liveness.ts.

import Type from 'typebox';
import { databaseUnavailable } from '../../domain/errors.ts';
import { headersOf } from '../middleware/errors.ts';
import { TemplateParams } from '../path-params.ts';
import { json } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { CLOSED } from '../schemas.ts';
import { errorBody } from '../views/error-body.ts';
import {
  GatewayHealthView,
  gatewayHealthView,
  ServerHealthView,
  serverHealthView,
} from '../views/gateway-health.ts';
import { TemplateHealthView, templateHealthView } from '../views/template-health.ts';

export const healthRoutes: readonly Route[] = [
  defineRoute({
    method: 'GET',
    path: '/mcp/:template/health',
    summary: 'Health of a template and its instances',
    scope: 'gateway:read',
    request: {
      params: TemplateParams,
      query: Type.Object({ format: Type.Optional(Type.Enum(['object', 'array'])) }, CLOSED),
    },
    answers: { 200: { description: 'Counts, and each instance', body: TemplateHealthView } },
    errors: ['TEMPLATE_NOT_FOUND'],
    handler: ({ params, query, principal }, { gateway }) => {
      const health = gateway.health(params.template);
      const { instances } = gateway.template(params.template);
      return json(200, templateHealthView(health, instances, query.format ?? 'object', principal));
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/gateway/health',
    summary: 'Health of the gateway and its instances',
    scope: 'open',
    answers: { 200: { description: 'Status and counts', body: GatewayHealthView } },
    errors: [],
    handler: async (_input, { gateway, build }) =>
      json(200, gatewayHealthView(gateway, await gateway.databaseStatus(), build)),
  }),
  defineRoute({
    method: 'GET',
    path: '/health',
    summary: 'Health of the gateway and its database',
    scope: 'open',
    answers: {
      200: { description: 'The database answers', body: ServerHealthView },
      503: {
        description: 'The database does not answer: the same with the fields of an error',
        body: ServerHealthView,
      },
    },
    errors: ['DATABASE_UNAVAILABLE'],
    handler: async ({ request }, { gateway }) => {
      const health = serverHealthView(gateway, await gateway.databaseStatus());
      if (health.database === 'connected') return json(200, health);
      // It is no refusal, so it does not leave as an error: everything else in it is true.
      const error = databaseUnavailable(undefined);
      return json(503, { ...health, ...errorBody(error, request.id) }, { headers: headersOf(error) });
    },
  }),
];
