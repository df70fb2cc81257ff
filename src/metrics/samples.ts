// `gateway.sampled`: once a second the load of the gateway, its templates and its instances, for readers of the event stream.
// Nothing is computed without a reader. One sample is made for all readers; its parts are serialized when they change, and each
// reader gets the parts that it may see and that changed since its last sample. Source: ADR 75.

import {
  defer,
  endWith,
  filter,
  finalize,
  ignoreElements,
  map,
  type Observable,
  ReplaySubject,
  share,
  takeUntil,
  timer,
} from 'rxjs';
import { mayDo, mayUse, type Principal } from '../domain/account.ts';
import type { GatewayEvent } from '../domain/events.ts';
import type { InstanceSnapshot } from '../domain/instance.ts';
import type { Gateway } from '../gateway.ts';
import type { TemplateSnapshot } from '../gateway-types.ts';
import { getOrInsert } from './traffic-counts.ts';

export const SAMPLED = 'gateway.sampled';

const INTERVAL_MS = 1_000;

export interface SampleSelection {
  readonly viewer: Principal;
  /** This template only. Default: all that the viewer may use. */
  readonly template?: string | undefined;
}

export class Samples {
  readonly #gateway: Pick<Gateway, 'events$' | 'snapshot'>;
  readonly #samples$: Observable<Sample>;

  constructor(gateway: Pick<Gateway, 'events$' | 'snapshot'>) {
    this.#gateway = gateway;
    this.#samples$ = defer(() => this.#take()).pipe(
      share({ connector: () => new ReplaySubject<Sample>(1), resetOnRefCountZero: true }),
    );
  }

  /**
   * Cold: the samples as text until the gateway is closed; the first one comes at once and with all parts. While `reader` is behind
   * it gets none, and the next one has all changes.
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

  #take(): Observable<Sample> {
    const { events$ } = this.#gateway;
    let interval = new Interval();
    const counting = events$.subscribe((event) => interval.count(event));
    const isOver$ = events$.pipe(ignoreElements(), endWith(undefined));
    let number = 0;
    let parts: Parts = new Map();
    return timer(0, INTERVAL_MS).pipe(
      map(() => {
        number += 1;
        const sample = new Sample(number, interval, this.#gateway.snapshot(), parts);
        parts = sample.parts;
        interval = new Interval();
        return sample;
      }),
      takeUntil(isOver$),
      finalize(() => counting.unsubscribe()),
    );
  }
}

interface Tally {
  requests: number;
  failures: number;
}

interface TemplateTally extends Tally {
  readonly times: DurationHistogram;
}

/** The calls of one interval, by template, and by server id the exchanges with each instance. */
class Interval {
  readonly templates = new Map<string, TemplateTally>();
  readonly instances = new Map<string, Tally>();
  readonly #sinceMs = performance.now();

  get passedMs(): number {
    return Math.round(performance.now() - this.#sinceMs);
  }

  count(event: GatewayEvent): void {
    switch (event.type) {
      case 'exchange.finished': {
        const isFailure = event.outcome === 'error' || event.outcome === 'failed';
        countIn(getOrInsert(this.instances, event.serverId, newTally), isFailure);
        if (!event.isLast) break;
        const tally = this.#template(event.template);
        countIn(tally, isFailure);
        if (event.outcome !== 'cancelled') tally.times.record(event.waitMs + event.durationMs);
        break;
      }
      case 'exchange.refused':
        countIn(this.#template(event.template), true);
        break;
      case 'exchange.cancelled':
        countIn(this.#template(event.template), false);
        break;
    }
  }

  #template(template: string): TemplateTally {
    return getOrInsert(this.templates, template, newTemplateTally);
  }
}

const newTally = (): Tally => ({ requests: 0, failures: 0 });
const newTemplateTally = (): TemplateTally => ({ ...newTally(), times: new DurationHistogram() });

function countIn(tally: Tally, isFailure: boolean): void {
  tally.requests += 1;
  if (isFailure) tally.failures += 1;
}

/** A template or an instance as text, and the number of the sample in which the text last changed. */
interface Part {
  readonly text: string;
  readonly changedIn: number;
}

interface TemplatePart extends Part {
  readonly snapshot: TemplateSnapshot;
  readonly tally: TemplateTally | undefined;
  readonly inFlight: number;
  readonly instances: ReadonlyMap<string, Part>;
}

type Parts = ReadonlyMap<string, TemplatePart>;

class Sample {
  readonly number: number;
  readonly parts: Parts;
  readonly #head: string;
  /** Texts by viewer, template and last sample: readers of the same kind share one. */
  readonly #texts = new Map<string, string>();

  constructor(number: number, interval: Interval, snapshots: readonly TemplateSnapshot[], before: Parts) {
    this.number = number;
    this.#head = `{"type":"${SAMPLED}","at":"${new Date().toISOString()}","interval_ms":${interval.passedMs}`;
    const parts = snapshots.map((snapshot) => {
      const { template } = snapshot;
      return [template, this.#partOf(snapshot, interval, before.get(template))] as const;
    });
    this.parts = new Map(parts);
  }

  /** For a reader whose last sample had that number. */
  textFor({ viewer, template }: SampleSelection, seen: number): string {
    const isAdmin = mayDo(viewer, ['admin']);
    const { templates } = viewer;
    const key = JSON.stringify([isAdmin, seen, template, templates && [...templates]]);
    return getOrInsert(this.#texts, key, () => {
      const isSelected = (name: string): boolean =>
        mayUse(viewer, name) && (template === undefined || template === name);
      return this.#textOf(isSelected, isAdmin, seen);
    });
  }

  #textOf(isSelected: (template: string) => boolean, isAdmin: boolean, seen: number): string {
    const parts = [...this.parts.values()].filter(({ snapshot }) => isSelected(snapshot.template));
    const isNew = ({ changedIn }: Part): boolean => changedIn > seen;
    const instances = parts.flatMap((part) => [...part.instances.values()]);
    return (
      `${this.#head},"totals":${JSON.stringify(totalsOf(parts, isAdmin))}` +
      `,"templates":[${textsOf(parts.filter(isNew))}],"instances":[${textsOf(instances.filter(isNew))}]}`
    );
  }

  #partOf(snapshot: TemplateSnapshot, interval: Interval, before: TemplatePart | undefined): TemplatePart {
    const { template, queued } = snapshot;
    const tally = interval.templates.get(template);
    const inFlight = snapshot.instances.reduce((sum, instance) => sum + instance.inFlight, 0);
    const times = { p50_ms: percentileOf(tally, 0.5), p95_ms: percentileOf(tally, 0.95) };
    const { requests = 0, failures = 0 } = tally ?? {};
    const text = JSON.stringify({ template, requests, failures, in_flight: inFlight, queued, ...times });
    const instances = snapshot.instances.map((instance) => {
      const { serverId } = instance;
      const instanceText = JSON.stringify(instanceView(instance, interval.instances.get(serverId)));
      return [serverId, this.#renewed(instanceText, before?.instances.get(serverId))] as const;
    });
    return { ...this.#renewed(text, before), snapshot, tally, inFlight, instances: new Map(instances) };
  }

  #renewed(text: string, before: Part | undefined): Part {
    return before?.text === text ? before : { text, changedIn: this.number };
  }
}

function totalsOf(parts: readonly TemplatePart[], isAdmin: boolean): Record<string, number | null> {
  const sum = (of: (part: TemplatePart) => number): number =>
    parts.reduce((total, part) => total + of(part), 0);
  const all = newTemplateTally();
  for (const { tally } of parts) if (tally !== undefined) all.times.add(tally.times);
  return {
    requests: sum(({ tally }) => tally?.requests ?? 0),
    failures: sum(({ tally }) => tally?.failures ?? 0),
    in_flight: sum(({ inFlight }) => inFlight),
    queued: sum(({ snapshot }) => snapshot.queued),
    ...(isAdmin ? { sessions: sum(({ snapshot }) => snapshot.clients.sessions.open) } : {}),
    p50_ms: percentileOf(all, 0.5),
    p95_ms: percentileOf(all, 0.95),
    p99_ms: percentileOf(all, 0.99),
  };
}

function instanceView(snapshot: InstanceSnapshot, tally: Tally | undefined): Record<string, unknown> {
  const { requests = 0, failures = 0 } = tally ?? {};
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

function percentileOf(tally: TemplateTally | undefined, share: number): number | null {
  return tenths(tally?.times.percentile(share) ?? null);
}

function tenths(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms * 10) / 10;
}

function textsOf(parts: readonly Part[]): string {
  return parts.map(({ text }) => text).join(',');
}

// Durations, for percentiles: counts in buckets that grow by a fixed factor, so that a percentile is exact to within 3 % and
// recording costs a few nanoseconds.

/** Buckets for each doubling of the duration. */
const PER_OCTAVE = 16;
/** The first bucket ends at this duration, in ms. */
const SHORTEST_MS = 0.01;
/** Up to about an hour and a half; longer durations are in the last bucket. */
const BUCKETS = 29 * PER_OCTAVE;

class DurationHistogram {
  readonly #counts = new Uint32Array(BUCKETS);
  #total = 0;

  record(durationMs: number): void {
    const bucket = Math.ceil(Math.log2(durationMs / SHORTEST_MS) * PER_OCTAVE);
    this.#total += 1;
    this.#count(Math.min(Math.max(bucket, 0), BUCKETS - 1), 1);
  }

  add(other: DurationHistogram): void {
    this.#total += other.#total;
    for (const [bucket, count] of other.#counts.entries()) this.#count(bucket, count);
  }

  /** In ms; null when nothing was recorded. `share`: 0.95 for the 95th percentile. */
  percentile(share: number): number | null {
    if (this.#total === 0) return null;
    const wanted = Math.ceil(this.#total * share);
    let seen = 0;
    const bucket = this.#counts.findIndex((count) => {
      seen += count;
      return seen >= wanted;
    });
    return SHORTEST_MS * 2 ** ((bucket - 0.5) / PER_OCTAVE);
  }

  #count(bucket: number, count: number): void {
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + count;
  }
}
