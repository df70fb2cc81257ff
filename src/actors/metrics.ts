// Counts calls, failures, times and probes from the event stream. Nothing is stored.

import { createHistogram } from 'node:perf_hooks';
import type { Observable, Subscription } from 'rxjs';
import type { GatewayEvent, GatewayEvents } from '../domain/events.ts';

/** Measurements since the gateway started. Times in ms, rates 0 to 1. */
export interface MetricsSummary {
  readonly uptimeSeconds: number;
  /** All calls, with or without an instance for them. */
  readonly totalRequests: number;
  /** Share of ended exchanges and refused calls that failed. An error answer of a backend counts. */
  readonly errorRate: number;
  readonly averageResponseTimeMs: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
  /** By server id, of instances that ever got a call. */
  readonly instances: Readonly<Record<string, InstanceMetrics>>;
  readonly probes: { readonly total: number; readonly passed: number; readonly lastAtMs: number | null };
}

export interface InstanceMetrics {
  readonly requests: number;
  readonly errorRate: number;
  readonly averageResponseTimeMs: number;
  /** How often it was ejected from the pool because of its calls. */
  readonly ejections: number;
}

interface CallTally {
  ejections: number;
  requests: number;
  failures: number;
  answered: number;
  totalMs: number;
}

/** Upper bound of the histogram, in microseconds: an hour. */
const LONGEST_MICROSECONDS = 3_600_000_000;

export class Metrics {
  readonly #startedAtMs = Date.now();
  readonly #histogram = createHistogram({ lowest: 1, highest: LONGEST_MICROSECONDS, figures: 2 });
  readonly #instances = new Map<string, CallTally>();
  readonly #all: CallTally = emptyTally();
  readonly #subscription: Subscription;
  #started = 0;
  #refused = 0;
  #probes = 0;
  #passedProbes = 0;
  #lastProbeAtMs: number | null = null;

  constructor(events$: Observable<GatewayEvent>) {
    this.#subscription = events$.subscribe((event) => this.#count(event));
  }

  summary(): MetricsSummary {
    const asked = [...this.#instances].filter(([, { requests }]) => requests > 0);
    const percentileMs = (percentile: number) =>
      this.#all.answered === 0 ? 0 : this.#histogram.percentile(percentile) / 1000;
    return {
      uptimeSeconds: Math.floor((Date.now() - this.#startedAtMs) / 1000),
      totalRequests: this.#started,
      errorRate: share(this.#all.failures + this.#refused, this.#all.requests + this.#refused),
      averageResponseTimeMs: share(this.#all.totalMs, this.#all.answered),
      p50Ms: percentileMs(50),
      p95Ms: percentileMs(95),
      p99Ms: percentileMs(99),
      instances: Object.fromEntries(asked.map(([id, tally]) => [id, metricsOf(tally)])),
      probes: { total: this.#probes, passed: this.#passedProbes, lastAtMs: this.#lastProbeAtMs },
    };
  }

  close(): void {
    this.#subscription.unsubscribe();
  }

  #count(event: GatewayEvent): void {
    switch (event.type) {
      case 'exchange.started':
        this.#started += 1;
        break;
      case 'exchange.refused':
        this.#refused += 1;
        break;
      case 'exchange.finished':
        this.#finish(event);
        break;
      case 'probe.finished':
        this.#probes += 1;
        if (event.passed) this.#passedProbes += 1;
        this.#lastProbeAtMs = event.atMs;
        break;
      case 'instance.ejected': {
        const tally = this.#instances.get(event.serverId);
        if (tally !== undefined) tally.ejections += 1;
        break;
      }
      case 'instance.starting':
        // Only registered instances: a call that ends after the deregistration must not add an entry.
        if (!this.#instances.has(event.serverId)) this.#instances.set(event.serverId, emptyTally());
        break;
      case 'instance.deregistered':
        this.#instances.delete(event.serverId);
        break;
    }
  }

  #finish({ serverId, outcome, durationMs }: GatewayEvents['exchange.finished']): void {
    const isAnswer = outcome === 'result' || outcome === 'error';
    for (const counted of [this.#instances.get(serverId), this.#all]) {
      if (counted === undefined) continue;
      counted.requests += 1;
      if (outcome === 'error' || outcome === 'failed') counted.failures += 1;
      if (!isAnswer) continue;
      counted.answered += 1;
      counted.totalMs += durationMs;
    }
    if (isAnswer) {
      const microseconds = Math.round(durationMs * 1000);
      this.#histogram.record(Math.min(Math.max(microseconds, 1), LONGEST_MICROSECONDS));
    }
  }
}

function metricsOf(tally: CallTally): InstanceMetrics {
  return {
    requests: tally.requests,
    errorRate: share(tally.failures, tally.requests),
    averageResponseTimeMs: share(tally.totalMs, tally.answered),
    ejections: tally.ejections,
  };
}

function emptyTally(): CallTally {
  return { ejections: 0, requests: 0, failures: 0, answered: 0, totalMs: 0 };
}

function share(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole;
}
