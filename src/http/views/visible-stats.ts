// The numbers of a gateway as far as they belong to what a viewer may see.

import type { Principal } from '../../domain/account.ts';
import type { GatewayStats, Server } from '../../gateway-types.ts';
import { type VisibleClients, visibleClients } from './client-counts.ts';

type Percentiles = 'p50Ms' | 'p95Ms' | 'p99Ms';

/** Percentiles are null where they cannot be told without the calls of others. */
export type VisibleStats = Omit<GatewayStats, Percentiles | 'clients'> &
  Readonly<Record<Percentiles, number | null>> & { readonly clients: VisibleClients };

/**
 * All numbers for who may use all templates; else sums over their instances. A call that no instance took is in no sum:
 * it is not known whose it was. The health checker is the gateway's, whoever asks.
 */
export function visibleStats(
  stats: GatewayStats,
  servers: readonly Server[],
  viewer: Principal,
): VisibleStats {
  const clients = visibleClients(stats.clients, viewer);
  if (viewer.templates === undefined) return { ...stats, clients };
  const metrics = servers.flatMap(({ definition }) => stats.instances[definition.serverId] ?? []);
  const totalRequests = metrics.reduce((sum, { requests }) => sum + requests, 0);
  /** A mean of means, each weighing as much as it stands for. */
  const mean = (of: (one: (typeof metrics)[number]) => number): number =>
    totalRequests === 0 ? 0 : metrics.reduce((sum, one) => sum + of(one) * one.requests, 0) / totalRequests;
  return {
    ...stats,
    clients,
    totalRequests,
    activeConnections: servers.reduce((sum, { snapshot }) => sum + snapshot.inFlight, 0),
    errorRate: mean(({ errorRate }) => errorRate),
    averageResponseTimeMs: mean(({ averageResponseTimeMs }) => averageResponseTimeMs),
    p50Ms: null,
    p95Ms: null,
    p99Ms: null,
  };
}
