// How the numbers of a gateway look on surface A. Source: decisions, "Surface A bodies"; spec, "Statistics response".
// What is counted, and when, is actors/metrics.ts.

import Type, { type Static } from 'typebox';
import type { Principal } from '../../domain/account.ts';
import { STRATEGY_NAMES } from '../../domain/policy.ts';
import type { Gateway } from '../../gateway.ts';
import type { GatewayStats, Server } from '../../gateway-types.ts';
import { NullableText } from '../schemas.ts';
import { visibleServers, visibleTemplates } from '../visible.ts';
import { clientsOf, clientTotals, OwnProcessCounts, SessionCounts } from './client-counts.ts';
import { rounded } from './rounded.ts';
import { type VisibleStats, visibleStats } from './visible-stats.ts';

/** In ms; null for those who see a part of the gateway only. */
const Percentile = Type.Union([Type.Number(), Type.Null()]);
const CountByServer = Type.Record(Type.String(), Type.Integer());

/** Schema of GET /gateway/stats. Rates are 0 to 1, percentages 0 to 100, times as their names say. */
export const StatisticsView = Type.Object({
  uptime: Type.Integer(),
  total_requests: Type.Integer(),
  active_connections: Type.Integer(),
  error_rate: Type.Number(),
  average_response_time_ms: Type.Number(),
  p50_ms: Percentile,
  p95_ms: Percentile,
  p99_ms: Percentile,
  templates: Type.Record(
    Type.String(),
    Type.Object({
      total_instances: Type.Integer(),
      healthy_instances: Type.Integer(),
      load_balancer_strategy: Type.Enum([...STRATEGY_NAMES]),
      sessions: Type.Integer(),
      own_processes: Type.Integer(),
    }),
  ),
  instances: Type.Record(
    Type.String(),
    Type.Object({
      healthy: Type.Boolean(),
      requests: Type.Integer(),
      error_rate: Type.Number(),
      average_response_time_ms: Type.Number(),
      ejections: Type.Integer(),
      is_ejected: Type.Boolean(),
      sessions: Type.Integer(),
      own_processes: Type.Integer(),
    }),
  ),
  sessions: SessionCounts,
  own_processes: OwnProcessCounts,
  load_balancer: Type.Object({
    default_strategy: Type.Enum([...STRATEGY_NAMES]),
    available_strategies: Type.Array(Type.String()),
    total_requests: Type.Integer(),
    requests_per_instance: CountByServer,
    active_connections: CountByServer,
  }),
  health_checker: Type.Object({
    running: Type.Boolean(),
    check_interval: Type.Number(),
    timeout: Type.Number(),
    total_checks: Type.Integer(),
    successful_checks: Type.Integer(),
    failed_checks: Type.Integer(),
    success_rate_percent: Type.Number(),
    last_check_time: NullableText,
  }),
});
export type StatisticsView = Static<typeof StatisticsView>;

/**
 * Makes the answer for one viewer from what the gateway counted and what it runs now. Who may use some templates only
 * gets sums over their instances, and no percentiles: those cannot be taken apart.
 */
export function statisticsView(gateway: Gateway, viewer: Principal): StatisticsView {
  const servers = visibleServers(gateway, viewer);
  const stats = visibleStats(gateway.stats(), servers, viewer);
  return {
    uptime: stats.uptimeSeconds,
    total_requests: stats.totalRequests,
    active_connections: stats.activeConnections,
    error_rate: rounded(stats.errorRate, 4),
    average_response_time_ms: rounded(stats.averageResponseTimeMs, 3),
    p50_ms: percentile(stats.p50Ms),
    p95_ms: percentile(stats.p95Ms),
    p99_ms: percentile(stats.p99Ms),
    templates: templatesView(gateway, viewer, stats),
    instances: byServer(servers, (server) => instanceView(server, stats)),
    ...clientTotals(stats.clients),
    load_balancer: {
      default_strategy: gateway.policy.strategy,
      available_strategies: [...STRATEGY_NAMES],
      total_requests: stats.totalRequests,
      requests_per_instance: requestsByServer(servers, stats),
      active_connections: byServer(servers, ({ snapshot }) => snapshot.inFlight),
    },
    health_checker: healthCheckerView(gateway, stats),
  };
}

/** Exchanges by server id; every registered server is there, 0 included. Source: decisions, "Surface B bodies". */
export function requestsByServer(
  servers: readonly Server[],
  stats: Pick<GatewayStats, 'instances'>,
): Record<string, number> {
  return byServer(servers, ({ snapshot }) => stats.instances[snapshot.serverId]?.requests ?? 0);
}

function templatesView(
  gateway: Gateway,
  viewer: Principal,
  { clients }: Pick<VisibleStats, 'clients'>,
): StatisticsView['templates'] {
  return Object.fromEntries(
    visibleTemplates(gateway, viewer).map((template) => {
      const { total, healthy, strategy } = gateway.health(template);
      return [
        template,
        {
          total_instances: total,
          healthy_instances: healthy,
          load_balancer_strategy: strategy,
          ...clientsOf(clients, template),
        },
      ];
    }),
  );
}

function instanceView({ snapshot, clients }: Server, stats: Pick<GatewayStats, 'instances'>) {
  const { serverId, healthy, ejection } = snapshot;
  const metrics = stats.instances[serverId];
  return {
    healthy,
    requests: metrics?.requests ?? 0,
    error_rate: rounded(metrics?.errorRate ?? 0, 4),
    average_response_time_ms: rounded(metrics?.averageResponseTimeMs ?? 0, 3),
    ejections: metrics?.ejections ?? 0,
    is_ejected: ejection !== null,
    sessions: clients.sessions,
    own_processes: clients.ownProcesses,
  };
}

function percentile(ms: number | null): number | null {
  return ms === null ? null : rounded(ms, 3);
}

function healthCheckerView(
  gateway: Gateway,
  { probes }: Pick<GatewayStats, 'probes'>,
): StatisticsView['health_checker'] {
  return {
    running: gateway.accepting,
    check_interval: gateway.policy.healthIntervalMs / 1000,
    timeout: gateway.policy.probeTimeoutMs / 1000,
    total_checks: probes.total,
    successful_checks: probes.passed,
    failed_checks: probes.total - probes.passed,
    success_rate_percent: probes.total === 0 ? 0 : rounded((probes.passed / probes.total) * 100, 1),
    last_check_time: probes.lastAtMs === null ? null : new Date(probes.lastAtMs).toISOString(),
  };
}

function byServer<T>(servers: readonly Server[], view: (server: Server) => T): Record<string, T> {
  return Object.fromEntries(servers.map((server) => [server.definition.serverId, view(server)]));
}
