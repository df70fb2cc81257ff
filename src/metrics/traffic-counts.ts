// Counts the traffic of a gateway by its events, from its start on, so that the first scrape finds all of it. An event costs a few
// lookups: no library, no text. The present state (health, queues, sessions) is not counted here but read at a scrape. Every key
// is bounded: templates and instances of the registry, known methods, codes.

import type { ErrorCode } from '../domain/errors.ts';
import type { GatewayEvent, GatewayEvents } from '../domain/events.ts';
import { METHODS } from '../domain/mcp.ts';
import type { Gateway } from '../gateway.ts';

export type RequestOutcome = 'result' | 'error' | 'failed' | 'refused' | 'cancelled';

export interface TemplateTraffic {
  /** The times of ended requests, from arrival to end, by method and then by outcome. */
  readonly requests: Map<string, Map<RequestOutcome, BucketCounts>>;
  /** Ended requests without an answer. */
  readonly failures: Map<ErrorCode, number>;
  readonly retries: Map<ErrorCode, number>;
  /** Times until a request was sent to its first instance, or ended before. */
  readonly waits: BucketCounts;
}

export interface InstanceTraffic {
  /** Exchanges with it by outcome: a request that was tried at two instances counts at both. */
  readonly exchanges: Map<RequestOutcome, number>;
  /** `failed`: after a failure. `planned`: as requested. */
  readonly restarts: { failed: number; planned: number };
  readonly probes: { passed: number; failed: number };
  ejections: number;
}

export type TrafficSource = Pick<Gateway, 'events$' | 'hasTemplate' | 'snapshot'>;

export class TrafficCounts {
  readonly #templates = new Map<string, TemplateTraffic>();
  /** By server id. */
  readonly #instances = new Map<string, InstanceTraffic>();
  readonly #gateway: TrafficSource;
  /** False while changes of other nodes cannot be read. */
  isRegistryCurrent = true;

  constructor(gateway: TrafficSource) {
    this.#gateway = gateway;
    for (const { instances } of gateway.snapshot())
      for (const { serverId, state } of instances) if (state !== 'stopped') this.#open(serverId);
    gateway.events$.subscribe((event) => this.#count(event)); // they complete when the gateway is closed
  }

  /** Undefined when it had no request. */
  template(template: string): TemplateTraffic | undefined {
    return this.#templates.get(template);
  }

  /** Undefined when it is not registered, or does not run here. */
  instance(serverId: string): InstanceTraffic | undefined {
    return this.#instances.get(serverId);
  }

  #count(event: GatewayEvent): void {
    switch (event.type) {
      case 'exchange.finished':
        this.#finish(event);
        break;
      case 'exchange.refused':
        this.#end(event, 'refused', event.waitMs, event.code)?.waits.observe(event.waitMs);
        break;
      case 'exchange.cancelled':
        this.#end(event, 'cancelled', event.waitMs)?.waits.observe(event.waitMs);
        break;
      case 'exchange.retried': {
        const traffic = this.#templateOf(event.template);
        if (traffic !== undefined) increment(traffic.retries, event.code);
        break;
      }
      case 'probe.finished': {
        const traffic = this.#instances.get(event.serverId);
        if (traffic !== undefined) traffic.probes[event.passed ? 'passed' : 'failed'] += 1;
        break;
      }
      case 'instance.ejected': {
        const traffic = this.#instances.get(event.serverId);
        if (traffic !== undefined) traffic.ejections += 1;
        break;
      }
      case 'instance.restarting': {
        const traffic = this.#instances.get(event.serverId);
        if (traffic !== undefined) traffic.restarts[event.isPlanned ? 'planned' : 'failed'] += 1;
        break;
      }
      case 'instance.starting':
        this.#open(event.serverId);
        break;
      case 'instance.stopped': // it broke and starts anew, or another node has it
      case 'instance.deregistered':
        this.#instances.delete(event.serverId);
        break;
      case 'template.changed':
        if (!this.#gateway.hasTemplate(event.template)) this.#templates.delete(event.template);
        break;
      case 'registry.behind':
        this.isRegistryCurrent = false;
        break;
      case 'registry.current':
        this.isRegistryCurrent = true;
        break;
    }
  }

  #finish(event: GatewayEvents['exchange.finished']): void {
    const { outcome, durationMs, waitMs, attempt } = event;
    const instance = this.#instances.get(event.serverId);
    if (instance !== undefined) increment(instance.exchanges, outcome);
    if (attempt === 1) this.#templateOf(event.template)?.waits.observe(waitMs);
    if (event.isLast) this.#end(event, outcome, waitMs + durationMs, event.code);
  }

  #end(
    { template, method }: { readonly template: string; readonly method: string },
    outcome: RequestOutcome,
    durationMs: number,
    code?: ErrorCode,
  ): TemplateTraffic | undefined {
    const traffic = this.#templateOf(template);
    if (traffic === undefined) return undefined;
    const known = Object.hasOwn(METHODS, method) ? method : 'other';
    const outcomes = getOrInsert(traffic.requests, known, newOutcomes);
    getOrInsert(outcomes, outcome, newBucketCounts).observe(durationMs);
    if (code !== undefined) increment(traffic.failures, code);
    return traffic;
  }

  /** Undefined for a name that is no template: a caller of the embedding API may use any. */
  #templateOf(template: string): TemplateTraffic | undefined {
    const known = this.#templates.get(template);
    if (known !== undefined || !this.#gateway.hasTemplate(template)) return known;
    return getOrInsert(this.#templates, template, () => ({
      requests: new Map(),
      failures: new Map(),
      retries: new Map(),
      waits: new BucketCounts(),
    }));
  }

  #open(serverId: string): void {
    getOrInsert(this.#instances, serverId, () => ({
      exchanges: new Map(),
      restarts: { failed: 0, planned: 0 },
      probes: { passed: 0, failed: 0 },
      ejections: 0,
    }));
  }
}

const newOutcomes = (): Map<RequestOutcome, BucketCounts> => new Map();
const newBucketCounts = (): BucketCounts => new BucketCounts();

/** Upper bounds of the buckets, in seconds. Longer durations are only in the number and the sum. */
export const BUCKET_SECONDS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];

/** The counts of one Prometheus histogram: durations by bucket, their number and their sum. */
export class BucketCounts {
  /** Per bucket, not cumulative. */
  readonly #counts = new Float64Array(BUCKET_SECONDS.length);
  count = 0;
  sumSeconds = 0;

  observe(durationMs: number): void {
    const seconds = durationMs / 1_000;
    this.count += 1;
    this.sumSeconds += seconds;
    const bucket = BUCKET_SECONDS.findIndex((bound) => seconds <= bound);
    if (bucket >= 0) this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
  }

  /** For each bound, the number of durations up to it. */
  cumulative(): number[] {
    let sum = 0;
    return Array.from(this.#counts, (count) => {
      sum += count;
      return sum;
    });
  }
}

function increment<K>(counts: Map<K, number>, key: K): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

export function getOrInsert<K, V>(values: Map<K, V>, key: K, make: () => V): V {
  let value = values.get(key);
  if (value === undefined) {
    value = make();
    values.set(key, value);
  }
  return value;
}

/** The HTTP answers of an app by status, and by error code: bounded by their catalogues. */
export class HttpCounts {
  readonly statuses = new Map<number, number>();
  readonly errors = new Map<ErrorCode, number>();

  count(status: number, code: ErrorCode | undefined): void {
    increment(this.statuses, status);
    if (code !== undefined) increment(this.errors, code);
  }
}
