// TABLE of all metrics of the gateway itself: name, kind, labels, and the source of the numbers. docs/reference/metrics.md is
// generated from it. Names and units follow the conventions of Prometheus and OpenMetrics. The registry and catalogues bound the
// labels, which never name a principal or an argument. `instance_id`, because Prometheus uses `instance` for the gateway.

import type { KeeperCounts } from '../actors/sessions/rows/session-keeper.ts';
import type { BucketCounts } from '../counts/bucket-counts.ts';
import type { ClusterCounts } from '../counts/cluster-counts.ts';
import type { InstanceCounts, TemplateCounts, TrafficCounts } from '../counts/traffic-counts.ts';
import type { ErrorCode } from '../domain/errors/errors.ts';
import { INSTANCE_STATES, type InstanceSnapshot } from '../domain/instances/instance.ts';
import { API_VERSION, VERSION } from '../domain/version.ts';
import type { TemplateSnapshot } from '../gateway/gateway-types.ts';

export interface MetricsReading {
  readonly templates: readonly TemplateSnapshot[];
  readonly traffic: Pick<TrafficCounts, 'isRegistryCurrent' | 'instance' | 'template'>;
  readonly http: { statuses: ReadonlyMap<number, number>; errors: ReadonlyMap<ErrorCode, number> };
  readonly isDatabaseConnected: boolean;
  /** The counts of sessions that outlive the gateway; undefined where none do. */
  readonly kept: KeeperCounts | undefined;
  /** The counts between nodes; undefined without other nodes. */
  readonly cluster: ClusterCounts | undefined;
}

type Labels = Readonly<Record<string, string>>;

/** One line, or the lines of one histogram. */
type Series<V> = readonly [labels: Labels, value: V];

interface MetricBase<V> {
  readonly name: string;
  /** The help text: a sentence without a full stop. */
  readonly help: string;
  readonly labels: readonly string[];
  /** Reads the series one by one when they are needed: there may be thousands of instances. */
  readonly read: (reading: MetricsReading) => Iterable<Series<V>>;
}

export type Metric =
  | (MetricBase<number> & { readonly kind: 'counter' | 'gauge' })
  | (MetricBase<BucketCounts> & { readonly kind: 'histogram' });

export const METRICS: readonly Metric[] = [
  {
    kind: 'counter',
    name: 'stagedoor_requests_total',
    help: 'Requests that ended, by outcome: result, tool_error, error (JSON-RPC), failed (no answer), refused, cancelled',
    ...ofRequests(({ count }) => count),
  },
  {
    kind: 'histogram',
    name: 'stagedoor_request_duration_seconds',
    help: 'Time from the arrival of a request to its end, with all waits and attempts',
    ...ofRequests((times) => times),
  },
  {
    kind: 'counter',
    name: 'stagedoor_request_failures_total',
    help: 'Requests that ended without an answer from a server, by error code',
    ...ofTemplates(['code'], ({ failures }) => labelled('code', failures)),
  },
  {
    kind: 'counter',
    name: 'stagedoor_request_retries_total',
    help: 'Retried attempts, by the error code that caused the retry',
    ...ofTemplates(['code'], ({ retries }) => labelled('code', retries)),
  },
  {
    kind: 'counter',
    name: 'stagedoor_view_requests_total',
    help: 'Requests that came through a view and ended, by outcome; they are in the other metrics, too',
    ...ofTemplates(['view', 'outcome'], ({ views }) =>
      [...views].flatMap(([view, outcomes]) =>
        Array.from(outcomes, ([outcome, count]): Series<number> => [{ view, outcome }, count]),
      ),
    ),
  },
  {
    kind: 'gauge',
    name: 'stagedoor_queue_length',
    help: 'Requests that wait because all instances are at capacity',
    labels: ['template'],
    read: ({ templates }) => templates.map(({ template, queued }) => [{ template }, queued]),
  },
  {
    kind: 'histogram',
    name: 'stagedoor_queue_wait_seconds',
    help: 'Time from the arrival of a request until it was sent to its first instance, or given up',
    ...ofTemplates([], ({ waits }) => [[{}, waits]]),
  },
  {
    kind: 'gauge',
    name: 'stagedoor_instances',
    help: 'Instances that run on this node, by state',
    labels: ['template', 'state'],
    read: ({ templates }) =>
      templates.flatMap(({ template, instances }) => statesOf(template, instances.filter(runsHere))),
  },
  {
    kind: 'gauge',
    name: 'stagedoor_instance_up',
    help: '1 while the instance is healthy, else 0',
    ...ofInstances(({ healthy }) => Number(healthy)),
  },
  {
    kind: 'counter',
    name: 'stagedoor_instance_ejections_total',
    help: 'How often the instance was ejected',
    ...ofInstances((_, { ejections }) => ejections),
  },
  {
    kind: 'counter',
    name: 'stagedoor_instance_restarts_total',
    help: 'Restarts of the program or the connection, by reason: failure, request',
    ...ofEachInstance('reason', ({ restarts }) => Object.entries(restarts)),
  },
  {
    kind: 'counter',
    name: 'stagedoor_instance_probes_total',
    help: 'Health checks, by result: passed, failed',
    ...ofEachInstance('result', ({ probes }) => Object.entries(probes)),
  },
  {
    kind: 'counter',
    name: 'stagedoor_instance_requests_total',
    help: 'Requests that ended at the instance, by outcome; a retried one counts at each of its instances',
    ...ofEachInstance('outcome', ({ exchanges }) => exchanges),
  },
  {
    kind: 'gauge',
    name: 'stagedoor_instance_requests_in_flight',
    help: 'Requests at the instance now, and calls between two rounds that are reserved for it',
    ...ofInstances(({ inFlight }) => inFlight),
  },
  {
    kind: 'gauge',
    name: 'stagedoor_instance_latency_seconds',
    help: 'Moving average of the time to an answer; absent before the first one',
    ...ofInstances(({ latencyMs }) => (latencyMs === null ? undefined : latencyMs / 1_000)),
  },
  {
    kind: 'gauge',
    name: 'stagedoor_instance_score',
    help: 'Health score from 0 to 100, which the strategy health_based uses',
    ...ofInstances(({ score }) => score),
  },
  {
    kind: 'gauge',
    name: 'stagedoor_sessions',
    help: 'Open sessions of MCP clients',
    ...ofClients(({ sessions }) => sessions.open),
  },
  {
    kind: 'counter',
    name: 'stagedoor_sessions_lost_total',
    help: 'Sessions that ended because no instance could continue them',
    ...ofClients(({ sessions }) => sessions.lost),
  },
  {
    kind: 'counter',
    name: 'stagedoor_sessions_moved_total',
    help: 'Moves of a session to another instance',
    ...ofClients(({ sessions }) => sessions.moved),
  },
  {
    kind: 'counter',
    name: 'stagedoor_sessions_recovered_total',
    help: 'Sessions continued after the end of their node',
    labels: [],
    read: ({ kept }) => (kept === undefined ? [] : [[{}, kept.recovered]]),
  },
  {
    kind: 'counter',
    name: 'stagedoor_session_writes_failed_total',
    help: 'Sessions stored after the answer to their client (late) or not at all (dropped), by reason',
    labels: ['reason'],
    read: ({ kept }) =>
      kept === undefined
        ? []
        : labelled('reason', [['late', kept.late] as const, ['dropped', kept.dropped] as const]),
  },
  {
    kind: 'counter',
    name: 'stagedoor_session_claims_total',
    help: 'Attempts to claim a session of an ended or released life, by result: won, lost',
    labels: ['result'],
    read: ({ kept }) => (kept === undefined ? [] : labelled('result', Object.entries(kept.claims))),
  },
  {
    kind: 'counter',
    name: 'stagedoor_fences_total',
    help: 'How often this node found that others had taken over: its life, or one session at a write',
    labels: ['what'],
    read: ({ kept, cluster }) => [
      ...(cluster === undefined ? [] : labelled('what', [['life', cluster.livesLost] as const])),
      ...(kept === undefined ? [] : labelled('what', [['session', kept.heldElsewhere] as const])),
    ],
  },
  {
    kind: 'counter',
    name: 'stagedoor_lives_ended_total',
    help: 'Lives that this node ended, by cause: refused (connections), expired (no heartbeat), restarted',
    ...ofCluster('cause', ({ livesEnded }) => Object.entries(livesEnded)),
  },
  {
    kind: 'counter',
    name: 'stagedoor_program_leases_total',
    help: 'Changes of leases of programs that any node may run, at this node: taken, released',
    ...ofCluster('change', ({ leases }) => Object.entries(leases)),
  },
  {
    kind: 'counter',
    name: 'stagedoor_hops_total',
    help: 'Requests sent to another node: to the holder of a session or to an instance, by outcome: answered, failed, moved, cancelled',
    labels: ['hop', 'outcome'],
    read: ({ cluster }) =>
      Object.entries(cluster?.hops ?? {}).flatMap(([hop, outcomes]) =>
        labelled('outcome', Object.entries(outcomes)).map(([labels, value]) => [{ hop, ...labels }, value]),
      ),
  },
  {
    kind: 'histogram',
    name: 'stagedoor_hop_duration_seconds',
    help: 'Time from such a request to the end of its answer, with the work of the other node; without streams',
    labels: ['hop'],
    read: ({ cluster }) => Object.entries(cluster?.times ?? {}).map(([hop, times]) => [{ hop }, times]),
  },
  {
    kind: 'gauge',
    name: 'stagedoor_client_processes',
    help: 'Dedicated processes that run',
    ...ofClients(({ ownProcesses }) => ownProcesses.running),
  },
  {
    kind: 'counter',
    name: 'stagedoor_http_responses_total',
    help: 'HTTP answers by status; 499 when the client disconnected before',
    labels: ['status'],
    read: ({ http }) => labelled('status', http.statuses),
  },
  {
    kind: 'counter',
    name: 'stagedoor_http_errors_total',
    help: 'HTTP requests that ended with an error of the gateway, by error code',
    labels: ['code'],
    read: ({ http }) => labelled('code', http.errors),
  },
  {
    kind: 'counter',
    name: 'stagedoor_rate_limited_requests_total',
    help: 'HTTP requests that were refused because their caller was over its rate limit',
    labels: [],
    read: ({ http }) => [[{}, http.errors.get('RATE_LIMIT_EXCEEDED') ?? 0]],
  },
  {
    kind: 'gauge',
    name: 'stagedoor_database_up',
    help: '1 while the database answers, else 0',
    labels: [],
    read: ({ isDatabaseConnected }) => [[{}, Number(isDatabaseConnected)]],
  },
  {
    kind: 'gauge',
    name: 'stagedoor_registry_current',
    help: '0 while a change of another node cannot be read, else 1',
    labels: [],
    read: ({ traffic }) => [[{}, Number(traffic.isRegistryCurrent)]],
  },
  {
    kind: 'gauge',
    name: 'stagedoor_build_info',
    help: 'Always 1; the labels are the versions of the API and of the package',
    labels: ['version', 'build'],
    read: () => [[{ version: API_VERSION, build: VERSION }, 1]],
  },
];

function labelled(name: string, counts: Iterable<readonly [string | number, number]>): Series<number>[] {
  return Array.from(counts, ([key, count]) => [{ [name]: String(key) }, count]);
}

function ofCluster(
  label: string,
  select: (counts: ClusterCounts) => Iterable<readonly [string, number]>,
): MetricSource<number> {
  const read = ({ cluster }: MetricsReading) =>
    cluster === undefined ? [] : labelled(label, select(cluster));
  return { labels: [label], read };
}

/** The labels and the numbers of a metric. */
type MetricSource<V> = Pick<MetricBase<V>, 'labels' | 'read'>;

function ofTemplates<V>(
  labels: readonly string[],
  select: (traffic: TemplateCounts) => readonly Series<V>[],
): MetricSource<V> {
  function* read({ templates, traffic }: MetricsReading): Generator<Series<V>> {
    for (const { template } of templates) {
      const counts = traffic.template(template);
      if (counts === undefined) continue;
      for (const [more, value] of select(counts)) yield [{ template, ...more }, value];
    }
  }
  return { labels: ['template', ...labels], read };
}

function ofRequests<V>(select: (times: BucketCounts) => V): MetricSource<V> {
  return ofTemplates(['method', 'outcome'], ({ requests }) =>
    [...requests].flatMap(([method, outcomes]) =>
      Array.from(outcomes, ([outcome, times]): Series<V> => [{ method, outcome }, select(times)]),
    ),
  );
}

/** One number for each instance that runs on this node, unless it has none. */
function ofInstances(select: (snapshot: InstanceSnapshot, traffic: InstanceCounts) => number | undefined) {
  return ofRunning([], (snapshot, traffic) => {
    const value = select(snapshot, traffic);
    return value === undefined ? [] : [[{}, value]];
  });
}

/** Several numbers for each instance that runs on this node. */
function ofEachInstance(
  label: string,
  select: (traffic: InstanceCounts) => Iterable<readonly [string, number]>,
) {
  return ofRunning([label], (_, traffic) => labelled(label, select(traffic)));
}

function ofRunning(
  labels: readonly string[],
  select: (snapshot: InstanceSnapshot, traffic: InstanceCounts) => readonly Series<number>[],
): MetricSource<number> {
  function* read({ templates, traffic }: MetricsReading): Generator<Series<number>> {
    for (const { template, instances } of templates)
      for (const snapshot of instances) {
        const counts = traffic.instance(snapshot.serverId);
        if (counts === undefined || !runsHere(snapshot)) continue;
        const instance = { template, instance_id: snapshot.id };
        for (const [more, value] of select(snapshot, counts)) yield [{ ...instance, ...more }, value];
      }
  }
  return { labels: ['template', 'instance_id', ...labels], read };
}

function ofClients(select: (clients: TemplateSnapshot['clients']) => number): MetricSource<number> {
  const read = ({ templates }: MetricsReading) =>
    templates.map(({ template, clients }): Series<number> => [{ template }, select(clients)]);
  return { labels: ['template'], read };
}

/** False for instances of other nodes, which are listed as stopped. */
function runsHere({ state }: InstanceSnapshot): boolean {
  return state !== 'stopped';
}

/** The number of instances in each state. All states are there, so that a graph keeps the line of a state without instances. */
function statesOf(template: string, instances: readonly InstanceSnapshot[]): Series<number>[] {
  return INSTANCE_STATES.map((state) => [
    { template, state },
    instances.filter((instance) => instance.state === state).length,
  ]);
}
