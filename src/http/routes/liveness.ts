// For whoever runs this process: is it alive, and may it get requests? Open, cheap, and blind to the database, whose
// absence no restart mends. Source: decisions, "Liveness".

import Type from 'typebox';
import { gatewayStarting, shuttingDown } from '../../domain/errors.ts';
import { json } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { errorBody } from '../views/error-body.ts';

export const livenessRoutes: readonly Route[] = [
  defineRoute({
    method: 'GET',
    path: '/livez',
    summary: 'Whether the process is alive',
    scope: 'open',
    answers: { 200: { description: 'It is', body: Type.Object({ status: Type.Literal('alive') }) } },
    errors: [],
    handler: () => json(200, { status: 'alive' }),
  }),
  defineRoute({
    method: 'GET',
    path: '/readyz',
    summary: 'Whether requests may be sent here',
    scope: 'open',
    answers: {
      200: { description: 'They may', body: Type.Object({ status: Type.Literal('ready') }) },
      503: {
        description: 'The fields of an error, and which of the two it is',
        body: Type.Object({ status: Type.Enum(['starting', 'shutting down']) }),
      },
    },
    errors: ['SHUTTING_DOWN', 'NO_HEALTHY_INSTANCE'],
    handler: ({ request }, { gateway }) => {
      if (gateway.accepting) return json(200, { status: 'ready' });
      const isStarting = gateway.phase === 'starting';
      return json(503, {
        status: isStarting ? 'starting' : 'shutting down',
        ...errorBody(isStarting ? gatewayStarting() : shuttingDown(), request.id),
      });
    },
  }),
];
