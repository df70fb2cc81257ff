// The statistics of all nodes, added up. Source: ADR 172.

import Type, { type Static } from 'typebox';
import { DurationHistogram } from '../../counts/duration-histogram.ts';
import { getOrInsert } from '../../counts/traffic-counts.ts';
import type { Principal } from '../../domain/accounts/principal.ts';
import { compileShape } from '../../domain/errors/validation.ts';
import { countHealth } from '../../domain/instances/instance.ts';
import { ownField } from '../../domain/json/json.ts';
import { runsProgramsOf } from '../../domain/nodes/nodes.ts';
import { viewsByName } from '../../domain/time/task-groups.ts';
import type { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import type { Server } from '../../gateway/gateway-types.ts';
import { visibleServers } from '../callers/visible.ts';
import { rounded } from '../records/schemas.ts';
import { byServer, percentile, StatisticsRecord, statisticsRecord } from '../records/statistics-record.ts';
import type { Services } from '../services.ts';
import { merged, sumOf } from './instance-states.ts';
import { partialField } from './other-members.ts';

/**
 * The answer of a node to another one: `durations` are the buckets of the percentiles, without them for a caller that
 * gets no percentiles.
 */
const PeerStatistics = Type.Object({
  ...StatisticsRecord.properties,
  durations: Type.Optional(Type.Array(Type.Tuple([Type.Integer(), Type.Integer()]))),
});
type PeerStatistics = Static<typeof PeerStatistics>;
const PEER_STATISTICS = compileShape(PeerStatistics, 'body');

export type StatisticsServices = Pick<Services, 'gateway' | 'traffic' | 'otherMembers' | 'scheduler'>;

/** The statistics of the deployment. In several turns of the event loop: there may be thousands of instances. */
export async function statisticsOf(
  viewer: Principal,
  { gateway, traffic, otherMembers, scheduler }: StatisticsServices,
): Promise<StatisticsRecord> {
  const servers = await visibleServers(gateway, viewer, scheduler);
  const own = await statisticsRecord(gateway, viewer, servers, scheduler);
  const question = { target: '/gateway/stats', principal: viewer, shape: PEER_STATISTICS };
  const { answers, partial } = await otherMembers.ask(question);
  if (answers.size === 0) return { ...own, ...partialField(partial) };
  const parts = new Map([[otherMembers.ownId, withDurations(own, traffic)], ...answers]);
  return { ...(await mergedStatistics(parts, own, servers, scheduler)), ...partialField(partial) };
}

/** The statistics of this node, for another one. */
export async function ownStatistics(
  viewer: Principal,
  { gateway, traffic, scheduler }: Omit<StatisticsServices, 'otherMembers'>,
): Promise<PeerStatistics> {
  const servers = await visibleServers(gateway, viewer, scheduler);
  return withDurations(await statisticsRecord(gateway, viewer, servers, scheduler), traffic);
}

function withDurations(own: StatisticsRecord, { times }: StatisticsServices['traffic']): PeerStatistics {
  return own.p50_ms === null ? own : { ...own, durations: times.buckets };
}

type Parts = ReadonlyMap<string, PeerStatistics>;

/** The statistics of all nodes. Counts are sums; settings and the time are those of this node, whose part is `own`. */
async function mergedStatistics(
  parts: Parts,
  own: StatisticsRecord,
  servers: readonly Server[],
  scheduler: TaskScheduler,
): Promise<StatisticsRecord> {
  const all = [...parts.values()];
  const totalRequests = sumOf(all, (part) => part.total_requests);
  const members = new Map<string, InstanceStatistics[]>();
  const instances = await byServer(servers, scheduler, ({ definition: { serverId, template }, runner }) => {
    const view = mergedInstance(parts, serverId, runner);
    if (view !== undefined) getOrInsert(members, template, () => []).push(view);
    return view;
  });
  const underWay = await callsUnderWay(parts, servers, scheduler);
  return {
    ...own,
    total_requests: totalRequests,
    active_connections: sumOf(Object.values(underWay), (count) => count),
    ...meansOf(all, (part) => part.total_requests),
    ...(own.p50_ms === null ? {} : percentilesOf(all)),
    templates: await mergedTemplates(all, own, members, scheduler),
    instances,
    sessions: {
      open: sumOf(all, ({ sessions }) => sessions.open),
      max: sumOf(all, ({ sessions }) => sessions.max),
      opened: sumOf(all, ({ sessions }) => sessions.opened),
      lost: sumOf(all, ({ sessions }) => sessions.lost),
      moved: sumOf(all, ({ sessions }) => sessions.moved),
    },
    own_processes: {
      running: sumOf(Object.values(instances), (view) => view.own_processes),
      started: sumOf(all, (part) => part.own_processes.started),
      lost: sumOf(all, (part) => part.own_processes.lost),
    },
    load_balancer: {
      ...own.load_balancer,
      total_requests: totalRequests,
      requests_per_instance: await byServer(
        servers,
        scheduler,
        ({ definition }) => ownField(instances, definition.serverId)?.requests ?? 0,
      ),
      active_connections: underWay,
    },
    health_checker: { ...own.health_checker, ...mergedChecks(all) },
  };
}

/** The means of all, weighted by the requests of each. */
function meansOf<P extends Pick<StatisticsRecord, 'error_rate' | 'average_response_time_ms'>>(
  all: readonly P[],
  requestsOf: (part: P) => number,
): Pick<StatisticsRecord, 'error_rate' | 'average_response_time_ms'> {
  const requests = sumOf(all, requestsOf);
  const mean = (numberOf: (part: P) => number): number =>
    requests === 0 ? 0 : sumOf(all, (part) => numberOf(part) * requestsOf(part)) / requests;
  const errorRate = mean((part) => part.error_rate);
  const averageMs = mean((part) => part.average_response_time_ms);
  return { error_rate: rounded(errorRate, 4), average_response_time_ms: rounded(averageMs, 3) };
}

function percentilesOf(all: readonly PeerStatistics[]) {
  const add = (sum: DurationHistogram, { durations = [] }: PeerStatistics) => sum.withBuckets(durations);
  const times = all.reduce(add, new DurationHistogram());
  const at = (share: number) => percentile(times.percentile(share) ?? 0);
  return { p50_ms: at(0.5), p95_ms: at(0.95), p99_ms: at(0.99) };
}

/** The calls under way. Those at a program are counted by its node: calls of other nodes are among them. */
function callsUnderWay(
  parts: Parts,
  servers: readonly Server[],
  scheduler: TaskScheduler,
): Promise<Record<string, number>> {
  const all = [...parts];
  return byServer(servers, scheduler, ({ definition: { serverId }, runner }) => {
    const countAt = (part: PeerStatistics) => ownField(part.load_balancer.active_connections, serverId) ?? 0;
    const [, counting] = all.find(([node]) => runsProgramsOf(node, runner)) ?? [];
    return counting === undefined ? sumOf([...parts.values()], countAt) : countAt(counting);
  });
}

/** `members`: the instances of each template. */
function mergedTemplates(
  all: readonly PeerStatistics[],
  own: StatisticsRecord,
  members: ReadonlyMap<string, readonly InstanceStatistics[]>,
  scheduler: TaskScheduler,
): Promise<StatisticsRecord['templates']> {
  return viewsByName(
    Object.entries(own.templates),
    ([name]) => name,
    ([name, view]) => {
      const instances = members.get(name) ?? [];
      const { total, healthy } = countHealth(instances);
      return {
        ...view,
        total_instances: total,
        healthy_instances: healthy,
        sessions: sumOf(all, (part) => ownField(part.templates, name)?.sessions ?? 0),
        own_processes: sumOf(instances, (each) => each.own_processes),
      };
    },
    scheduler,
  );
}

function mergedChecks(all: readonly PeerStatistics[]) {
  const checkers = all.map((part) => part.health_checker);
  const total = sumOf(checkers, ({ total_checks }) => total_checks);
  const passed = sumOf(checkers, ({ successful_checks }) => successful_checks);
  const lastChecks = checkers.flatMap(({ last_check_time }) => last_check_time ?? []).sort();
  return {
    total_checks: total,
    successful_checks: passed,
    failed_checks: total - passed,
    success_rate_percent: total === 0 ? 0 : rounded((passed / total) * 100, 1),
    last_check_time: lastChecks.at(-1) ?? null,
  };
}

type InstanceStatistics = StatisticsRecord['instances'][string];

function mergedInstance(
  parts: Parts,
  serverId: string,
  runner: string | undefined,
): InstanceStatistics | undefined {
  const [own, ...others] = [...parts].flatMap(([node, { instances }]) => {
    const seen = ownField(instances, serverId);
    return seen === undefined ? [] : [{ node, seen }];
  });
  if (own === undefined) return undefined;
  const all = [own, ...others].map(({ seen }) => seen);
  const { worst, nodes, counted } = merged([own, ...others], runner);
  return {
    healthy: worst.healthy,
    state: worst.state,
    ...nodes,
    requests: sumOf(all, (each) => each.requests),
    ...meansOf(all, (each) => each.requests),
    ejections: sumOf(all, (each) => each.ejections),
    is_ejected: all.some((each) => each.is_ejected),
    sessions: sumOf(all, (each) => each.sessions),
    own_processes: sumOf(counted, (each) => each.own_processes),
  };
}
