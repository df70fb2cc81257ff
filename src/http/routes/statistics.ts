// Statistics: of the deployment at `/gateway/stats`, of this node at `/stats` (requests per server), and metrics for Prometheus.
// counts/traffic-counts.ts counts.

import Type, { type Static } from 'typebox';
import { STRATEGY_NAMES } from '../../balancing/strategies.ts';
import { DurationHistogram } from '../../counts/duration-histogram.ts';
import { sumOf as clientsOf, getOrInsert } from '../../counts/traffic-counts.ts';
import type { Principal } from '../../domain/accounts/account.ts';
import { compileShape } from '../../domain/errors/validation.ts';
import { countHealth, INSTANCE_STATES } from '../../domain/instances/instance.ts';
import { runsProgramsOf } from '../../domain/nodes/nodes.ts';
import { viewsByName } from '../../domain/time/task-groups.ts';
import { whenKnown } from '../../domain/time/when-known.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import type { GatewayStats, Server } from '../../gateway/gateway-types.ts';
import { METRICS_TYPE } from '../../metrics/prometheus.ts';
import { MissingNodes, missing } from '../all-nodes/deployment.ts';
import { HistoryRecord, historyOf } from '../all-nodes/history.ts';
import { merged, StatesByNode, sumOf } from '../all-nodes/states.ts';
import { flag, integer, NullableTime, named, nullable, number, rounded, text } from '../records/schemas.ts';
import { bytes, json } from '../replies/reply.ts';
import { defineRoute, type Route } from '../route.ts';
import type { Services } from '../services.ts';
import { type VisibleStats, visibleServers, visibleStats, visibleTemplates } from '../visible.ts';

const CountByServer = Type.Record(Type.String(), Type.Integer(), { propertyNames: text('everything-1') });

/** Body of GET /gateway/stats. Rates are 0 to 1, percentages 0 to 100, times as their names say. */
const StatisticsRecord = named('GatewayStatistics', {
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
type StatisticsRecord = Static<typeof StatisticsRecord>;

/**
 * What a node answers another one: `durations` are the buckets of the percentiles, without them for a caller that
 * gets no percentiles.
 */
const PeerStatistics = Type.Object({
  ...StatisticsRecord.properties,
  durations: Type.Optional(Type.Array(Type.Tuple([Type.Integer(), Type.Integer()]))),
});
type PeerStatistics = Static<typeof PeerStatistics>;
const PEER_STATISTICS = compileShape(PeerStatistics, 'body');

type Scheduler = Services['scheduler'];
type StatisticsServices = Pick<Services, 'gateway' | 'traffic' | 'deployment' | 'scheduler'>;

/**
 * The statistics of the deployment, or of this node alone if another node asks. In several turns of the event loop: there may be
 * thousands of instances.
 */
export async function statisticsOf(
  viewer: Principal,
  { gateway, traffic, deployment, scheduler }: StatisticsServices,
): Promise<StatisticsRecord> {
  const servers = await visibleServers(gateway, viewer, scheduler);
  const own = await statisticsRecord(gateway, viewer, servers, scheduler);
  const durations = () => (own.p50_ms === null ? {} : { durations: traffic.times.buckets });
  if (deployment === undefined) return { ...own, ...durations() };
  const question = { target: '/gateway/stats', principal: viewer, shape: PEER_STATISTICS };
  const { answers, partial } = await deployment.ask(question);
  if (answers.size === 0) return { ...own, ...missing(partial) };
  const parts = new Map<string, PeerStatistics>([[deployment.ownId, { ...own, ...durations() }], ...answers]);
  return { ...(await mergedStatistics(parts, own, servers, scheduler)), ...missing(partial) };
}

/** Counts are sums; settings and the time are those of this node, whose part is `own`. */
async function mergedStatistics(
  parts: ReadonlyMap<string, PeerStatistics>,
  own: StatisticsRecord,
  servers: readonly Server[],
  scheduler: Scheduler,
): Promise<StatisticsRecord> {
  const all = [...parts.values()];
  const sum = (of: (part: PeerStatistics) => number): number => sumOf(all, of);
  const totalRequests = sum((part) => part.total_requests);
  const mean = (of: (part: PeerStatistics) => number): number =>
    totalRequests === 0 ? 0 : sum((part) => of(part) * part.total_requests) / totalRequests;
  const times = all.reduce(
    (histogram, { durations = [] }) => histogram.withBuckets(durations),
    new DurationHistogram(),
  );
  const share = (of: number): number | null =>
    own.p50_ms === null ? null : percentile(times.percentile(of) ?? 0);
  const members = new Map<string, InstanceStatistics[]>();
  const instances = await byServer(servers, scheduler, ({ definition: { serverId, template }, runner }) => {
    const view = mergedInstance(parts, serverId, runner);
    if (view !== undefined) getOrInsert(members, template, () => []).push(view);
    return view;
  });
  // Calls at a program are those that its node counts: calls of other nodes are among them.
  const inFlight = await byServer(servers, scheduler, ({ definition: { serverId }, runner }) => {
    const countAt = (part: PeerStatistics) => part.load_balancer.active_connections[serverId] ?? 0;
    const [, counting] = [...parts].find(([node]) => runsProgramsOf(node, runner)) ?? [];
    return counting === undefined ? sum(countAt) : countAt(counting);
  });
  const templates = await viewsByName(
    Object.entries(own.templates),
    ([name]) => name,
    ([name, view]) => {
      const all = members.get(name) ?? [];
      const { total, healthy } = countHealth(all);
      return {
        ...view,
        total_instances: total,
        healthy_instances: healthy,
        sessions: sum((part) => part.templates[name]?.sessions ?? 0),
        own_processes: sumOf(all, (member) => member.own_processes),
      };
    },
    scheduler,
  );
  const checks = sum(({ health_checker: { total_checks } }) => total_checks);
  const passed = sum(({ health_checker: { successful_checks } }) => successful_checks);
  const lastChecks = all.flatMap(({ health_checker: { last_check_time } }) => last_check_time ?? []).sort();
  return {
    ...own,
    total_requests: totalRequests,
    active_connections: sumOf(Object.values(inFlight), (count) => count),
    error_rate: rounded(
      mean((part) => part.error_rate),
      4,
    ),
    average_response_time_ms: rounded(
      mean((part) => part.average_response_time_ms),
      3,
    ),
    p50_ms: share(0.5),
    p95_ms: share(0.95),
    p99_ms: share(0.99),
    templates,
    instances,
    sessions: {
      open: sum(({ sessions }) => sessions.open),
      max: sum(({ sessions }) => sessions.max),
      opened: sum(({ sessions }) => sessions.opened),
      lost: sum(({ sessions }) => sessions.lost),
      moved: sum(({ sessions }) => sessions.moved),
    },
    own_processes: {
      running: sumOf(Object.values(instances), (view) => view.own_processes),
      started: sum((part) => part.own_processes.started),
      lost: sum((part) => part.own_processes.lost),
    },
    load_balancer: {
      ...own.load_balancer,
      total_requests: totalRequests,
      requests_per_instance: await byServer(
        servers,
        scheduler,
        ({ definition }) => instances[definition.serverId]?.requests ?? 0,
      ),
      active_connections: inFlight,
    },
    health_checker: {
      ...own.health_checker,
      total_checks: checks,
      successful_checks: passed,
      failed_checks: checks - passed,
      success_rate_percent: checks === 0 ? 0 : rounded((passed / checks) * 100, 1),
      last_check_time: lastChecks.at(-1) ?? null,
    },
  };
}

type InstanceStatistics = StatisticsRecord['instances'][string];

function mergedInstance(
  parts: ReadonlyMap<string, PeerStatistics>,
  serverId: string,
  runner: string | undefined,
): InstanceStatistics | undefined {
  const [own, ...others] = [...parts].flatMap(([node, { instances }]) => {
    const seen = instances[serverId];
    return seen === undefined ? [] : [{ node, seen }];
  });
  if (own === undefined) return undefined;
  const all = [own, ...others].map(({ seen }) => seen);
  const requests = sumOf(all, (each) => each.requests);
  const mean = (of: (each: InstanceStatistics) => number): number =>
    requests === 0 ? 0 : sumOf(all, (each) => of(each) * each.requests) / requests;
  const { worst, nodes, counted } = merged([own, ...others], runner);
  return {
    healthy: worst.healthy,
    state: worst.state,
    ...nodes,
    requests,
    error_rate: rounded(
      mean((each) => each.error_rate),
      4,
    ),
    average_response_time_ms: rounded(
      mean((each) => each.average_response_time_ms),
      3,
    ),
    ejections: sumOf(all, (each) => each.ejections),
    is_ejected: all.some((each) => each.is_ejected),
    sessions: sumOf(all, (each) => each.sessions),
    own_processes: sumOf(counted, (each) => each.own_processes),
  };
}

async function statisticsRecord(
  gateway: Gateway,
  viewer: Principal,
  servers: readonly Server[],
  scheduler: Scheduler,
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
  const metrics = stats.instances[serverId];
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

function percentile(ms: number | null): number | null {
  return ms === null ? null : rounded(ms, 3);
}

/** Servers without a request are included, with 0. */
function requestsByServer(
  servers: readonly Server[],
  { instances }: Pick<GatewayStats, 'instances'>,
  scheduler: Scheduler,
) {
  return byServer(servers, scheduler, ({ snapshot }) => instances[snapshot.serverId]?.requests ?? 0);
}

function byServer<T>(
  servers: readonly Server[],
  scheduler: Scheduler,
  view: (server: Server) => T | undefined,
): Promise<Record<string, T>> {
  return viewsByName(servers, ({ definition }) => definition.serverId, view, scheduler);
}

const ServerStatistics = Type.Object({
  uptime: integer(3_600),
  total_requests: integer(1_200),
  active_servers: Type.Integer(),
  healthy_servers: Type.Integer(),
  load_balancer: Type.Object({
    strategy: Type.Enum([...STRATEGY_NAMES], { examples: ['least_connections'] }),
    total_requests: integer(1_200),
    requests_per_server: CountByServer,
  }),
});

export const statisticsRoutes: readonly Route[] = [
  defineRoute('GET', '/gateway/stats', {
    summary: 'Requests, times, balancing and health checks of the deployment',
    scope: 'gateway:read',
    isForwarded: true,
    answers: { 200: { description: 'Sums of all nodes, each since its start', body: StatisticsRecord } },
    handler: async ({ principal }, services) => {
      const body = await statisticsOf(principal, services);
      await services.scheduler.turn();
      return json(200, body);
    },
  }),
  defineRoute('GET', '/gateway/history', {
    summary: 'The load of the last hour, in steps of 10 s',
    scope: 'gateway:read',
    isForwarded: true,
    answers: {
      200: {
        description:
          'Totals of all templates at all nodes, oldest first; empty for a caller that may use some of them only. `sessions` needs the scope `admin`',
        body: HistoryRecord,
      },
    },
    handler: ({ principal }, services) =>
      whenKnown(historyOf(principal, services), (body) => json(200, body)),
  }),
  defineRoute('GET', '/stats', {
    summary: 'Requests per server at this node',
    scope: 'gateway:read',
    answers: { 200: { description: 'Numbers since the start', body: ServerStatistics } },
    handler: async ({ principal }, { gateway, scheduler }) => {
      const servers = await visibleServers(gateway, principal, scheduler);
      await scheduler.turn();
      const stats = visibleStats(gateway.stats(), servers, principal);
      return json(200, {
        uptime: stats.uptimeSeconds,
        total_requests: stats.totalRequests,
        active_servers: servers.filter(({ snapshot }) => snapshot.state !== 'stopped').length,
        healthy_servers: servers.filter(({ snapshot }) => snapshot.healthy).length,
        load_balancer: {
          strategy: gateway.policy.strategy,
          total_requests: stats.totalRequests,
          requests_per_server: await requestsByServer(servers, stats, scheduler),
        },
      });
    },
  }),
  defineRoute('GET', '/metrics', {
    summary: 'Metrics for Prometheus',
    scope: 'gateway:read',
    answers: {
      200: {
        description:
          'Counts since the start, and the present state, in the text format of Prometheus. A caller that is limited to templates gets only those of its templates.',
        types: ['text/plain'],
        body: Type.String({ examples: ['stagedoor_queue_length{template="everything"} 0\n'] }),
      },
    },
    handler: async ({ principal }, { metrics }) => ({
      ...bytes(200, await metrics.text(principal)),
      type: METRICS_TYPE,
    }),
  }),
];
