// Records of instances, completed from the other nodes: the worst of the states; calls, sessions and
// processes of all nodes. Source: ADR 172.

import Type, { type Static } from 'typebox';
import type { Principal } from '../../domain/accounts/principal.ts';
import { compileShape } from '../../domain/errors/validation.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import type { Server } from '../../gateway/gateway-types.ts';
import { visibleTemplates } from '../callers/visible.ts';
import { HTTP_LIMITS } from '../http-limits.ts';
import {
  InstanceHealth,
  InstanceRecord,
  instanceHealth,
  instanceRecord,
} from '../records/instance-record.ts';
import { cursorOf } from '../records/schemas.ts';
import { type AtNode, merged, sumOf } from './instance-states.ts';
import type { OtherMembers } from './other-members.ts';

/** The name of the list of all servers, in its cursors. */
export const SERVER_LIST = 'servers';

export const ListedServer = Type.Object({
  ...InstanceRecord.properties,
  health: Type.Optional(InstanceHealth),
});
type ListedServer = Static<typeof ListedServer>;
const PEER_SERVERS = compileShape(Type.Array(ListedServer), 'body');

/** The states of the instances at the other nodes. */
export interface KnownInstances {
  /** Id of this node; empty where there are no others. */
  readonly ownId: string;
  /** The instances as other nodes see them, by server id. */
  readonly seen: ReadonlyMap<string, readonly AtNode<ListedServer>[]>;
  /** Nodes that did not answer. */
  readonly partial: readonly string[];
}

const NOTHING: KnownInstances = { ownId: '', seen: new Map(), partial: [] };

/** Asks the other nodes for their records of all instances, by pages of 1,000. No promise where there are no other nodes. */
export function knownAtPeers(
  gateway: Pick<Gateway, 'templates' | 'template'>,
  principal: Principal,
  otherMembers: OtherMembers,
): KnownInstances | Promise<KnownInstances> {
  if (otherMembers.isAlone) return NOTHING;
  const { ownId } = otherMembers;
  const visible = visibleTemplates(gateway, principal);
  const ids = visible
    .flatMap((template) => gateway.template(template).instances.map(({ serverId }) => serverId))
    .sort();
  const pages = Math.ceil(ids.length / HTTP_LIMITS.pageRecords);
  const asked = Array.from({ length: pages }, (_, page) => {
    const query = new URLSearchParams({ include_health: 'true', limit: String(HTTP_LIMITS.pageRecords) });
    const last = ids[page * HTTP_LIMITS.pageRecords - 1];
    if (last !== undefined) query.set('cursor', cursorOf(SERVER_LIST, last));
    return otherMembers.ask({ target: `/servers?${query}`, principal, shape: PEER_SERVERS });
  });
  return Promise.all(asked).then((parts) => {
    const all = parts.flatMap(({ answers }) =>
      [...answers].flatMap(([node, records]) => records.map((record) => ({ node, seen: record }))),
    );
    const partial = [...new Set(parts.flatMap((part) => part.partial))].sort();
    return { ownId, seen: Map.groupBy(all, ({ seen }) => seen.server_id), partial };
  });
}

/** The record of an instance for one viewer; with its health if `includesHealth`. */
export function recordWith(
  known: KnownInstances,
  server: Server,
  viewer: Principal,
  includesHealth = false,
): ListedServer {
  const own = { node: known.ownId, seen: instanceRecord(server, viewer) };
  const others = known.seen.get(own.seen.server_id) ?? [];
  const health = includesHealth ? { health: healthWith(known, server, viewer) } : {};
  if (others.length === 0) return { ...own.seen, ...health };
  const { worst, nodes, counted } = merged<ListedServer>([own, ...others], server.runner);
  const { health: _, ...record } = worst;
  return {
    ...record,
    ...nodes,
    in_flight: sumOf(counted, (each) => each.in_flight),
    sessions: sumOf([own, ...others], ({ seen }) => seen.sessions),
    own_processes: sumOf(counted, (each) => each.own_processes),
    ...health,
  };
}

/** The health of an instance for one viewer. */
export function healthWith(
  { ownId, seen }: KnownInstances,
  server: Server,
  viewer: Principal,
): Static<typeof InstanceHealth> {
  const own = { node: ownId, seen: instanceHealth(server, viewer) };
  const others = (seen.get(server.definition.serverId) ?? []).flatMap(({ node: other, seen }) =>
    seen.health === undefined ? [] : [{ node: other, seen: seen.health }],
  );
  if (others.length === 0) return own.seen;
  const { worst, nodes, counted } = merged([own, ...others], server.runner);
  return { ...worst, ...nodes, in_flight: sumOf(counted, (each) => each.in_flight) };
}
