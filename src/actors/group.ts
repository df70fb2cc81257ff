// The group of one template: its registered instances, the pool of those that may be picked, the queue of the calls that found
// all of them full, and its policy; and the groups of a fleet, by template. It neither starts nor ends instances (fleet.ts).

import { Subject } from 'rxjs';
import { STRATEGIES } from '../balancing/index.ts';
import { type Change, Pool } from '../balancing/pool.ts';
import type { Strategy } from '../balancing/strategy.ts';
import type { Clock } from '../domain/clock.ts';
import { templateNotFound } from '../domain/error-catalogue.ts';
import { eventOf, type GatewayEvent } from '../domain/events.ts';
import type { InstanceState } from '../domain/instance.ts';
import { LIMITS } from '../domain/limits.ts';
import type { BalancerPolicy } from '../domain/policy.ts';
import { WaitQueue } from './calls/wait-queue.ts';
import type { ForeignInstance } from './foreign-instance.ts';
import type { InstanceRef } from './instances/instance-ref.ts';

/** A registered instance: it runs here, or on another node. */
export type Member = InstanceRef | ForeignInstance;

/** Dependencies of groups. */
export interface GroupDeps extends Clock {
  /** Numbers in [0, 1). */
  readonly random: () => number;
  readonly emit: (event: GatewayEvent) => void;
}

export class Group {
  readonly template: string;
  readonly pool: Pool<InstanceRef>;
  readonly queue = new WaitQueue();
  /** The registered instances by id, in the order of their registration. */
  readonly members = new Map<string, Member>();
  readonly #changes = new Subject<Change<InstanceRef>>();
  readonly #random: () => number;
  #policy: BalancerPolicy;

  constructor(template: string, policy: BalancerPolicy, { random, emit, now, alarm }: GroupDeps) {
    this.template = template;
    this.#policy = policy;
    this.#random = random;
    this.pool = new Pool<InstanceRef>(this.#changes, this.#strategyOf(policy), {
      now,
      alarm,
      ejected: (ref, { reason }, forMs) => emit({ type: 'instance.ejected', ...eventOf(ref), reason, forMs }),
      readmitted: (ref) => {
        emit({ type: 'instance.readmitted', ...eventOf(ref) });
        this.#offerPlaces(ref);
      },
      silent: (ref) => ref.suspect(),
    });
  }

  get policy(): BalancerPolicy {
    return this.#policy;
  }

  /** Most calls that may wait, in proportion to the instances that are up. */
  get maxQueueLength(): number {
    return this.pool.size * LIMITS.queuedPerInstance;
  }

  setPolicy(policy: BalancerPolicy): void {
    if (policy.strategy !== this.#policy.strategy) this.pool.setStrategy(this.#strategyOf(policy));
    this.#policy = policy;
  }

  /** Follows the state of one instance: only a healthy one is in the pool. */
  observe(ref: InstanceRef, state: InstanceState): void {
    if (state === 'healthy') {
      this.#changes.next({ kind: 'up', candidate: ref });
      this.#offerPlaces(ref);
    } else if (this.pool.candidates.includes(ref)) {
      // Not by its id: an instance that leaves must not remove its successor.
      this.#changes.next({ kind: 'down', id: ref.id });
      this.queue.reconsider();
    }
  }

  close(): void {
    this.#changes.complete();
    this.pool.close();
    this.queue.reconsider();
  }

  #offerPlaces(ref: InstanceRef): void {
    for (let place = 0; place < ref.capacity && this.queue.advance(ref); place += 1);
  }

  #strategyOf({ strategy }: BalancerPolicy): () => Strategy {
    return () => STRATEGIES[strategy]({ random: this.#random });
  }
}

/**
 * The groups of a fleet, by template. A deleted template is no longer listed, but its group is kept: sessions and leaving
 * instances may outlive it, and it may be created again.
 */
export class Groups {
  readonly #deps: GroupDeps;
  readonly #byTemplate = new Map<string, Group>();
  readonly #deleted = new Set<string>();

  constructor(deps: GroupDeps) {
    this.#deps = deps;
  }

  /** Names of the templates, sorted. */
  get templates(): string[] {
    return [...this.#byTemplate.keys()].filter((template) => !this.#deleted.has(template)).sort();
  }

  has(template: string): boolean {
    return this.#byTemplate.has(template) && !this.#deleted.has(template);
  }

  /** TEMPLATE_NOT_FOUND, also of a deleted template. */
  require(template: string): Group {
    if (this.#deleted.has(template)) throw templateNotFound(template);
    return this.get(template);
  }

  /** True when the name is new and the bound is reached. Deleted templates count, since their groups are kept. */
  isFullFor(template: string): boolean {
    return !this.#byTemplate.has(template) && this.#byTemplate.size >= LIMITS.templates;
  }

  /** Also of a deleted template. */
  find(template: string): Group | undefined {
    return this.#byTemplate.get(template);
  }

  /** Also of a deleted template. TEMPLATE_NOT_FOUND when there never was one of that name. */
  get(template: string): Group {
    const group = this.find(template);
    if (group === undefined) throw templateNotFound(template);
    return group;
  }

  /** Adds the template, unless it exists, and sets its policy. */
  setPolicy(template: string, policy: BalancerPolicy): void {
    this.#deleted.delete(template);
    const group = this.#byTemplate.get(template);
    if (group === undefined) this.#byTemplate.set(template, new Group(template, policy, this.#deps));
    else group.setPolicy(policy);
  }

  /** Deletes the template, which must have no instances. */
  delete(template: string): void {
    this.#deleted.add(template);
  }

  close(): void {
    for (const group of this.#byTemplate.values()) group.close();
  }
}
