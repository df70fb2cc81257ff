// Counts from the event stream: calls, failures, times and probes; what MCP clients have open, and how it ended. Nothing is looked up
// or stored.

import { createHistogram } from 'node:perf_hooks';
import type { Observable, Subscription } from 'rxjs';
import type { GatewayEvent, GatewayEvents } from '../domain/events.ts';
import { TRANSPORT_TRAITS, type TransportKind } from '../domain/instance.ts';

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

/** A process that runs for a single client. */
interface OwnProcess {
  readonly pid: number;
  readonly principal: string;
}

/** What clients have open at one instance now. */
export interface InstanceClients {
  /** Sessions that are bound to it, parked ones included. */
  readonly sessions: number;
  /** Processes that run for single clients, with or without a session. */
  readonly ownProcesses: number;
  /** Those of them whose process id is known, oldest first. */
  readonly processes: readonly OwnProcess[];
}

/** Since the gateway started; `open` and `running` are present numbers. */
export interface ClientCounts {
  /** `ended` includes `lost`: open = opened - ended. */
  readonly sessions: {
    readonly open: number;
    readonly opened: number;
    readonly ended: number;
    readonly lost: number;
    readonly moved: number;
  };
  /** Processes of single clients. `lost`: they ended by themselves. */
  readonly ownProcesses: { readonly running: number; readonly started: number; readonly lost: number };
}

interface ClientTally {
  readonly sessions: { -readonly [Count in keyof ClientCounts['sessions']]: number };
  readonly ownProcesses: { -readonly [Count in keyof ClientCounts['ownProcesses']]: number };
}

interface Present {
  sessions: number;
  ownProcesses: number;
  /** The owner of each process, by its id. Made with the first one. */
  owners: Map<number, string> | undefined;
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

const NO_CLIENTS: InstanceClients = { sessions: 0, ownProcesses: 0, processes: [] };

export class Metrics {
  readonly #startedAtMs = Date.now();
  readonly #histogram = createHistogram({ lowest: 1, highest: LONGEST_MICROSECONDS, figures: 2 });
  readonly #instances = new Map<string, CallTally>();
  readonly #all: CallTally = emptyTally();
  readonly #clients = new Map<string, ClientTally>();
  /** Instances where clients have anything open, by server id. */
  readonly #present = new Map<string, Present>();
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

  /** By template, of those that ever had a session or a process of a client. */
  clients(): ReadonlyMap<string, ClientCounts> {
    return new Map([...this.#clients].map(([template, tally]) => [template, sumOf([tally])]));
  }

  /** What clients have open at the instance of that server id. */
  clientsAt(serverId: string): InstanceClients {
    const present = this.#present.get(serverId);
    if (present === undefined) return NO_CLIENTS;
    const { sessions, ownProcesses, owners = [] } = present;
    return { sessions, ownProcesses, processes: [...owners].map(([pid, principal]) => ({ pid, principal })) };
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
        add(this.#tallyOf(event.template).sessions, { open: -1, ended: 1, lost: event.isLost ? 1 : 0 });
        this.#change(event.serverId, -1, 0);
        break;
      case 'upstream.opened':
        if (!isProcess(event)) break;
        add(this.#tallyOf(event.template).ownProcesses, { running: 1, started: 1 });
        this.#processOpened(event);
        break;
      case 'upstream.ended':
        if (!isProcess(event)) break;
        add(this.#tallyOf(event.template).ownProcesses, { running: -1, lost: event.isLost ? 1 : 0 });
        this.#processEnded(event);
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

  #tallyOf(template: string): ClientTally {
    const known = this.#clients.get(template);
    if (known !== undefined) return known;
    const tally = sumOf([]);
    this.#clients.set(template, tally);
    return tally;
  }

  #processOpened({ serverId, pid, principal }: GatewayEvents['upstream.opened']): void {
    const present = this.#change(serverId, 0, 1);
    if (pid === undefined) return;
    present.owners ??= new Map();
    present.owners.set(pid, principal);
  }

  #processEnded({ serverId, pid }: GatewayEvents['upstream.ended']): void {
    const { owners } = this.#change(serverId, 0, -1);
    if (pid !== undefined) owners?.delete(pid);
  }

  #change(serverId: string, sessions: number, ownProcesses: number): Present {
    let present = this.#present.get(serverId);
    if (present === undefined) {
      present = { sessions: 0, ownProcesses: 0, owners: undefined };
      this.#present.set(serverId, present);
    }
    present.sessions += sessions;
    present.ownProcesses += ownProcesses;
    if (present.sessions === 0 && present.ownProcesses === 0) this.#present.delete(serverId);
    return present;
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

/** The counts of several templates together; a new object. */
export function sumOf(counts: Iterable<ClientCounts>): ClientTally {
  const sum: ClientTally = {
    sessions: { open: 0, opened: 0, ended: 0, lost: 0, moved: 0 },
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

/** Over HTTP, a client's own conversation is a session of the backend. */
function isProcess({ transport }: { readonly transport: TransportKind }): boolean {
  return TRANSPORT_TRAITS[transport].hasProcesses;
}
