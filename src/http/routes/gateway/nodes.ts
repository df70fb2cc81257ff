// The nodes of the deployment, as this node sees them. One that is drained takes no new sessions: see
// Readiness.drain. A request about another node is forwarded to it. Source: ADR 161.

import Type, { type Static } from 'typebox';
import { cannotBeAsked } from '../../../cluster/channel/ask-peer.ts';
import { hasAllTemplates } from '../../../domain/accounts/rights.ts';
import { nodeNotFound, nodesNeedAllTemplates } from '../../../domain/errors/node-errors.ts';
import { foreignBy, NODE_STATES, type ShownNode } from '../../../domain/nodes/nodes.ts';
import { whenKnown } from '../../../domain/time/when-known.ts';
import { agreementOf, NodeWarnings } from '../../all-nodes/agreement.ts';
import { MissingNodes, partialField } from '../../all-nodes/other-members.ts';
import { flag, integer, nullableText, Time, text } from '../../records/schemas.ts';
import { type BytesReply, json } from '../../replies/reply.ts';
import { defineRoute, type HttpRoute, type RouteInput } from '../../routing/route.ts';
import { NodeParams } from '../../routing/route-params.ts';
import type { Services } from '../../services.ts';

const NodeRecord = Type.Object({
  id: text('local'),
  /** The id of one start of the node. */
  life: text('kX3v_0aB'),
  /** The address at which other nodes reach this one; null when there are no other nodes. */
  address: nullableText('http://127.0.0.1:40123'),
  version: text('0.1.0'),
  since: Time,
  programs: integer(12),
  in_flight: integer(3),
  draining: flag(false),
  state: Type.Enum([...NODE_STATES], { examples: ['live'] }),
});

export const nodeRoutes: readonly HttpRoute[] = [
  defineRoute('GET', '/gateway/nodes', {
    summary: 'The nodes that share the database, with those that ended within the last half hour',
    scope: 'gateway:read',
    answers: {
      200: {
        description: 'The node that answers comes first',
        body: Type.Object({
          nodes: Type.Array(NodeRecord),
          warnings: Type.Optional(NodeWarnings),
          partial: MissingNodes,
        }),
      },
    },
    handler: (_input, services) =>
      whenKnown(agreementOf(services), ({ warnings, partial }) => {
        const records = services.nodes().map(recordOf);
        return json(200, {
          nodes: records,
          ...(warnings.length === 0 ? {} : { warnings }),
          ...partialField(partial),
        });
      }),
  }),
  commandRoute(
    'drain',
    'Not ready, and no new sessions, until the node is resumed or starts again; other nodes continue its sessions without calls',
  ),
  commandRoute('resume', 'Ready, and new sessions again'),
];

function commandRoute(command: 'drain' | 'resume', summary: string): HttpRoute {
  return defineRoute('POST', `/gateway/nodes/:node_id/${command}`, {
    summary,
    scope: 'gateway:write',
    isForwarded: true,
    request: { params: NodeParams },
    answers: { 200: { description: 'The node as it is now', body: NodeRecord } },
    errors: ['NODE_UNAVAILABLE'],
    handler: (input, services) => {
      if (!hasAllTemplates(input.principal)) throw nodesNeedAllTemplates();
      const { readiness, nodes } = services;
      const [own, ...others] = nodes();
      if (own?.id !== input.params.node_id) return askOther(own, others, input, services);
      readiness[command]();
      return json(200, recordOf({ ...own, isDraining: readiness.isLeaving }));
    },
  });
}

/** Throws NOT_FOUND for an unknown id; NODE_UNAVAILABLE for a node that is not a live member, or does not answer. */
function askOther(
  own: ShownNode | undefined,
  others: readonly ShownNode[],
  input: RouteInput<Static<typeof NodeParams>, unknown, unknown>,
  { otherMembers }: Pick<Services, 'otherMembers'>,
): Promise<BytesReply> {
  const { node_id: id } = input.params;
  // The end of its former life may not be known here yet: the last start counts.
  const lives = others.filter((node) => node.id === id).sort((a, b) => (a.since < b.since ? 1 : -1));
  const node = lives.find(({ state }) => REACHABLE.has(state)) ?? lives[0];
  if (node === undefined) throw nodeNotFound(id);
  if (node.state === 'ended') throw cannotBeAsked(id, 'it has ended');
  const foreign = foreignBy(own, node);
  if (foreign !== undefined) throw cannotBeAsked(id, `it has another ${foreign}`);
  if (input.request.isForwarded) throw cannotBeAsked(id, 'another node was asked for it');
  return otherMembers.send(node, 'POST', input);
}

const REACHABLE: ReadonlySet<ShownNode['state']> = new Set(['live', 'slow', 'silent']);
function recordOf(node: ShownNode): Static<typeof NodeRecord> {
  const { id, life, address, version, since, programs, calls, isDraining, state } = node;
  return {
    id,
    life,
    address: address ?? null,
    version,
    since,
    programs,
    in_flight: calls,
    draining: isDraining,
    state,
  };
}
