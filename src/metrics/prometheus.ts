// The text of `GET /metrics`, made by prom-client. That package is loaded at the first scrape: it takes longer to
// load than the whole app. Its objects are made for each scrape, from the counts of counts/traffic-counts.ts and the present
// state, so that a deregistered instance has no line. Other work gets a turn of the event loop between two metrics,
// and between the parts of a long one.

import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import type { Registry } from 'prom-client';
import { BUCKET_SECONDS, type BucketCounts } from '../counts/bucket-counts.ts';
import type { ClusterCounts } from '../counts/cluster-counts.ts';
import { increment } from '../counts/traffic-counts.ts';
import type { Principal } from '../domain/accounts/principal.ts';
import { hasAllTemplates, mayUse, rightsKey } from '../domain/accounts/rights.ts';
import type { ErrorCode } from '../domain/errors/errors.ts';
import type { InstanceSnapshot } from '../domain/instances/instance.ts';
import { SerialQueue } from '../domain/time/serial-queue.ts';
import { eachInGroups, inGroups } from '../domain/time/task-groups.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { Server, TemplateSnapshot } from '../gateway/gateway-types.ts';
import type { GatewayInternals } from '../gateway/internals.ts';
import { METRICS, type Metric, type MetricsReading } from './metric-table.ts';

type Viewer = Pick<Principal, 'templates' | 'tools'>;

/** The format that every Prometheus reads. */
export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** The gauges with names of counters, which Prometheus rejects; each is the sum of a gauge that is kept. */
const MISNAMED = ['handles', 'requests', 'resources'].map((each) => `nodejs_active_${each}_total`);

/** The most lines of one metric that are made in one turn of the event loop. */
const MAX_LINES_AT_ONCE = 1_000;
/** The lines of prom-client about the metric. */
const HEADING = /^(?:# .*\n)+/;

type Lag = ReturnType<typeof monitorEventLoopDelay>;

/** The resolution of the lag of the event loop, in ms: that of prom-client. */
const LAG_RESOLUTION_MS = 10;
/** The interval of prom-client's own measurement, in ms: it would begin at the first scrape, is replaced, and never ticks. */
const NEVER_MS = 2 ** 31;

/** The lag of the event loop since the previous scrape, the first time since the start; 0 before the first measurement. */
const LAG: readonly (readonly [name: string, help: string, ns: (histogram: Lag) => number])[] = [
  ['min', 'The minimum recorded event loop delay.', ({ min }) => min],
  ['max', 'The maximum recorded event loop delay.', ({ max }) => max],
  ['mean', 'The mean of the recorded event loop delays.', ({ mean }) => mean],
  ['stddev', 'The standard deviation of the recorded event loop delays.', ({ stddev }) => stddev],
  ['p50', 'The 50th percentile of the recorded event loop delays.', (lag) => lag.percentile(50)],
  ['p90', 'The 90th percentile of the recorded event loop delays.', (lag) => lag.percentile(90)],
  ['p99', 'The 99th percentile of the recorded event loop delays.', (lag) => lag.percentile(99)],
];

/** The metrics of one gateway. It counts HTTP answers from its construction on. */
export class Prometheus {
  /** The numbers of HTTP answers of the app by status, and by error code: bounded by their catalogues. */
  readonly #http = { statuses: new Map<number, number>(), errors: new Map<ErrorCode, number>() };
  readonly #gateway: Gateway;
  /** The labels of every series. */
  readonly #labels: Readonly<Record<string, string>>;
  readonly #cluster: ClusterCounts | undefined;
  /** The texts that are being made, by the rights of their viewers; concurrent scrapes share them. */
  readonly #making = new Map<string, Promise<string>>();
  /** The queue in which texts for viewers with limited rights are made one at a time. */
  readonly #limited = new SerialQueue();
  /** The metrics of the process. Their collectors observe the garbage collector after the first scrape. */
  #process: Registry | undefined;
  readonly #lag = monitorEventLoopDelay({ resolution: LAG_RESOLUTION_MS });

  /** `worker`: its number, which becomes a label of every series. `cluster`: undefined without other nodes. */
  constructor(gateway: Gateway, worker?: number, cluster?: ClusterCounts) {
    this.#gateway = gateway;
    this.#cluster = cluster;
    this.#labels = worker === undefined ? {} : { worker: String(worker) };
    this.#lag.enable();
  }

  countAnswer(status: number, code: ErrorCode | undefined): void {
    increment(this.#http.statuses, status);
    if (code !== undefined) increment(this.#http.errors, code);
  }

  /** All metrics; for a viewer of some templates, only those of these templates. Default: a viewer of all. */
  text(viewer: Viewer = {}): Promise<string> {
    const make = () => this.#textFor(viewer);
    if (hasAllTemplates(viewer)) return this.#shared('', make);
    return this.#shared(rightsKey(viewer), () => this.#limited.take(make));
  }

  #shared(rights: string, make: () => Promise<string>): Promise<string> {
    const making = this.#making.get(rights) ?? make().finally(() => this.#making.delete(rights));
    this.#making.set(rights, making);
    return making;
  }

  async #textFor(viewer: Viewer): Promise<string> {
    const client = await import('prom-client');
    const { traffic, keptSessions: kept } = this.#gateway.internals;
    const isDatabaseConnected = (await this.#gateway.databaseStatus()) === 'connected';
    const templates = await this.#templatesFor(viewer);
    const cluster = this.#cluster;
    const reading = { templates, traffic, http: this.#http, isDatabaseConnected, kept, cluster };
    const seesAll = hasAllTemplates(viewer);
    const texts: string[] = [];
    for (const metric of METRICS) {
      const { name, help, kind: type, labels } = metric;
      if (!seesAll && !labels.includes('template')) continue;
      const add = async (values: readonly MetricValue[], isFirst: boolean): Promise<void> => {
        const filled = { name, help, type, aggregator: 'sum', values };
        const text = await client.AggregatorRegistry.aggregate([[filled]]).getSingleMetricAsString(name);
        texts.push(isFirst ? text : text.replace(HEADING, ''));
        await turn();
      };
      let isFirst = true;
      for (const some of inGroups(valuesOf(metric, reading, this.#labels), MAX_LINES_AT_ONCE)) {
        await add(some, isFirst);
        isFirst = false;
      }
      if (isFirst) await add([], isFirst); // its heading
    }
    if (seesAll) {
      texts.push((await this.#ofProcess(client).metrics()).trimEnd());
      this.#lag.reset();
    }
    return `${texts.join('\n')}\n`;
  }

  /** The templates of a viewer, with their instances. These are read once, in several turns. */
  async #templatesFor(viewer: Viewer): Promise<TemplateSnapshot[]> {
    const templates = this.#gateway.snapshot().filter(({ template }) => mayUse(viewer, template));
    const names = templates.map(({ template }) => template);
    const instances = await readInstances(this.#gateway, names);
    return templates.map(({ template, queued, inFlight, clients }) => {
      return { template, queued, inFlight, clients, instances: instances.get(template) ?? [] };
    });
  }

  #ofProcess({ Gauge, Registry, collectDefaultMetrics }: typeof import('prom-client')): Registry {
    if (this.#process !== undefined) return this.#process;
    const register = new Registry();
    register.setDefaultLabels(this.#labels);
    collectDefaultMetrics({ register, eventLoopMonitoringPrecision: NEVER_MS });
    for (const name of MISNAMED) register.removeSingleMetric(name);
    const lag = this.#lag;
    for (const [which, help, ns] of LAG) {
      const name = `nodejs_eventloop_lag_${which}_seconds`;
      register.removeSingleMetric(name);
      new Gauge({
        name,
        help,
        registers: [register],
        collect() {
          this.set(lag.count === 0 ? 0 : ns(lag) / 1e9);
        },
      });
    }
    this.#process = register;
    return register;
  }
}

/** The numbers of a metric as prom-client keeps them. Its histograms can only observe single values. */
function* valuesOf(
  metric: Metric,
  reading: MetricsReading,
  common: MetricValue['labels'],
): Generator<MetricValue> {
  if (metric.kind !== 'histogram') {
    for (const [own, value] of metric.read(reading)) yield { labels: { ...own, ...common }, value };
    return;
  }
  for (const [own, counts] of metric.read(reading))
    yield* histogramValues(metric.name, { ...own, ...common }, counts);
}

/** The values of a histogram, all read at once: what is counted while other lines are made must not be in some of these alone. */
function histogramValues(name: string, labels: MetricValue['labels'], counts: BucketCounts): MetricValue[] {
  const metricName = `${name}_bucket`;
  const buckets = counts.cumulative().map((value, bucket): MetricValue => {
    return { metricName, labels: { ...labels, le: BUCKET_SECONDS[bucket] }, value };
  });
  return [
    ...buckets,
    { metricName, labels: { ...labels, le: '+Inf' }, value: counts.count },
    { metricName: `${name}_sum`, labels, value: counts.sumSeconds },
    { metricName: `${name}_count`, labels, value: counts.count },
  ];
}

interface MetricValue {
  readonly metricName?: string;
  readonly labels: Readonly<Record<string, string | number | undefined>>;
  readonly value: number;
}

/**
 * The instances of these templates, by template, read in several turns of the event loop: there may be thousands. A template that
 * is deleted meanwhile may have some or none.
 */
async function readInstances(
  gateway: Pick<Gateway, 'eachServer'> & { readonly internals: Pick<GatewayInternals, 'scheduler'> },
  templates: readonly string[],
): Promise<ReadonlyMap<string, readonly InstanceSnapshot[]>> {
  const instances = new Map<string, InstanceSnapshot[]>(templates.map((template) => [template, []]));
  const add = ({ definition, snapshot }: Server) => instances.get(definition.template)?.push(snapshot);
  await eachInGroups(gateway.eachServer(templates), add, gateway.internals.scheduler);
  return instances;
}
