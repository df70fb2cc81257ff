// Liveness and readiness of the process, for its supervisor. They need no credentials and do not depend on the database, whose failure a
// restart does not repair.

import Type from 'typebox';
import { type GatewayError, gatewayStarting, shuttingDown } from '../../domain/errors.ts';
import { errorReply } from '../error-reply.ts';
import { type BytesReply, json } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';

export const livenessRoutes: readonly Route[] = [
  defineRoute('GET', '/livez', {
    summary: 'Whether the process is alive',
    scope: 'open',
    answers: {
      200: { description: 'The process is alive', body: Type.Object({ status: Type.Literal('alive') }) },
    },
    handler: () => json(200, { status: 'alive' }),
  }),
  defineRoute('GET', '/readyz', {
    summary: 'Whether requests may be sent here',
    scope: 'open',
    answers: {
      200: { description: 'Requests may be sent', body: Type.Object({ status: Type.Literal('ready') }) },
      503: {
        description: 'The fields of an error, and the status',
        body: Type.Object({ status: Type.Enum(['starting', 'shutting down']) }),
      },
    },
    errors: ['SHUTTING_DOWN', 'NO_HEALTHY_INSTANCE'],
    handler: ({ request }, { gateway }) => {
      if (gateway.accepting) return json(200, { status: 'ready' });
      if (gateway.phase === 'starting') return startingReply(request.id);
      return refusal('shutting down', shuttingDown(), request.id);
    },
  }),
];

/** The answer of `/readyz` during the start, and of every path before the accounts are loaded. */
export function startingReply(requestId: string): BytesReply {
  return refusal('starting', gatewayStarting(), requestId);
}

function refusal(status: 'starting' | 'shutting down', error: GatewayError, requestId: string): BytesReply {
  return errorReply(error, requestId, { fields: { status } });
}
