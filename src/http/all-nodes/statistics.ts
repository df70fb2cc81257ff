// The statistics of all nodes, added up. Source: ADR 172.

import Type, { type Static } from 'typebox';
import { DurationHistogram } from '../../counts/duration-histogram.ts';
import { getOrInsert } from '../../counts/traffic-counts.ts';
import type { Principal } from '../../domain/accounts/account.ts';
import { compileShape } from '../../domain/errors/validation.ts';
import { countHealth } from '../../domain/instances/instance.ts';
import { runsProgramsOf } from '../../domain/nodes/nodes.ts';
import { viewsByName } from '../../domain/time/task-groups.ts';
import type { Server } from '../../gateway/gateway-types.ts';
import { rounded } from '../records/schemas.ts';
import { byServer, percentile, StatisticsRecord, statisticsRecord } from '../records/statistics-record.ts';
import type { Services } from '../services.ts';
import { visibleServers } from '../visible.ts';
import { missing } from './deployment.ts';
import { merged, sumOf } from './states.ts';

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
