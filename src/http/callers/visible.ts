// The part of the registry and of the statistics that a principal may see. A template that a principal may not use does not exist
// for that principal, and neither do its instances.

import { mayDo, type Principal } from '../../domain/accounts/principal.ts';
import { hasAllTemplates, mayUse } from '../../domain/accounts/rights.ts';
import { serverNotFound, templateNotFound } from '../../domain/errors/registry-errors.ts';
import { eachInGroups } from '../../domain/time/task-groups.ts';
import type { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import type { GatewayStats, Server } from '../../gateway/gateway-types.ts';

/** Sorted names of the templates that the principal may use. */
export function visibleTemplates(gateway: Pick<Gateway, 'templates'>, principal: Principal): string[] {
  return gateway.templates().filter((template) => mayUse(principal, template));
}

/** The instances that the principal may see, read in several turns of the event loop: there may be thousands. */
export async function visibleServers(
  gateway: Pick<Gateway, 'templates' | 'eachServer'>,
  principal: Principal,
  scheduler: TaskScheduler,
): Promise<Server[]> {
  const servers: Server[] = [];
  const each = gateway.eachServer(visibleTemplates(gateway, principal));
  await eachInGroups(each, (server) => servers.push(server), scheduler);
  return servers;
}

/** One instance by its server id; SERVER_NOT_FOUND also when the principal may not use its template. */
export function visibleServer(gateway: Pick<Gateway, 'server'>, principal: Principal, id: string): Server {
  const server = gateway.server(id);
  if (!mayUse(principal, server.definition.template)) throw serverNotFound(id);
  return server;
}

/**
 * Throws TEMPLATE_NOT_FOUND for a template of a body that the principal may not use. Templates in paths are checked by
 * middleware/authorize.ts.
 */
export function requireRightTo(principal: Principal, template: string): void {
  if (!mayUse(principal, template)) throw templateNotFound(template);
}

type Percentiles = 'p50Ms' | 'p95Ms' | 'p99Ms';

/**
 * The statistics that one viewer may see. Percentiles are null for a viewer of some templates: they cannot be split by template.
 */
export type VisibleStats = Omit<GatewayStats, Percentiles> & Readonly<Record<Percentiles, number | null>>;

/**
 * All numbers for a viewer of all templates. Other viewers get sums over the visible instances, without calls that
 * reached no instance, because their template is unknown, and the health checker's numbers for the whole gateway.
 */
export function visibleStats(
  stats: GatewayStats,
  servers: readonly Server[],
  viewer: Principal,
): VisibleStats {
  if (hasAllTemplates(viewer)) return stats;
  const { clients } = stats;
  const templates = [...clients.templates].filter(([template]) => mayUse(viewer, template));
  const ids = new Set(servers.map(({ definition }) => definition.serverId));
  const metrics = Object.entries(stats.instances).flatMap(([id, counts]) => (ids.has(id) ? counts : []));
  const totalRequests = metrics.reduce((sum, { requests }) => sum + requests, 0);
  const mean = (numberOf: (instance: (typeof metrics)[number]) => number): number =>
    totalRequests === 0
      ? 0
      : metrics.reduce((sum, instance) => sum + numberOf(instance) * instance.requests, 0) / totalRequests;
  return {
    ...stats,
    clients: { ...clients, templates: new Map(templates) },
    totalRequests,
    activeConnections: servers.reduce((sum, { snapshot }) => sum + snapshot.inFlight, 0),
    errorRate: mean(({ errorRate }) => errorRate),
    averageResponseTimeMs: mean(({ averageResponseTimeMs }) => averageResponseTimeMs),
    p50Ms: null,
    p95Ms: null,
    p99Ms: null,
  };
}

/** True when the viewer may see commands, processes and standard error of instances. */
export function seesMachine(viewer: Principal): boolean {
  return mayDo(viewer, ['gateway:write']);
}
