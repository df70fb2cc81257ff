// The group of one template: its registered instances, the pool of those that may be chosen, the calls that wait because
// all are full or none has started, and its policy. It neither starts nor ends instances (fleet.ts), nor says why
// none of them takes a call (no-instance.ts).

import { Observable, Subject } from 'rxjs';
import { bestLatencyMs, healthScore } from '../../balancing/health-score.ts';
import type { TemplatePolicy } from '../../balancing/policy.ts';
import { Pool, type PoolChange } from '../../balancing/pool.ts';
import { type ExchangeRequest, toolOf } from '../../domain/calls/exchange.ts';
import { instanceElsewhere, queueFull } from '../../domain/errors/backend-errors.ts';
import { serverNotFound } from '../../domain/errors/registry-errors.ts';
import { eventOf } from '../../domain/events/events.ts';
import type { InstanceDefinition, InstanceSnapshot, InstanceState } from '../../domain/instances/instance.ts';
import type { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import { MAX_QUEUED_PER_INSTANCE } from '../instances/call-counter.ts';
import { InstanceRef } from '../instances/instance-ref.ts';
import type { InstanceActorInput } from '../instances/instance-setup.ts';
import type { TrustOf } from '../instances/tool-trust.ts';
import { elsewhereReason, type UnreachableInstance } from '../instances/unreachable-instance.ts';
import { CapabilityChanges } from './capability-changes.ts';
import { type QueueEntry, WaitQueue } from './wait-queue.ts';

/** A registered instance: reachable from this node (InstanceRef), or only listed (UnreachableInstance). */
export type Instance = InstanceRef | UnreachableInstance;

/** The definition of an instance, and its present status. */
export interface InstanceStatus {
  readonly definition: InstanceDefinition;
  readonly snapshot: InstanceSnapshot;
}

export interface TemplateGroupDeps extends Pick<InstanceActorInput, 'random' | 'emit' | 'clock'> {
  /** Runs the calls that wait. */
  readonly scheduler: TaskScheduler;
  readonly trustOf: TrustOf;
}

/** The instances of one template, with its pool, its queue and its policy. */
export class TemplateGroup {
  readonly template: string;
  readonly pool: Pool<InstanceRef>;
  readonly queue: WaitQueue;
  /** The registered instances of all nodes by id, in order of registration. */
  readonly byId = new Map<string, Instance>();
  readonly capabilities = new CapabilityChanges(this.byId);
  #isDeleted = false;
  /** The number of sessions and leaving instances that use the group. */
  #uses = 0;
  readonly #changes = new Subject<PoolChange<InstanceRef>>();
  /** The queue of calls and searches for bindings that wait for an instance that is starting. */
  readonly #startQueue: WaitQueue;
  #startWaits = 0;
  #policy: TemplatePolicy;
  readonly #trustOf: TrustOf;

  constructor(template: string, policy: TemplatePolicy, deps: TemplateGroupDeps) {
    const { random, emit, scheduler, clock } = deps;
    this.template = template;
    this.#policy = policy;
    this.#trustOf = deps.trustOf;
    this.queue = new WaitQueue({ clock, scheduler });
    this.#startQueue = new WaitQueue({ clock, scheduler }, Number.POSITIVE_INFINITY);
    this.pool = new Pool<InstanceRef>(this.#changes, {
      policy: () => this.#policy,
      random,
      clock,
      onSuspended: (ref, { reason }, forMs) =>
        emit({ type: 'instance.ejected', ...eventOf(clock, ref), reason, forMs }),
      onReadmitted: (ref) => {
        emit({ type: 'instance.readmitted', ...eventOf(clock, ref) });
        this.queue.advance(ref);
      },
      onSilent: (ref) => ref.suspect(),
    });
  }

  /** The registered instances of all nodes, in order of registration. */
  get instances(): Instance[] {
    return [...this.byId.values()];
  }

  /** The instances that calls reach from here. */
  get refs(): InstanceRef[] {
    return this.instances.filter((instance) => instance instanceof InstanceRef);
  }

  /** False once the instance was removed, or replaced by one with the same id. */
  has(instance: Instance): boolean {
    return this.byId.get(instance.id) === instance;
  }

  /** An instance of any node. Throws SERVER_NOT_FOUND. */
  instance(id: string): Instance {
    const instance = this.byId.get(id);
    if (instance === undefined) throw serverNotFound(id);
    return instance;
  }

  /** An instance that calls reach from here. Throws SERVER_NOT_FOUND, or NO_HEALTHY_INSTANCE for one that is only listed. */
  ref(id: string): InstanceRef {
    const instance = this.instance(id);
    if (instance instanceof InstanceRef) return instance;
    throw instance.refusal();
  }

  /** An instance that this node runs. Throws SERVER_NOT_FOUND, or NO_HEALTHY_INSTANCE for one of another node. */
  ownRef(id: string): InstanceRef {
    const ref = this.ref(id);
    if (ref.isElsewhere) throw instanceElsewhere(id, elsewhereReason(ref.definition));
    return ref;
  }

  get policy(): TemplatePolicy {
    return this.#policy;
  }

  /**
   * The tool that an instance must list in an approved form before it gets this request of an MCP client.
   * Undefined when every definition is trusted: then the server itself refuses an unknown tool.
   */
  approvedTool(request: Pick<ExchangeRequest, 'method' | 'params' | 'view'>): string | undefined {
    return this.#trustOf(this.template)?.isRequiredFor(request.view) === true ? toolOf(request) : undefined;
  }

  /** True from `delete` until the template has a policy again. */
  get isDeleted(): boolean {
    return this.#isDeleted;
  }

  /** True when the template is deleted, and nothing uses the group any more. */
  get isUnused(): boolean {
    return this.#isDeleted && this.#uses === 0;
  }

  delete(): void {
    this.#isDeleted = true;
  }

  /** Counts one more use, until `release`. */
  retain(): void {
    this.#uses += 1;
  }

  release(): void {
    this.#uses -= 1;
  }

  /** The most calls that may wait, in proportion to the instances that are up. */
  get maxQueueLength(): number {
    return this.pool.size * MAX_QUEUED_PER_INSTANCE;
  }

  /** Sets the policy; a deleted template exists again. Returns true when the annotations of its tools have changed. */
  setPolicy(policy: TemplatePolicy): boolean {
    this.#isDeleted = false;
    const { strategy, annotate } = this.#policy;
    this.#policy = policy;
    if (policy.strategy !== strategy) this.pool.renewStrategy();
    return JSON.stringify(policy.annotate) !== JSON.stringify(annotate);
  }

  /** Follows the state of one instance: only a healthy one is in the pool. */
  observe(ref: InstanceRef, state: InstanceState): void {
    if (state === 'healthy') {
      this.#changes.next({ kind: 'up', candidate: ref });
      this.queue.advance(ref);
    } else if (this.pool.has(ref)) {
      // Not by its id: an instance that leaves must not remove its successor.
      this.#changes.next({ kind: 'down', id: ref.id });
      queueMicrotask(() => this.queue.reconsider());
    }
    // In a microtask: one that leaves may have a successor, which is listed in the same turn.
    if (state !== 'starting') queueMicrotask(() => this.#startQueue.reconsider());
  }

  /**
   * An instance for a session, as the strategy chooses. When all are full any may be chosen, since a session is not load until it
   * calls. `excluded`: the ids of those that are not chosen; `last` is chosen only when there is no other.
   */
  pickForSession(
    ownerId: string,
    excluded: ReadonlySet<string> = new Set(),
    last?: InstanceRef,
  ): InstanceRef | undefined {
    const request = { callerId: ownerId };
    const pick = (without: ReadonlySet<string>) =>
      this.pool.pick(request, { excluded: without }) ??
      this.pool.pick(request, { excluded: without, hasRoom: () => true });
    return (last && pick(new Set([...excluded, last.id]))) ?? pick(excluded);
  }

  /**
   * True while no instance is healthy, and one that is not in `excluded` (ids) is starting: for the first time,
   * as requested, or again after few failures in a row. It may then help to wait. `only`: the only instance that
   * counts.
   */
  isStarting(excluded?: ReadonlySet<string>, only?: InstanceRef): boolean {
    if (only === undefined && this.pool.size > 0) return false;
    return this.#starting(excluded, only).next().done !== true;
  }

  /**
   * Waits for an instance that is starting; undefined when none is. Emits once when `isStarting` has become false;
   * cold, never completes, and has no time limit. Errors with QUEUE_FULL when MAX_QUEUED_PER_INSTANCE wait for each
   * starting instance; owners share these places like those of the queue.
   */
  untilStarted(
    ownerId: string,
    excluded?: ReadonlySet<string>,
    only?: InstanceRef,
  ): Observable<void> | undefined {
    if (!this.isStarting(excluded, only)) return undefined;
    return new Observable((subscriber) => {
      this.#startWaits += 1;
      const wait: QueueEntry = {
        ownerId,
        number: this.#startWaits,
        mayTake: () => false,
        tryNow: () => {
          if (this.isStarting(excluded, only)) return false;
          this.#startQueue.leave(wait);
          subscriber.next();
          return true;
        },
        refuse: () => subscriber.error(queueFull(this.template)),
      };
      if (this.#startQueue.join(wait, [...this.#starting(excluded, only)].length * MAX_QUEUED_PER_INSTANCE))
        return () => this.#startQueue.leave(wait);
      wait.refuse();
      return undefined;
    });
  }

  *#starting(excluded?: ReadonlySet<string>, only?: InstanceRef): Generator<InstanceRef> {
    for (const instance of only === undefined ? this.byId.values() : [only])
      if (instance instanceof InstanceRef && instance.isStarting && excluded?.has(instance.id) !== true)
        yield instance;
  }

  /** The number of calls with a place at an instance, as in the snapshots that users see. */
  get inFlight(): number {
    let sum = 0;
    for (const instance of this.byId.values())
      if (instance instanceof InstanceRef) sum += instance.calls.inFlight;
    return sum;
  }

  /** The server ids of instances that other nodes run, and the calls in flight there; undefined when there are none. */
  get callsElsewhere(): { readonly calls: number; readonly serverIds: ReadonlySet<string> } | undefined {
    let calls = 0;
    let serverIds: Set<string> | undefined;
    for (const instance of this.byId.values()) {
      if (!(instance instanceof InstanceRef) || !instance.isElsewhere) continue;
      calls += instance.calls.inFlight;
      serverIds ??= new Set();
      serverIds.add(instance.serverId);
    }
    return serverIds && { calls, serverIds };
  }

  statuses(): InstanceStatus[] {
    return [...this.eachStatus()];
  }

  /** The same as `statuses`, but each status is read when it is needed, unless the instance has left by then. */
  *eachStatus(): Generator<InstanceStatus> {
    const bestMs = bestLatencyMs(this.pool.candidates);
    // One that is replaced meanwhile has its successor at the end of the map.
    for (const instance of this.instances) if (this.has(instance)) yield this.#statusOf(instance, bestMs);
  }

  statusOf(instance: Instance): InstanceStatus {
    return this.#statusOf(instance, bestLatencyMs(this.pool.candidates));
  }

  /** `bestMs`: the best latency in the pool, on which the score depends; undefined when none was measured. */
  #statusOf(instance: Instance, bestMs: number | undefined): InstanceStatus {
    const { definition } = instance;
    if (!(instance instanceof InstanceRef)) return { definition, snapshot: instance.snapshot() };
    const score = Math.round(healthScore(instance, bestMs) * 10) / 10;
    return { definition, snapshot: instance.snapshot(score, this.pool.outliers.suspensionOf(instance)) };
  }

  /** Closes the queues after the instances have ended. Resolves when the waiting calls have their errors. */
  async close(): Promise<void> {
    this.#changes.complete();
    await Promise.all([this.queue.close(), this.#startQueue.close()]);
  }
}
