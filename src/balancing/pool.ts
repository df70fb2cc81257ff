// Keeps the candidates of one template that are up, and picks one of those that may receive a request right now.
// It does not decide health (actors/instances/instance.machine.ts), order (the strategies) or what a caller is told.

import { type Observable, Subscription } from 'rxjs';
import type { Candidate, Strategy } from './strategy.ts';

/** A candidate that may be picked from now on (replacing one with the same id), or one that may be no longer. */
export type Change<C extends Candidate> =
  | { readonly kind: 'up'; readonly candidate: C }
  | { readonly kind: 'down'; readonly id: string };

const NOBODY: ReadonlySet<string> = new Set();

/**
 * The pool of one template. Subscribes to `changes$` at once and until `close()`. When the changes end, by
 * completing or by an error, the pool is empty for good: better to offer nobody than one whose fate is unknown.
 */
export class Pool<C extends Candidate> {
  readonly #byId = new Map<string, C>();
  /** The values of `#byId`, made anew at each change, so that a list once handed out never changes. */
  #candidates: readonly C[] = [];
  /** There before the changes are: they may end while they are being subscribed to. */
  readonly #subscription = new Subscription();
  #strategy: Strategy;

  constructor(changes$: Observable<Change<C>>, strategy: Strategy) {
    this.#strategy = strategy;
    const subscription = changes$.subscribe({
      next: (change) => this.#apply(change),
      // The source reports its own failure; here it only means that no `down` will come any more.
      error: () => this.close(),
      complete: () => this.close(),
    });
    this.#subscription.add(subscription);
  }

  /** The candidates that are up, full ones included, oldest first. */
  get candidates(): readonly C[] {
    return this.#candidates;
  }

  /** How many candidates are up. */
  get size(): number {
    return this.#candidates.length;
  }

  /**
   * Chooses one that is up, below its capacity and not in `excluding` (ids, default none); undefined when there is
   * none. `hasPlace` replaces the check of the capacity. Synchronous, and so must be the send that counts it: an `await` between the two lets a whole burst choose
   * the same candidate. Source: ADR 7.
   */
  pick(
    excluding: ReadonlySet<string> = NOBODY,
    hasPlace: (candidate: C) => boolean = isBelowCapacity,
  ): C | undefined {
    const eligible = this.#eligible(excluding, hasPlace);
    return isNonEmpty(eligible) ? this.#strategy(eligible) : undefined;
  }

  /** True when `pick(excluding)` finds nobody only because all that are left are full: waiting may help. */
  isFull(excluding: ReadonlySet<string> = NOBODY): boolean {
    const left = this.#candidates.filter((candidate) => !excluding.has(candidate.id));
    return left.length > 0 && !left.some(isBelowCapacity);
  }

  /** Chooses by another strategy from the next pick on; what the old one remembered goes with it. */
  setStrategy(strategy: Strategy): void {
    this.#strategy = strategy;
  }

  /** Stops listening and empties the pool. Idempotent. */
  close(): void {
    this.#subscription.unsubscribe();
    this.#byId.clear();
    this.#candidates = [];
  }

  #apply(change: Change<C>): void {
    if (change.kind === 'up') this.#byId.set(change.candidate.id, change.candidate);
    else this.#byId.delete(change.id);
    this.#candidates = [...this.#byId.values()];
  }

  /** Nearly always nobody is full or excluded: then the list itself is handed on and nothing is allocated. */
  #eligible(excluding: ReadonlySet<string>, hasPlace: (candidate: C) => boolean): readonly C[] {
    for (const candidate of this.#candidates) {
      if (!hasPlace(candidate) || excluding.has(candidate.id)) {
        return this.#candidates.filter((other) => hasPlace(other) && !excluding.has(other.id));
      }
    }
    return this.#candidates;
  }
}

function isBelowCapacity({ inFlight, capacity }: Candidate): boolean {
  return inFlight < capacity;
}

function isNonEmpty<C>(candidates: readonly C[]): candidates is readonly [C, ...C[]] {
  return candidates.length > 0;
}
