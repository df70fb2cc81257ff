// Counts the traffic by its events: calls, failures, times and probes; the sessions and processes of MCP clients, and their
// ends.

import type { Observable } from 'rxjs';
import { type CallOutcome, isAnswered } from '../domain/calls/exchange-event.ts';
import type { ErrorCode } from '../domain/errors/errors.ts';
import type { GatewayEvent, GatewayEvents, RequestOutcome } from '../domain/events/events.ts';
import { hasProcesses } from '../domain/instances/transport-kinds.ts';
import { METHODS } from '../domain/mcp/mcp.ts';
import type { Clock } from '../domain/time/clock.ts';
import { BucketCounts } from './bucket-counts.ts';
import { DurationHistogram } from './duration-histogram.ts';

/** The measurements since the gateway started. Times in ms, rates 0 to 1. */
export interface MetricsSummary {
  readonly uptimeSeconds: number;
  /** The number of all calls, with or without an instance for them. */
  readonly totalRequests: number;
  /** The share of ended exchanges and refused calls that failed. An error answer of a backend counts. */
  readonly errorRate: number;
  readonly averageResponseTimeMs: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
  /** The metrics of instances that ever got a call, by server id. */
  readonly instances: Readonly<Record<string, InstanceMetrics>>;
  readonly probes: { readonly total: number; readonly passed: number; readonly lastAtMs: number | null };
}

export interface InstanceMetrics {
  readonly requests: number;
  readonly errorRate: number;
  readonly averageResponseTimeMs: number;
  /** The number of times that its calls ejected it from the pool. */
  readonly ejections: number;
}

/** The open sessions and dedicated processes of clients at one instance. */
export interface InstanceClients {
  /** The number of sessions that are bound to it, idle ones included. */
  readonly sessions: number;
  /** The dedicated processes that run, with or without a session. */
  readonly ownProcesses: number;
}

/** The counts of clients since the gateway started; `open` and `running` are present numbers. */
export interface ClientCounts {
  readonly sessions: {
    readonly open: number;
    readonly opened: number;
    readonly lost: number;
    readonly moved: number;
  };
  /** Dedicated processes. `lost`: they ended by themselves. */
  readonly ownProcesses: { readonly running: number; readonly started: number; readonly lost: number };
}

type ClientTally = {
  readonly [Kind in keyof ClientCounts]: { -readonly [Count in keyof ClientCounts[Kind]]: number };
};

export interface Tally {
  readonly requests: number;
  readonly failures: number;
}

export interface TemplateCounts {
  /** The times of ended requests, from arrival to end, by method and then by outcome. */
  readonly requests: Map<string, Map<RequestOutcome, BucketCounts>>;
  /** The times of those requests that ended at an instance and were not cancelled. */
  readonly times: DurationHistogram;
  /** The ended requests without an answer, by code. */
  readonly failures: Map<ErrorCode, number>;
  readonly retries: Map<ErrorCode, number>;
  /** The ended requests that came through a view, by its id. */
  readonly views: Map<string, Map<RequestOutcome, number>>;
  /** The times until a request was sent to its first instance, or ended before. */
  readonly waits: BucketCounts;
}

export interface InstanceCounts {
  /** The exchanges with it by outcome: a request that was tried at two instances counts at both. */
  readonly exchanges: Map<CallOutcome, number>;
  /** The sum of the times of exchanges with an answer. */
  answeredMs: number;
  /** The restarts by their causes. `failure`: after a failure. `request`: as planned. */
  readonly restarts: Record<'failure' | 'request', number>;
  readonly probes: Record<'passed' | 'failed', number>;
  ejections: number;
}

type WaitedCall = Pick<GatewayEvents['call.finished'], 'template' | 'call' | 'waitMs' | 'isLast'>;

const NO_CLIENTS: InstanceClients = { sessions: 0, ownProcesses: 0 };

interface TrafficCountsOptions {
  readonly clock: Pick<Clock, 'now'>;
  /** False for a template that was deleted: it is not counted again. */
  readonly hasTemplate: (template: string) => boolean;
  /** The same for views. */
  readonly hasView: (view: string) => boolean;
}

/**
 * The counts of one gateway since its start. The statistics, the metrics for Prometheus and the load samples read the
 * counts. An event costs a few lookups; the present state (health, queues) is not counted here. Every key is bounded:
 * templates and instances of the registry, known methods, codes.
 */
export class TrafficCounts {
  readonly #hasTemplate: (template: string) => boolean;
  readonly #hasView: (view: string) => boolean;
  readonly #now: Clock['now'];
  readonly #startedAtMs: number;
  /** The times of exchanges with an answer. */
  readonly #times = new DurationHistogram();
  readonly #templates = new Map<string, TemplateCounts>();
  /** The counts of registered instances that ever ran here, by server id. */
  readonly #instances = new Map<string, InstanceCounts>();
  readonly #all = newInstanceCounts();
  /** The tallies of clients by template. That of a deleted template is kept while clients have anything open there. */
  readonly #clients = new Map<string, ClientTally>();
  /** The instances where clients have anything open, by server id. */
  readonly #present = new Map<string, InstanceClients>();
  /** The calls under way that were tried at an instance. */
  readonly #attempted = new Set<number>();
  #started = 0;
  #refused = 0;
  #lastProbeAtMs: number | null = null;
  #isRegistryCurrent = true;

  /** Counts until the events complete. */
  constructor(events$: Observable<GatewayEvent>, { clock, hasTemplate, hasView }: TrafficCountsOptions) {
    const { now } = clock;
    this.#now = now;
    this.#startedAtMs = now();
    this.#hasTemplate = hasTemplate;
    this.#hasView = hasView;
    events$.subscribe((event) => this.#count(event));
  }

  get uptimeSeconds(): number {
    return Math.floor((this.#now() - this.#startedAtMs) / 1000);
  }

  /** False while changes of other nodes cannot be read. */
  get isRegistryCurrent(): boolean {
    return this.#isRegistryCurrent;
  }

  /** The times of all exchanges with an answer. */
  get times(): DurationHistogram {
    return this.#times.since();
  }

  summary(): MetricsSummary {
    const { requests, failures } = tallyOf(this.#all.exchanges);
    const instances = [...this.#instances].map(([id, counts]) => [id, metricsOf(counts)] as const);
    const { passed, failed } = this.#all.probes;
    return {
      uptimeSeconds: this.uptimeSeconds,
      totalRequests: this.#started,
      errorRate: share(failures + this.#refused, requests + this.#refused),
      averageResponseTimeMs: metricsOf(this.#all).averageResponseTimeMs,
      p50Ms: this.#times.percentile(0.5) ?? 0,
      p95Ms: this.#times.percentile(0.95) ?? 0,
      p99Ms: this.#times.percentile(0.99) ?? 0,
      instances: Object.fromEntries(instances.filter(([, { requests }]) => requests > 0)),
      probes: { total: passed + failed, passed, lastAtMs: this.#lastProbeAtMs },
    };
  }

  /** The counts of a template; undefined when it had no request. */
  template(template: string): TemplateCounts | undefined {
    return this.#templates.get(template);
  }

  /** The counts of an instance since its registration; undefined for one that never ran here. */
  instance(serverId: string): InstanceCounts | undefined {
    return this.#instances.get(serverId);
  }

  /** The counts of clients, by template, for templates that had a session or a dedicated process since they were created. */
  clients(): ReadonlyMap<string, ClientCounts> {
    return new Map([...this.#clients].map(([template, tally]) => [template, summedClients([tally])]));
  }

  /** The open sessions and dedicated processes at the instance of that server id. */
  clientsAt(serverId: string): InstanceClients {
    return this.#present.get(serverId) ?? NO_CLIENTS;
  }

  #count(event: GatewayEvent): void {
    switch (event.type) {
      case 'call.started':
        this.#started += 1;
        break;
      case 'attempt.finished':
        this.#countAttempt(event.serverId, event.outcome, event.durationMs);
        this.#countWait(event);
        break;
      case 'call.finished':
        this.#finish(event);
        break;
      case 'call.retried':
        increment(this.#template(event.template)?.retries, event.code);
        break;
      case 'probe.finished':
        for (const { probes } of this.#countsOf(event)) probes[event.passed ? 'passed' : 'failed'] += 1;
        this.#lastProbeAtMs = event.atMs;
        break;
      case 'instance.ejected':
        for (const counts of this.#countsOf(event)) counts.ejections += 1;
        break;
      case 'instance.restarting':
        for (const { restarts } of this.#countsOf(event))
          restarts[event.isPlanned ? 'request' : 'failure'] += 1;
        break;
      case 'instance.starting':
        // Only registered instances: a call that ends after the deregistration must not add an entry.
        getOrInsert(this.#instances, event.serverId, newInstanceCounts);
        break;
      case 'instance.deregistered':
        this.#instances.delete(event.serverId);
        break;
      case 'template.changed':
        if (!this.#hasTemplate(event.template)) this.#templates.delete(event.template);
        this.#forgetClients(event.template);
        break;
      case 'view.changed':
        if (event.change === 'deleted')
          for (const { views } of this.#templates.values()) views.delete(event.view);
        break;
      case 'registry.behind':
        this.#isRegistryCurrent = false;
        break;
      case 'registry.current':
        this.#isRegistryCurrent = true;
        break;
      default:
        this.#countClients(event);
    }
  }

  /** Counts the sessions and dedicated processes of clients. */
  #countClients(event: GatewayEvent): void {
    switch (event.type) {
      case 'session.opened':
        add(this.#tallyOf(event.template).sessions, { open: 1, opened: 1 });
        this.#change(event.serverId, 1, 0);
        break;
      case 'session.moved':
        add(this.#tallyOf(event.template).sessions, { moved: 1 });
        this.#change(event.fromServerId, -1, 0);
        this.#change(event.serverId, 1, 0);
        break;
      case 'session.ended':
        add(this.#tallyOf(event.template).sessions, { open: -1, lost: event.isLost ? 1 : 0 });
        this.#change(event.serverId, -1, 0);
        this.#forgetClients(event.template);
        break;
      case 'upstream.opened':
        if (!hasProcessHere(event)) break;
        add(this.#tallyOf(event.template).ownProcesses, { running: 1, started: 1 });
        this.#change(event.serverId, 0, 1);
        break;
      case 'upstream.ended':
        if (!hasProcessHere(event)) break;
        add(this.#tallyOf(event.template).ownProcesses, { running: -1, lost: event.isLost ? 1 : 0 });
        this.#change(event.serverId, 0, -1);
        this.#forgetClients(event.template);
        break;
    }
  }

  #countAttempt(serverId: string, outcome: CallOutcome, durationMs: number): void {
    const isAnswer = isAnswered(outcome);
    for (const counts of this.#countsOf({ serverId })) {
      increment(counts.exchanges, outcome);
      if (isAnswer) counts.answeredMs += durationMs;
    }
    if (isAnswer) this.#times.record(durationMs);
  }

  #finish(event: GatewayEvents['call.finished']): void {
    const { outcome, serverId, waitMs, durationMs } = event;
    if (outcome === 'refused') this.#refused += 1;
    else if (serverId !== undefined) this.#countAttempt(serverId, outcome, durationMs);
    this.#countWait(event);
    const counts = this.#end(event, outcome, waitMs + durationMs, event.code);
    if (event.view !== undefined && counts !== undefined && this.#hasView(event.view))
      increment(getOrInsert(counts.views, event.view, newCounts), outcome);
    if (serverId !== undefined && outcome !== 'cancelled') counts?.times.record(waitMs + durationMs);
  }

  /** Counts the wait of a call once: at the end of its first attempt, or of a call without one. */
  #countWait({ template, call, waitMs, isLast }: WaitedCall): void {
    if (!this.#attempted.delete(call)) this.#template(template)?.waits.observe(waitMs);
    if (!isLast) this.#attempted.add(call);
  }

  #end(
    { template, method }: { readonly template: string; readonly method: string },
    outcome: RequestOutcome,
    durationMs: number,
    code?: ErrorCode,
  ): TemplateCounts | undefined {
    const counts = this.#template(template);
    if (counts === undefined) return undefined;
    const known = Object.hasOwn(METHODS, method) ? method : 'other';
    const outcomes = getOrInsert(counts.requests, known, newOutcomes);
    getOrInsert(outcomes, outcome, newBucketCounts).observe(durationMs);
    if (code !== undefined) increment(counts.failures, code);
    return counts;
  }

  /** The counts of a template; undefined for a name that is not a template: a caller of the embedding API may use any. */
  #template(template: string): TemplateCounts | undefined {
    const known = this.#templates.get(template);
    if (known !== undefined || !this.#hasTemplate(template)) return known;
    return getOrInsert(this.#templates, template, newTemplateCounts);
  }

  /** The counts to which an event of an instance is added. */
  #countsOf({ serverId }: { readonly serverId: string }): readonly InstanceCounts[] {
    const counts = this.#instances.get(serverId);
    return counts === undefined ? [this.#all] : [this.#all, counts];
  }

  #tallyOf(template: string): ClientTally {
    return getOrInsert(this.#clients, template, () => summedClients([]));
  }

  #forgetClients(template: string): void {
    const { sessions, ownProcesses } = this.#clients.get(template) ?? summedClients([]);
    const isUsed = sessions.open > 0 || ownProcesses.running > 0;
    if (!isUsed && !this.#hasTemplate(template)) this.#clients.delete(template);
  }

  #change(serverId: string, sessions: number, ownProcesses: number): void {
    const before = this.clientsAt(serverId);
    const after = { sessions: before.sessions + sessions, ownProcesses: before.ownProcesses + ownProcesses };
    if (after.sessions === 0 && after.ownProcesses === 0) this.#present.delete(serverId);
    else this.#present.set(serverId, after);
  }
}

const newCounts = (): Map<RequestOutcome, number> => new Map();
const newOutcomes = (): Map<RequestOutcome, BucketCounts> => new Map();
const newBucketCounts = (): BucketCounts => new BucketCounts();

/** True when the process of the instance runs here: that of another node is counted there. */
function hasProcessHere(event: GatewayEvents['upstream.opened']): boolean {
  return event.isElsewhere !== true && hasProcesses(event);
}

function newTemplateCounts(): TemplateCounts {
  return {
    requests: new Map(),
    times: new DurationHistogram(),
    failures: new Map(),
    retries: new Map(),
    views: new Map(),
    waits: new BucketCounts(),
  };
}

/** Each reason and result begins at 0, so that graphs show it. */
function newInstanceCounts(): InstanceCounts {
  const restarts = { failure: 0, request: 0 };
  const probes = { passed: 0, failed: 0 };
  return { exchanges: new Map(), answeredMs: 0, restarts, probes, ejections: 0 };
}

/**
 * The number of requests, and of those that failed: by an error answer, without an answer, or because no instance
 * could take them. An error that a tool reports in its result is not a failure of the instance.
 */
export function tallyOf(outcomes: Iterable<readonly [RequestOutcome, number]>): Tally {
  let [requests, failures] = [0, 0];
  for (const [outcome, count] of outcomes) {
    requests += count;
    if (!NO_FAILURE.has(outcome)) failures += count;
  }
  return { requests, failures };
}

const NO_FAILURE: ReadonlySet<RequestOutcome> = new Set(['result', 'tool_error', 'cancelled']);

function metricsOf({ exchanges, answeredMs, ejections }: InstanceCounts): InstanceMetrics {
  const { requests, failures } = tallyOf(exchanges);
  const count = (outcome: CallOutcome) => exchanges.get(outcome) ?? 0;
  const answered = count('result') + count('tool_error') + count('error');
  const averageResponseTimeMs = share(answeredMs, answered);
  return { requests, errorRate: share(failures, requests), averageResponseTimeMs, ejections };
}

/** Adds one to the count of a key; without effect when there are no counts. */
export function increment<K>(counts: Map<K, number> | undefined, key: K): void {
  counts?.set(key, (counts.get(key) ?? 0) + 1);
}

export function getOrInsert<K, V>(values: Map<K, V>, key: K, make: () => V): V {
  let value = values.get(key);
  if (value === undefined) {
    value = make();
    values.set(key, value);
  }
  return value;
}

function share(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole;
}

/** The counts of several templates together; a new object. */
export function summedClients(counts: Iterable<ClientCounts>): ClientTally {
  const sum: ClientTally = {
    sessions: { open: 0, opened: 0, lost: 0, moved: 0 },
    ownProcesses: { running: 0, started: 0, lost: 0 },
  };
  for (const { sessions, ownProcesses } of counts) {
    add(sum.sessions, sessions);
    add(sum.ownProcesses, ownProcesses);
  }
  return sum;
}

function add<C extends string>(
  counts: { [Count in C]: number },
  more: { readonly [Count in C]?: number },
): void {
  for (const count in more) counts[count] += more[count] ?? 0;
}
