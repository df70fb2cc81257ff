// `gateway.sampled`: once a second the load of the gateway, its templates and its instances, for readers of the
// event stream. Without a reader nothing is computed. One sample serves all readers; its parts are serialized
// when they change, and a reader gets the visible parts that changed since its last sample. Source: ADR 75.
// And the history: the totals of each 10 s of the last hour, with or without readers. Source: ADR 126.

import {
  defer,
  endWith,
  filter,
  ignoreElements,
  map,
  merge,
  type Observable,
  scan,
  shareReplay,
  takeUntil,
} from 'rxjs';
import { DurationHistogram } from '../actors/durations.ts';
import {
  getOrInsert,
  type InstanceCounts,
  type Tally,
  type TemplateCounts,
  tallyOf,
} from '../actors/metrics.ts';
import { mayDo, mayUse, type Principal } from '../domain/account.ts';
import { systemClock, ticks$, timer$ } from '../domain/clock.ts';
import type { InstanceSnapshot } from '../domain/instance.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { TemplateSnapshot } from '../gateway/gateway-types.ts';

export const SAMPLED = 'gateway.sampled';

const INTERVAL_MS = 1_000;

export interface SampleSelection {
  readonly viewer: Principal;
  /** Only this template. Default: all that the viewer may use. */
  readonly template?: string | undefined;
}

type SampledGateway = Pick<Gateway, 'events$' | 'metrics' | 'snapshot'>;

export class Samples {
  readonly #samples$: Observable<Sample>;

  constructor(gateway: SampledGateway) {
    this.#samples$ = merge(timer$(systemClock, 0), ticks$(systemClock, INTERVAL_MS)).pipe(
      scan<void, Sample, undefined>((before) => new Sample(gateway, before), undefined),
      takeUntil(gateway.events$.pipe(ignoreElements(), endWith(undefined))),
      shareReplay({ bufferSize: 1, refCount: true }),
    );
  }

  /**
   * Cold: the samples as text until the gateway is closed; the first comes at once and has all parts. While
   * `reader` is behind it gets none, and the next one has all changes.
   */
  read(selection: SampleSelection, reader: { readonly isBehind: boolean }): Observable<string> {
    return defer(() => {
      let seen = 0;
      return this.#samples$.pipe(
        filter(() => !reader.isBehind),
        map((sample) => {
          const text = sample.textFor(selection, seen);
          seen = sample.number;
          return text;
        }),
      );
    });
  }
}

const HISTORY_INTERVAL_MS = 10_000;
const HISTORY_POINTS = 360;

/** The totals of the 10 s before `at`. */
interface HistoryPoint {
  readonly at: string;
  readonly interval_ms: number;
  readonly totals: Totals;
}

/** The totals of the last hour, for pages that open or are loaded again. */
export class LoadHistory {
  readonly #points: HistoryPoint[] = [];

  constructor(gateway: SampledGateway) {
    const totals = { hasInstances: false };
    let before = new Sample(gateway, undefined, totals);
    const stop = systemClock.background.every(HISTORY_INTERVAL_MS, () => {
      before = new Sample(gateway, before, totals);
      this.#points.push(before.point());
      if (this.#points.length > HISTORY_POINTS) this.#points.shift();
    });
    gateway.events$.subscribe({ complete: () => stop() });
  }

  /** Oldest first. None for a viewer of some templates, because percentiles of all templates say nothing about these. */
  read(viewer: Principal): readonly HistoryPoint[] {
    if (viewer.templates !== undefined) return [];
    if (mayDo(viewer, ['admin'])) return this.#points;
    return this.#points.map(({ totals: { sessions: _, ...totals }, ...point }) => ({ ...point, totals }));
  }
}

/** `sessions`: for admins only. */
interface Totals {
  readonly requests: number;
  readonly failures: number;
  readonly in_flight: number;
  readonly queued: number;
  readonly sessions?: number;
  readonly p50_ms: number | null;
  readonly p95_ms: number | null;
  readonly p99_ms: number | null;
}

/** `times`: only for a template. */
interface Load extends Tally {
  readonly times?: DurationHistogram | undefined;
}

/** A template or an instance as text, and the number of the sample in which the text last changed. */
interface Part {
  readonly text: string;
  readonly changedIn: number;
}

interface TemplatePart extends Part {
  readonly snapshot: TemplateSnapshot;
  readonly load: Load;
  readonly instances: ReadonlyMap<string, Part>;
}

class Sample {
  readonly number: number;
  readonly atMs = systemClock.now();
  readonly parts: ReadonlyMap<string, TemplatePart>;
  /** Totals so far, by their count objects, which are replaced with their template or instance. */
  readonly counted = new Map<object, Load>();
  readonly #metrics: SampledGateway['metrics'];
  readonly #at = new Date(systemClock.wall()).toISOString();
  readonly #intervalMs: number;
  /** Texts by viewer, template and last sample: equal readers share one. */
  readonly #texts = new Map<string, string>();

  /** `hasInstances`: false for the totals alone, which cost no more for thousands of instances. */
  constructor(gateway: SampledGateway, before: Sample | undefined, { hasInstances = true } = {}) {
    this.number = (before?.number ?? 0) + 1;
    this.#metrics = gateway.metrics;
    this.#intervalMs = Math.round(this.atMs - (before ?? this).atMs);
    const parts = gateway
      .snapshot()
      .map((snapshot) => [snapshot.template, this.#partOf(snapshot, before, hasInstances)] as const);
    this.parts = new Map(parts);
  }

  /** The text for a reader whose last sample had the number `seen`. */
  textFor({ viewer, template }: SampleSelection, seen: number): string {
    const isAdmin = mayDo(viewer, ['admin']);
    const { templates } = viewer;
    const key = JSON.stringify([isAdmin, seen, template, templates && [...templates]]);
    return getOrInsert(this.#texts, key, () => {
      const visible = [...this.parts].filter(([name]) => mayUse(viewer, name) && name === (template ?? name));
      const parts = visible.map(([, part]) => part);
      const instances = parts.flatMap((part) => [...part.instances.values()]);
      const isNew = ({ changedIn }: Part): boolean => changedIn > seen;
      return (
        `{"type":"${SAMPLED}","at":"${this.#at}","interval_ms":${this.#intervalMs},"totals":${JSON.stringify(totalsOf(parts, isAdmin))}` +
        `,"templates":[${textsOf(parts.filter(isNew))}],"instances":[${textsOf(instances.filter(isNew))}]}`
      );
    });
  }

  /** All templates together, with what only admins see. */
  point(): HistoryPoint {
    return {
      at: this.#at,
      interval_ms: this.#intervalMs,
      totals: totalsOf([...this.parts.values()], true),
    };
  }

  #partOf(snapshot: TemplateSnapshot, before: Sample | undefined, hasInstances: boolean): TemplatePart {
    const { template, queued, inFlight } = snapshot;
    const known = before?.parts.get(template);
    const load = this.#loadOf(this.#metrics.template(template), before);
    const { requests, failures, times } = load;
    const percentiles = { p50_ms: percentileOf(times, 0.5), p95_ms: percentileOf(times, 0.95) };
    const text = JSON.stringify({
      template,
      requests,
      failures,
      in_flight: inFlight,
      queued,
      ...percentiles,
    });
    const instances = (hasInstances ? snapshot.instances : []).map((instance) => {
      const { serverId } = instance;
      const view = instanceView(instance, this.#loadOf(this.#metrics.instance(serverId), before));
      return [serverId, this.#renewed(JSON.stringify(view), known?.instances.get(serverId))] as const;
    });
    return { ...this.#renewed(text, known), snapshot, load, instances: new Map(instances) };
  }

  /** The increase since the previous sample; zero in the first. */
  #loadOf(counts: TemplateCounts | InstanceCounts | undefined, before: Sample | undefined): Load {
    if (counts === undefined) return { requests: 0, failures: 0 };
    const total = totalOf(counts);
    this.counted.set(counts, total);
    const base = before === undefined ? total : before.counted.get(counts);
    if (base === undefined) return total;
    return {
      requests: total.requests - base.requests,
      failures: total.failures - base.failures,
      times: total.times?.since(base.times),
    };
  }

  #renewed(text: string, before: Part | undefined): Part {
    return { text, changedIn: before?.text === text ? before.changedIn : this.number };
  }
}

function totalOf(counts: TemplateCounts | InstanceCounts): Load {
  if ('exchanges' in counts) return tallyOf(counts.exchanges);
  const outcomes = [...counts.requests.values()].flatMap((times) => [...times]);
  const tally = tallyOf(outcomes.map(([outcome, { count }]) => [outcome, count]));
  return { ...tally, times: counts.times.since() };
}

function totalsOf(parts: readonly TemplatePart[], isAdmin: boolean): Totals {
  const sum = (of: (part: TemplatePart) => number): number =>
    parts.reduce((total, part) => total + of(part), 0);
  const all = new DurationHistogram();
  for (const { load } of parts) if (load.requests > 0 && load.times !== undefined) all.add(load.times);
  return {
    requests: sum(({ load }) => load.requests),
    failures: sum(({ load }) => load.failures),
    in_flight: sum(({ snapshot }) => snapshot.inFlight),
    queued: sum(({ snapshot }) => snapshot.queued),
    ...(isAdmin ? { sessions: sum(({ snapshot }) => snapshot.clients.sessions.open) } : {}),
    p50_ms: percentileOf(all, 0.5),
    p95_ms: percentileOf(all, 0.95),
    p99_ms: percentileOf(all, 0.99),
  };
}

function instanceView(snapshot: InstanceSnapshot, { requests, failures }: Tally): Record<string, unknown> {
  return {
    server_id: snapshot.serverId,
    template: snapshot.template,
    instance_id: snapshot.id,
    state: snapshot.state,
    in_flight: snapshot.inFlight,
    requests,
    failures,
    latency_ms: tenths(snapshot.latencyMs),
    score: snapshot.score,
    weight: snapshot.weight,
    ejected: snapshot.ejection !== null,
    restarts: snapshot.restarts,
    consecutive_failures: snapshot.consecutiveFailures,
  };
}

function percentileOf(times: DurationHistogram | undefined, share: number): number | null {
  return tenths(times?.percentile(share) ?? null);
}

function tenths(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms * 10) / 10;
}

function textsOf(parts: readonly Part[]): string {
  return parts.map(({ text }) => text).join(',');
}
