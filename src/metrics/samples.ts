// `gateway.sampled`: once a second the load of the gateway, its templates and its instances, for readers of the event
// stream.

import {
  defer,
  endWith,
  exhaustMap,
  filter,
  ignoreElements,
  map,
  merge,
  type Observable,
  shareReplay,
  takeUntil,
} from 'rxjs';
import { DurationHistogram } from '../counts/duration-histogram.ts';
import {
  getOrInsert,
  type InstanceCounts,
  type Tally,
  type TemplateCounts,
  tallyOf,
} from '../counts/traffic-counts.ts';
import { mayDo, type Principal } from '../domain/accounts/principal.ts';
import { mayUse, rightsKey } from '../domain/accounts/rights.ts';
import type { InstanceSnapshot } from '../domain/instances/instance.ts';
import { ticks$, timer$ } from '../domain/time/clock-streams.ts';
import { eachInGroups } from '../domain/time/task-groups.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { Server, TemplateSnapshot } from '../gateway/gateway-types.ts';
import type { GatewayInternals } from '../gateway/internals.ts';
import {
  type InstanceLoad,
  type Load,
  type OtherLoads,
  sumOfInstanceLoads,
  sumOfTemplateLoads,
  type TakenLoads,
  type TemplateLoad,
} from './loads.ts';

export const SAMPLED = 'gateway.sampled';

const INTERVAL_MS = 1_000;

export interface SampleSelection {
  readonly viewer: Principal;
  /** The only template of the samples. Default: all that the viewer may use. */
  readonly template?: string | undefined;
}

/** The parts of a gateway that a sample without instances needs. */
export type SampledGateway = Pick<Gateway, 'events$' | 'snapshot'> & {
  readonly internals: Pick<GatewayInternals, 'clock' | 'traffic'>;
};

type GatewayOfInstances = SampledGateway &
  Pick<Gateway, 'templates' | 'eachServer'> & { readonly internals: Pick<GatewayInternals, 'scheduler'> };

/** The scope of samples. Default: this node alone, for clients. */
interface SampleScope {
  /**
   * True for a sample that another node adds to its own: with durations instead of percentiles, without calls at
   * instances of other nodes.
   */
  readonly isPart?: boolean;
  /** The loads of the other nodes, which are added. */
  readonly others?: OtherLoads | undefined;
}

/**
 * The samples of one gateway. Without a reader nothing is computed. One sample serves all readers; its parts are
 * serialized when they change, and a reader gets the visible parts that changed since its last sample. Source: ADR 75.
 */
export class Samples {
  readonly #samples$: Observable<Sample>;

  constructor(gateway: GatewayOfInstances, { isPart = false, others }: SampleScope = {}) {
    const { clock } = gateway.internals;
    this.#samples$ = defer(() => {
      let before: Sample | undefined;
      return merge(timer$(clock, 0), ticks$(clock, INTERVAL_MS)).pipe(
        exhaustMap(async () => {
          const taken = others?.take();
          const options = { isPart: isPart || taken !== undefined, isForNode: isPart, others: taken };
          const sample = new Sample(gateway, before, options);
          await sample.addInstances(gateway, before);
          before = sample;
          return sample;
        }),
      );
    }).pipe(
      takeUntil(gateway.events$.pipe(ignoreElements(), endWith(undefined))),
      shareReplay({ bufferSize: 1, refCount: true }),
    );
  }

  /**
   * The samples as text until the gateway is closed. Cold: the first comes at once and has all parts. While `reader`
   * is behind it gets none, and the next one has all changes.
   */
  read(selection: SampleSelection, reader: { readonly isBehind: boolean }): Observable<string> {
    return defer(() => {
      let seen: Seen = { number: 0, owed: new Set() };
      return this.#samples$.pipe(
        filter(() => !reader.isBehind),
        map((sample) => {
          const { text, owed } = sample.textFor(selection, seen);
          seen = { number: sample.number, owed };
          return text;
        }),
      );
    });
  }
}

/** The totals of all templates. `sessions`: for admins only. */
export interface Totals {
  readonly requests: number;
  readonly failures: number;
  readonly in_flight: number;
  readonly queued: number;
  readonly sessions?: number;
  readonly p50_ms: number | null;
  readonly p95_ms: number | null;
  readonly p99_ms: number | null;
}

/** A template or an instance as text, and the number of the sample in which the text last changed. */
interface Part {
  readonly text: string;
  readonly changedIn: number;
}

interface TemplatePart extends Part {
  readonly load: TemplateLoad;
  /** The ids of instances that another node runs. */
  readonly elsewhere: ReadonlySet<string>;
  readonly instances: Map<string, Part>;
}

interface SampleOptions {
  /** True for the part of this node: without calls at instances of other nodes, which count them. */
  readonly isPart?: boolean;
  readonly isForNode?: boolean;
  readonly others?: TakenLoads | undefined;
}

/** The most instances in a sample for another node, whose size is bounded; the others are in the next ones. */
const MAX_PART_INSTANCES = 5_000;

/** What a sample says, and the server ids of changed instances for which it has no room. */
interface Written {
  readonly text: string;
  readonly owed: ReadonlySet<string>;
}

/** The number of the last sample of a reader, and what that one owes it. */
interface Seen extends Pick<Written, 'owed'> {
  readonly number: number;
}

/** The load at one time, and since the sample before; without `addInstances` the totals alone. */
export class Sample {
  readonly number: number;
  readonly atMs: number;
  readonly parts: ReadonlyMap<string, TemplatePart>;
  /** The totals so far, by their count objects, which are replaced with their template or instance. */
  readonly counted = new Map<object, Load>();
  readonly #traffic: GatewayInternals['traffic'];
  readonly #options: SampleOptions;
  readonly #at: string;
  readonly #intervalMs: number;
  #elsewhere = 0;
  /** The texts by viewer, template and last sample: equal readers share one. */
  readonly #texts = new Map<string, Written>();

  constructor(gateway: SampledGateway, before: Sample | undefined, options: SampleOptions = {}) {
    this.number = (before?.number ?? 0) + 1;
    const { clock, traffic } = gateway.internals;
    this.atMs = clock.now();
    this.#at = new Date(clock.wall()).toISOString();
    this.#traffic = traffic;
    this.#options = options;
    this.#intervalMs = Math.round(this.atMs - (before ?? this).atMs);
    const parts = gateway
      .snapshot()
      .map((snapshot) => [snapshot.template, this.#partOf(snapshot, before)] as const);
    this.parts = new Map(parts);
  }

  /** Adds them in several turns of the event loop, as there may be thousands. One that is deleted meanwhile may be missing. */
  addInstances(gateway: GatewayOfInstances, before: Sample | undefined): Promise<void> {
    const add = ({ definition, snapshot }: Server): void => {
      const part = this.parts.get(definition.template);
      part?.instances.set(snapshot.serverId, this.#instancePart(snapshot, part, before));
    };
    return eachInGroups(gateway.eachServer([...this.parts.keys()]), add, gateway.internals.scheduler);
  }

  /** The text for a reader with this last sample, and what it still owes the reader. */
  textFor(selection: SampleSelection, seen: Seen): Written {
    const { viewer, template } = selection;
    // A reader that is owed something is another node, of which there are few.
    if (seen.owed.size > 0) return this.#written(selection, seen);
    const key = JSON.stringify([mayDo(viewer, ['admin']), seen.number, template, rightsKey(viewer)]);
    return getOrInsert(this.#texts, key, () => this.#written(selection, seen));
  }

  #written({ viewer, template }: SampleSelection, seen: Seen): Written {
    const visible = [...this.parts].filter(([name]) => mayUse(viewer, name) && name === (template ?? name));
    const parts = visible.map(([, part]) => part);
    const { isForNode = false, others } = this.#options;
    const isNew = ({ changedIn }: Part): boolean => changedIn > seen.number;
    const instances = parts.flatMap((part) => [...part.instances]);
    const changed = [
      ...instances.filter(([id]) => seen.owed.has(id)),
      ...instances.filter(([id, part]) => isNew(part) && !seen.owed.has(id)),
    ];
    const left = isForNode ? changed.splice(MAX_PART_INSTANCES) : [];
    const partial =
      others === undefined || others.partial.length === 0
        ? ''
        : `,"partial":${JSON.stringify(others.partial)}`;
    const text =
      `{"type":"${SAMPLED}","at":"${this.#at}","interval_ms":${this.#intervalMs},"totals":${JSON.stringify(totalsOf(parts, mayDo(viewer, ['admin'])))}` +
      `,"templates":[${textsOf(parts.filter(isNew))}],"instances":[${textsOf(changed.map(([, part]) => part))}]${partial}}`;
    return { text, owed: new Set(left.map(([id]) => id)) };
  }

  /**
   * A point of the history: all templates together, with the numbers that only admins see. `isAdded`: with two numbers
   * by which nodes add up their points. These are the calls at instances of other nodes, because those nodes count them
   * as well, and the durations as buckets and counts, alternating.
   */
  kept(isAdded: boolean) {
    const parts = [...this.parts.values()];
    const point = { at: this.#at, interval_ms: this.#intervalMs, totals: totalsOf(parts, true) };
    const hasDurations = isAdded && point.totals.requests > 0;
    const durations = hasDurations ? Uint32Array.from(timesOf(parts).buckets.flat()) : undefined;
    return { point, atMs: this.atMs, elsewhere: isAdded ? this.#elsewhere : 0, durations };
  }

  #partOf(snapshot: TemplateSnapshot, before: Sample | undefined): TemplatePart {
    const { isPart = false, isForNode = false, others } = this.#options;
    const { template, queued, inFlight, elsewhere = NOWHERE, clients } = snapshot;
    const own = {
      ...this.#loadOf(this.#traffic.template(template), before),
      queued,
      sessions: clients.sessions.open,
      inFlight: isPart ? inFlight - elsewhere.calls : inFlight,
    };
    this.#elsewhere += elsewhere.calls;
    const load = sumOfTemplateLoads(own, others?.templates.get(template));
    const { requests, failures, times } = load;
    const more = isForNode
      ? { sessions: load.sessions, durations: requests > 0 ? (times?.buckets ?? []) : [] }
      : { p50_ms: percentileOf(times, 0.5), p95_ms: percentileOf(times, 0.95) };
    const text = JSON.stringify({
      template,
      requests,
      failures,
      in_flight: load.inFlight,
      queued: load.queued,
      ...more,
    });
    const known = this.#renewed(text, before?.parts.get(template));
    return { ...known, load, elsewhere: elsewhere.serverIds, instances: new Map() };
  }

  #instancePart(instance: InstanceSnapshot, { elsewhere }: TemplatePart, before: Sample | undefined): Part {
    const { isPart = false, isForNode = false, others } = this.#options;
    const { serverId, state, template } = instance;
    const isElsewhere = isPart && elsewhere.has(serverId);
    const counts = this.#loadOf(this.#traffic.instance(serverId), before);
    const own = { ...counts, state, inFlight: isElsewhere ? 0 : instance.inFlight };
    const view = isForNode
      ? partSample(serverId, own)
      : instanceSample(instance, sumOfInstanceLoads(own, others?.instances.get(serverId)));
    return this.#renewed(JSON.stringify(view), before?.parts.get(template)?.instances.get(serverId));
  }

  /** The increase since the previous sample; zero in the first. */
  #loadOf(counts: TemplateCounts | InstanceCounts | undefined, before: Sample | undefined): Load {
    if (counts === undefined) return { requests: 0, failures: 0 };
    const known = before?.counted.get(counts);
    const tally = tallyIn(counts);
    // Thousands of templates are idle: the durations of these are not copied each time.
    const total = known?.requests === tally.requests ? known : { ...tally, times: copiedTimes(counts) };
    this.counted.set(counts, total);
    if (total === known) return { requests: 0, failures: 0 };
    const base = before === undefined ? total : known;
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

const NOWHERE = { calls: 0, serverIds: new Set<string>() };

function tallyIn(counts: TemplateCounts | InstanceCounts): Tally {
  if ('exchanges' in counts) return tallyOf(counts.exchanges);
  const outcomes = [...counts.requests.values()].flatMap((times) => [...times]);
  return tallyOf(outcomes.map(([outcome, { count }]) => [outcome, count]));
}

/** The durations so far of a template; undefined for an instance. */
function copiedTimes(counts: TemplateCounts | InstanceCounts): DurationHistogram | undefined {
  return 'times' in counts ? counts.times.since() : undefined;
}

function totalsOf(parts: readonly TemplatePart[], isAdmin: boolean): Totals {
  const sum = (numberOf: (load: TemplateLoad) => number): number =>
    parts.reduce((total, { load }) => total + numberOf(load), 0);
  const all = timesOf(parts);
  return {
    requests: sum(({ requests }) => requests),
    failures: sum(({ failures }) => failures),
    in_flight: sum(({ inFlight }) => inFlight),
    queued: sum(({ queued }) => queued),
    ...(isAdmin ? { sessions: sum(({ sessions }) => sessions) } : {}),
    p50_ms: percentileOf(all, 0.5),
    p95_ms: percentileOf(all, 0.95),
    p99_ms: percentileOf(all, 0.99),
  };
}

function timesOf(parts: readonly TemplatePart[]): DurationHistogram {
  const all = new DurationHistogram();
  for (const { load } of parts) if (load.requests > 0 && load.times !== undefined) all.add(load.times);
  return all;
}

function instanceSample(
  snapshot: InstanceSnapshot,
  { state, inFlight, requests, failures }: InstanceLoad,
): Record<string, unknown> {
  return {
    server_id: snapshot.serverId,
    template: snapshot.template,
    instance_id: snapshot.id,
    state,
    in_flight: inFlight,
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

function partSample(
  serverId: string,
  { state, inFlight, requests, failures }: InstanceLoad,
): Record<string, unknown> {
  return { server_id: serverId, state, in_flight: inFlight, requests, failures };
}

/** A percentile in tenths of a ms; null without a duration. */
export function percentileOf(times: DurationHistogram | undefined, share: number): number | null {
  return tenths(times?.percentile(share) ?? null);
}

function tenths(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms * 10) / 10;
}

function textsOf(parts: readonly Part[]): string {
  return parts.map(({ text }) => text).join(',');
}
