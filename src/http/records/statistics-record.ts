// The statistics of one node, as its callers see them.

import Type, { type Static } from 'typebox';
import { STRATEGY_NAMES } from '../../balancing/strategies.ts';
import { summedClients as clientsOf } from '../../counts/traffic-counts.ts';
import type { Principal } from '../../domain/accounts/principal.ts';
import { INSTANCE_STATES } from '../../domain/instances/instance.ts';
import { ownField } from '../../domain/json/json.ts';
import { viewsByName } from '../../domain/time/task-groups.ts';
import type { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import type { GatewayStats, Server } from '../../gateway/gateway-types.ts';
import { StatesByNode } from '../all-nodes/instance-states.ts';
import { MissingNodes } from '../all-nodes/other-members.ts';
import { type VisibleStats, visibleStats, visibleTemplates } from '../callers/visible.ts';
import { flag, integer, NullableTime, named, nullable, number, rounded, text } from './schemas.ts';

export const CountByServer = Type.Record(Type.String(), Type.Integer(), {
  propertyNames: text('everything-1'),
});

/** Body of GET /gateway/stats. Rates are 0 to 1, percentages 0 to 100, times as their names say. */
export const StatisticsRecord = named('GatewayStatistics', {
  uptime: integer(3_600),
  total_requests: integer(1_200),
  active_connections: Type.Integer(),
  error_rate: number(0.01),
  average_response_time_ms: number(2.5),
  p50_ms: nullable(Type.Number(), 2),
  p95_ms: nullable(Type.Number(), 6),
  p99_ms: nullable(Type.Number(), 12),
  templates: Type.Record(
    Type.String(),
    Type.Object({
      total_instances: Type.Integer(),
      healthy_instances: Type.Integer(),
      load_balancer_strategy: Type.Enum([...STRATEGY_NAMES], { examples: ['round_robin'] }),
      sessions: integer(3),
      own_processes: integer(1),
    }),
    { propertyNames: text('everything') },
  ),
  instances: Type.Record(
    Type.String(),
    Type.Object({
      healthy: Type.Boolean(),
      state: Type.Enum([...INSTANCE_STATES], { examples: ['healthy'] }),
      nodes: StatesByNode,
      requests: Type.Integer(),
      error_rate: number(0.01),
      average_response_time_ms: number(2.5),
      ejections: integer(0),
      is_ejected: flag(false),
      sessions: integer(3),
      own_processes: integer(1),
    }),
    { propertyNames: text('everything-1') },
  ),
  /** Sessions of all visible templates. */
  sessions: Type.Object({
    open: integer(12),
    max: integer(10_000),
    opened: integer(480),
    lost: integer(0),
    moved: integer(2),
  }),
  own_processes: Type.Object({ running: integer(4), started: integer(150), lost: integer(0) }),
  load_balancer: Type.Object({
    default_strategy: Type.Enum([...STRATEGY_NAMES], { examples: ['round_robin'] }),
    available_strategies: Type.Array(Type.String(), { examples: [['round_robin', 'least_connections']] }),
    total_requests: integer(1_200),
    requests_per_instance: CountByServer,
    active_connections: CountByServer,
  }),
  health_checker: Type.Object({
    running: flag(true),
    check_interval: number(30),
    timeout: number(30),
    total_checks: Type.Integer(),
    successful_checks: Type.Integer(),
    failed_checks: integer(0),
    success_rate_percent: number(100),
    last_check_time: NullableTime,
  }),
  partial: MissingNodes,
});
export type StatisticsRecord = Static<typeof StatisticsRecord>;

/** The statistics of these servers, and of the templates that the viewer may see. */
export async function statisticsRecord(
  gateway: Gateway,
  viewer: Principal,
  servers: readonly Server[],
  scheduler: TaskScheduler,
): Promise<StatisticsRecord> {
  const { policy } = gateway;
  await scheduler.turn();
  const stats = visibleStats(gateway.stats(), servers, viewer);
  const { clients, probes } = stats;
  const { sessions, ownProcesses } = clientsOf(clients.templates.values());
  const { open, ...sinceStart } = sessions;
  return {
    uptime: stats.uptimeSeconds,
    total_requests: stats.totalRequests,
    active_connections: stats.activeConnections,
    error_rate: rounded(stats.errorRate, 4),
    average_response_time_ms: rounded(stats.averageResponseTimeMs, 3),
    p50_ms: percentile(stats.p50Ms),
    p95_ms: percentile(stats.p95Ms),
    p99_ms: percentile(stats.p99Ms),
    templates: await viewsByName(
      visibleTemplates(gateway, viewer),
      (name) => name,
      (name) => (gateway.hasTemplate(name) ? templateStatistics(gateway, name, clients) : undefined),
      scheduler,
    ),
    instances: await byServer(servers, scheduler, (server) => instanceStatistics(server, stats)),
    sessions: { open, max: clients.maxSessions, ...sinceStart },
    own_processes: { ...ownProcesses },
    load_balancer: {
      default_strategy: policy.strategy,
      available_strategies: [...STRATEGY_NAMES],
      total_requests: stats.totalRequests,
      requests_per_instance: await requestsByServer(servers, stats, scheduler),
      active_connections: await byServer(servers, scheduler, ({ snapshot }) => snapshot.inFlight),
    },
    health_checker: {
      running: gateway.phase === 'running',
      check_interval: policy.healthIntervalMs / 1000,
      timeout: policy.probeTimeoutMs / 1000,
      total_checks: probes.total,
      successful_checks: probes.passed,
      failed_checks: probes.total - probes.passed,
      success_rate_percent: probes.total === 0 ? 0 : rounded((probes.passed / probes.total) * 100, 1),
      last_check_time: probes.lastAtMs === null ? null : new Date(probes.lastAtMs).toISOString(),
    },
  };
}

function templateStatistics(gateway: Gateway, template: string, clients: VisibleStats['clients']) {
  const { total, healthy } = gateway.countInstances(template);
  const counts = clients.templates.get(template);
  return {
    total_instances: total,
    healthy_instances: healthy,
    load_balancer_strategy: gateway.template(template).policy.strategy,
    sessions: counts?.sessions.open ?? 0,
    own_processes: counts?.ownProcesses.running ?? 0,
  };
}

function instanceStatistics({ snapshot, clients }: Server, stats: Pick<GatewayStats, 'instances'>) {
  const { serverId, healthy, state, ejection } = snapshot;
  const metrics = ownField(stats.instances, serverId);
  return {
    healthy,
    state,
    requests: metrics?.requests ?? 0,
    error_rate: rounded(metrics?.errorRate ?? 0, 4),
    average_response_time_ms: rounded(metrics?.averageResponseTimeMs ?? 0, 3),
    ejections: metrics?.ejections ?? 0,
    is_ejected: ejection !== null,
    sessions: clients.sessions,
    own_processes: clients.ownProcesses,
  };
}

/** The percentile in ms, as it is shown. */
export function percentile(ms: number | null): number | null {
  return ms === null ? null : rounded(ms, 3);
}

/** Servers without a request are included, with 0. */
export function requestsByServer(
  servers: readonly Server[],
  { instances }: Pick<GatewayStats, 'instances'>,
  scheduler: TaskScheduler,
) {
  return byServer(
    servers,
    scheduler,
    ({ snapshot }) => ownField(instances, snapshot.serverId)?.requests ?? 0,
  );
}

/** A value for each server, by its id. */
export function byServer<T>(
  servers: readonly Server[],
  scheduler: TaskScheduler,
  view: (server: Server) => T | undefined,
): Promise<Record<string, T>> {
  return viewsByName(servers, ({ definition }) => definition.serverId, view, scheduler);
}
