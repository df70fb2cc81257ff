// Records of instances with what the other nodes know of them: the worst of the states; calls, sessions and
// processes of all nodes. Source: ADR 172.

import Type, { type Static } from 'typebox';
import type { Principal } from '../../domain/accounts/account.ts';
import { compileShape } from '../../domain/validation.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import type { Server } from '../../gateway/gateway-types.ts';
import { HTTP_LIMITS } from '../limits.ts';
import {
  InstanceHealth,
  InstanceRecord,
  instanceHealth,
  instanceRecord,
} from '../records/instance-record.ts';
import { cursorOf } from '../records/schemas.ts';
import { visibleTemplates } from '../visible.ts';
import type { AllNodes } from './all-nodes.ts';
import { merged, sumOf, type View } from './states.ts';

/** The name of the list of all servers, in its cursors. */
export const SERVER_LIST = 'servers';

export const ListedServer = Type.Object({
  ...InstanceRecord.properties,
  health: Type.Optional(InstanceHealth),
});
type ListedServer = Static<typeof ListedServer>;
const PEER_SERVERS = compileShape(Type.Array(ListedServer), 'body');

/** What the other nodes know of the instances. */
export interface KnownInstances {
  /** Id of this node; empty where there are no others. */
  readonly ownId: string;
  /** Views of other nodes, by server id. */
  readonly views: ReadonlyMap<string, readonly View<ListedServer>[]>;
  /** Nodes that did not answer. */
  readonly partial: readonly string[];
}

const NOTHING: KnownInstances = { ownId: '', views: new Map(), partial: [] };

/** Asks the other nodes for their records of all instances, by pages of 1,000. No promise where there are no other nodes. */
export function knownAtPeers(
  gateway: Pick<Gateway, 'templates' | 'template'>,
  principal: Principal,
  allNodes: AllNodes | undefined,
): KnownInstances | Promise<KnownInstances> {
  if (allNodes === undefined || allNodes.isAlone) return NOTHING;
  const { ownId } = allNodes;
  const visible = visibleTemplates(gateway, principal);
  const ids = visible
    .flatMap((template) => gateway.template(template).instances.map(({ serverId }) => serverId))
    .sort();
  const pages = Math.ceil(ids.length / HTTP_LIMITS.pageRecords);
  const asked = Array.from({ length: pages }, (_, page) => {
    const query = new URLSearchParams({ include_health: 'true', limit: String(HTTP_LIMITS.pageRecords) });
    const last = ids[page * HTTP_LIMITS.pageRecords - 1];
    if (last !== undefined) query.set('cursor', cursorOf(SERVER_LIST, last));
    return allNodes.ask({ target: `/servers?${query}`, principal, shape: PEER_SERVERS });
  });
  return Promise.all(asked).then((parts) => {
    const views = parts.flatMap(({ answers }) =>
      [...answers].flatMap(([node, records]) => records.map((view) => ({ node, view }))),
    );
    const partial = [...new Set(parts.flatMap((part) => part.partial))].sort();
    return { ownId, views: Map.groupBy(views, ({ view }) => view.server_id), partial };
  });
}

/** The record of an instance for one viewer; with its health if `includesHealth`. */
export function recordWith(
  known: KnownInstances,
  server: Server,
  viewer: Principal,
  includesHealth = false,
): ListedServer {
  const own = { node: known.ownId, view: instanceRecord(server, viewer) };
  const others = known.views.get(own.view.server_id) ?? [];
  const health = includesHealth ? { health: healthWith(known, server, viewer) } : {};
  if (others.length === 0) return { ...own.view, ...health };
  const { worst, nodes, counted } = merged<ListedServer>([own, ...others], server.runner);
  const { health: _, ...record } = worst;
  return {
    ...record,
    ...nodes,
    in_flight: sumOf(counted, (view) => view.in_flight),
    sessions: sumOf([own, ...others], ({ view }) => view.sessions),
    own_processes: sumOf(counted, (view) => view.own_processes),
    ...health,
  };
}

/** The health of an instance for one viewer. */
export function healthWith(
  { ownId, views }: KnownInstances,
  server: Server,
  viewer: Principal,
): Static<typeof InstanceHealth> {
  const own = { node: ownId, view: instanceHealth(server, viewer) };
  const others = (views.get(server.definition.serverId) ?? []).flatMap(({ node: other, view }) =>
    view.health === undefined ? [] : [{ node: other, view: view.health }],
  );
  if (others.length === 0) return own.view;
  const { worst, nodes, counted } = merged([own, ...others], server.runner);
  return { ...worst, ...nodes, in_flight: sumOf(counted, (view) => view.in_flight) };
}
