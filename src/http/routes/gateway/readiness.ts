// Liveness and readiness of the process, for its supervisor.

import Type from 'typebox';
import type { GatewayError } from '../../../domain/errors/errors.ts';
import { gatewayStarting, shuttingDown } from '../../../domain/errors/gateway-errors.ts';
import { nodeDraining } from '../../../domain/errors/node-errors.ts';
import { whenKnown } from '../../../domain/time/when-known.ts';
import { agreementOf, NodeWarnings } from '../../all-nodes/agreement.ts';
import { MissingNodes, partialField } from '../../all-nodes/other-members.ts';
import { errorReply } from '../../replies/error-reply.ts';
import { type BytesReply, json } from '../../replies/reply.ts';
import { defineRoute, type HttpRoute } from '../../routing/route.ts';
import type { Services } from '../../services.ts';

const WithWarnings = {
  /** The warnings of the node; present with `?verbose`. */
  warnings: Type.Optional(NodeWarnings),
  /** The nodes that did not answer; present with `?verbose`. */
  partial: MissingNodes,
};

/** The answer of `/livez`, also before there are routes. */
export const ALIVE: BytesReply = json(200, { status: 'alive' });

// These routes need no credentials, and do not depend on the database: a restart would not repair its failure.
export const livenessRoutes: readonly HttpRoute[] = [
  defineRoute('GET', '/livez', {
    summary: 'Whether the process is alive',
    scope: 'open',
    answers: {
      200: { description: 'The process is alive', body: Type.Object({ status: Type.Literal('alive') }) },
    },
    handler: () => ALIVE,
  }),
  defineRoute('GET', '/readyz', {
    summary: 'Whether requests may be sent here',
    scope: 'open',
    // Probes may add anything to the path.
    request: { query: Type.Object({ verbose: Type.Optional(Type.String()) }) },
    answers: {
      200: {
        description: 'Requests may be sent',
        body: Type.Object({ status: Type.Literal('ready'), ...WithWarnings }),
      },
      503: {
        description: 'The fields of an error, and the status',
        body: Type.Object({
          status: Type.Enum(['starting', 'draining', 'shutting down']),
          ...WithWarnings,
        }),
      },
    },
    errors: ['SHUTTING_DOWN', 'NODE_UNAVAILABLE', 'NO_HEALTHY_INSTANCE'],
    handler: ({ request, query }, services) => {
      if (query.verbose === undefined) return readinessOf(services, request.id);
      return whenKnown(agreementOf(services), ({ warnings, partial }) =>
        readinessOf(services, request.id, { warnings, ...partialField(partial) }),
      );
    },
  }),
];

/** The answer of `/readyz`. `more`: further fields. */
export function readinessOf(
  { gateway, readiness }: Pick<Services, 'gateway' | 'readiness'>,
  requestId: string,
  more: object = {},
): BytesReply {
  if (gateway.isReady) return json(200, { status: 'ready', ...more });
  if (readiness.isDraining) return refusal('draining', nodeDraining(), requestId, more);
  if (readiness.isLeaving || gateway.phase === 'closing')
    return refusal('shutting down', shuttingDown(), requestId, more);
  return startingReply(requestId, more);
}

/** The answer of `/readyz` during the start, and of every path before the accounts are loaded. */
export function startingReply(requestId: string, more: object = {}): BytesReply {
  return refusal('starting', gatewayStarting(), requestId, more);
}

function refusal(
  status: 'starting' | 'draining' | 'shutting down',
  error: GatewayError,
  requestId: string,
  more: object,
): BytesReply {
  return errorReply(error, requestId, { fields: { status, ...more } });
}
