// What a principal may see of the registry and of its statistics. A template that a principal may not use does not exist for
// that principal, and neither do its instances.

import { mayDo, mayUse, type Principal } from '../domain/account.ts';
import { serverNotFound, templateNotFound } from '../domain/error-catalogue.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Gateway } from '../gateway.ts';
import type { ClientStats, GatewayStats, Server } from '../gateway-types.ts';

/** Names of the templates that the principal may use, sorted. */
export function visibleTemplates(gateway: Pick<Gateway, 'templates'>, principal: Principal): string[] {
  return gateway.templates().filter((template) => mayUse(principal, template));
}

/** The instances of these templates. */
export function visibleServers(gateway: Pick<Gateway, 'servers'>, principal: Principal): Server[] {
  return gateway.servers().filter(({ definition }) => mayUse(principal, definition.template));
}

/** One instance by its server id; SERVER_NOT_FOUND also when the principal may not use its template. */
export function visibleServer(gateway: Pick<Gateway, 'server'>, principal: Principal, id: string): Server {
  const shownId = id.slice(0, LIMITS.locCharacters);
  if (shownId !== id) throw serverNotFound(shownId);
  const server = gateway.server(id);
  if (!mayUse(principal, server.definition.template)) throw serverNotFound(id);
  return server;
}

/** TEMPLATE_NOT_FOUND for a template of a body that the principal may not use. Templates in paths are checked by middleware/authorize.ts. */
export function requireTemplate(principal: Principal, template: string): void {
  if (!mayUse(principal, template)) throw templateNotFound(template);
}

type Percentiles = 'p50Ms' | 'p95Ms' | 'p99Ms';

/** Percentiles and parked sessions are null for a viewer of some templates: they cannot be split by template. */
export type VisibleStats = Omit<GatewayStats, Percentiles | 'clients'> &
  Readonly<Record<Percentiles, number | null>> & {
    readonly clients: Omit<ClientStats, 'parkedSessions'> & { readonly parkedSessions: number | null };
  };

/**
 * All numbers for a viewer of all templates; else sums over the visible instances. A call that no instance took is in no
 * sum, because its template is unknown. The numbers of the health checker are those of the whole gateway.
 */
export function visibleStats(
  stats: GatewayStats,
  servers: readonly Server[],
  viewer: Principal,
): VisibleStats {
  if (viewer.templates === undefined) return stats;
  const { clients } = stats;
  const templates = [...clients.templates].filter(([template]) => mayUse(viewer, template));
  const metrics = servers.flatMap(({ definition }) => stats.instances[definition.serverId] ?? []);
  const totalRequests = metrics.reduce((sum, { requests }) => sum + requests, 0);
  /** A mean of means, weighted by requests. */
  const mean = (of: (one: (typeof metrics)[number]) => number): number =>
    totalRequests === 0 ? 0 : metrics.reduce((sum, one) => sum + of(one) * one.requests, 0) / totalRequests;
  return {
    ...stats,
    clients: { ...clients, parkedSessions: null, templates: new Map(templates) },
    totalRequests,
    activeConnections: servers.reduce((sum, { snapshot }) => sum + snapshot.inFlight, 0),
    errorRate: mean(({ errorRate }) => errorRate),
    averageResponseTimeMs: mean(({ averageResponseTimeMs }) => averageResponseTimeMs),
    p50Ms: null,
    p95Ms: null,
    p99Ms: null,
  };
}

/** True when the viewer may see how an instance is run: command, process, standard error. */
export function seesMachine(viewer: Principal): boolean {
  return mayDo(viewer, ['gateway:write']);
}
