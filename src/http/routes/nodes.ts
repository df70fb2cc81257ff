// The nodes of the deployment, as this node sees them.

import Type, { type Static } from 'typebox';
import { NODE_STATES, type NodeView } from '../../domain/nodes.ts';
import { json } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { flag, integer, nullableText, Time, text } from '../schemas.ts';

const NodeRecord = Type.Object({
  id: text('gateway-1'),
  /** One start of the node. */
  life: text('kX3v_0aB'),
  /** For the other nodes; null when there are none. */
  address: nullableText('http://127.0.0.1:40123'),
  version: text('0.1.0'),
  since: Time,
  programs: integer(12),
  in_flight: integer(3),
  draining: flag(false),
  state: Type.Enum([...NODE_STATES], { examples: ['live'] }),
});

export const nodeRoutes: readonly Route[] = [
  defineRoute('GET', '/gateway/nodes', {
    summary: 'The nodes that share the database, with those that ended within the last half hour',
    scope: 'gateway:read',
    answers: {
      200: {
        description: 'The node that answers comes first',
        body: Type.Object({ nodes: Type.Array(NodeRecord) }),
      },
    },
    handler: (_input, { nodes }) => json(200, { nodes: (nodes?.() ?? []).map(recordOf) }),
  }),
];

function recordOf(node: NodeView): Static<typeof NodeRecord> {
  const { id, life, address, version, since, programs, calls, isDraining, state } = node;
  return {
    ...{ id, life, address: address ?? null, version, since, programs },
    ...{ in_flight: calls, draining: isDraining, state },
  };
}
