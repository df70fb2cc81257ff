// The candidates of one template that are up; picks one that may receive a request now. Health is decided in
// actors/instances/instance.machine.ts, the order by the strategies.

import type { Observable } from 'rxjs';
import { type OutlierOptions, Outliers } from './outliers.ts';
import type { TemplatePolicy } from './policy.ts';
import { firstAfter, STRATEGIES } from './strategies.ts';
import type { Candidate, Strategy, StrategyRequest } from './strategy-types.ts';

/** A change of the pool: a candidate joins (and replaces one with the same id), or leaves. */
export type PoolChange<C extends Candidate> =
  | { readonly kind: 'up'; readonly candidate: C }
  | { readonly kind: 'down'; readonly id: string };

interface PoolOptions<C extends Candidate> extends Omit<OutlierOptions<C>, 'isUp' | 'members'> {
  /** The settings in force. */
  readonly policy: () => TemplatePolicy;
  /** The source of randomness of the strategies. */
  readonly random: () => number;
}

/** The candidates that a pick may choose. */
interface PickOptions<C extends Candidate> {
  /** The ids of candidates that are not chosen. Default: none. A pick with exclusions is a retry. */
  readonly excluded?: ReadonlySet<string> | undefined;
  /** True when the call may be the trial of this half-open candidate. Default: it may not. */
  readonly isRepeatable?: (candidate: C) => boolean;
  /** True when the candidate has room for the call. Default: it is below its capacity. */
  readonly hasRoom?: (candidate: C) => boolean;
}

const NO_IDS: ReadonlySet<string> = new Set();
const NO_REQUEST = Object.freeze<StrategyRequest>({});

/**
 * The pool of one template. When the stream of changes completes or fails, the pool is emptied: no candidate is
 * better than one in an unknown state.
 */
export class Pool<C extends Candidate> {
  readonly #byId = new Map<string, C>();
  #candidates: C[] = [];
  /**
   * True when the present list of candidates was read. A list that was read is never changed: the next change makes a
   * new one. Few lists are read while thousands of candidates come up.
   */
  #isRead = false;
  /** Decides which candidates are suspended. The users of the pool report every call to it. */
  readonly outliers: Outliers<C>;
  readonly #options: PoolOptions<C>;
  #strategy: Strategy<C>;
  /** A second strategy with its own memory, so that a retry uses up no turn of the first. */
  #retryStrategy: Strategy<C>;

  constructor(changes$: Observable<PoolChange<C>>, options: PoolOptions<C>) {
    this.#options = options;
    this.#strategy = this.#makeStrategy();
    this.#retryStrategy = this.#makeStrategy();
    this.outliers = new Outliers({
      ...options,
      members: () => this.#candidates,
      isUp: (candidate) => this.has(candidate),
    });
    const end = (): void => {
      this.#byId.clear();
      this.outliers.close();
      this.#candidates = [];
    };
    changes$.subscribe({ next: (change) => this.#apply(change), error: end, complete: end });
  }

  /** The candidates that are up, also full ones, in the order of their ids. A list that was read never changes. */
  get candidates(): readonly C[] {
    this.#isRead = true;
    return this.#candidates;
  }

  /** The number of `candidates`. */
  get size(): number {
    return this.#candidates.length;
  }

  /** True when this candidate is up, and not only another one with its id. */
  has(candidate: C): boolean {
    return this.#byId.get(candidate.id) === candidate;
  }

  /**
   * A candidate that is up and has room; undefined if there is none. A half-open candidate comes first, once, if
   * the call may be its trial; avoided ones come when no other has room, and ejected ones last. A retry uses no turn
   * of the strategy. `request`: for strategies that read it. The caller must send and count the call in the same synchronous
   * block: with an `await` in between, a whole burst would choose the same candidate. Source: ADR 7, ADR 39.
   */
  pick(
    request: StrategyRequest = NO_REQUEST,
    { excluded = NO_IDS, isRepeatable, hasRoom = isBelowCapacity }: PickOptions<C> = {},
  ): C | undefined {
    const { outliers, candidates } = this;
    const isRetry = excluded.size > 0;
    const strategy = isRetry ? this.#retryStrategy : this.#strategy;
    const mayTake = (candidate: C) => hasRoom(candidate) && !excluded.has(candidate.id);
    if (outliers.isEmpty) return strategy(candidates, mayTake, request);
    const trial = isRetry ? undefined : outliers.pickHalfOpen(mayTake, isRepeatable);
    if (trial !== undefined) return trial;
    const isIn = (candidate: C) => !outliers.isSuspended(candidate) && mayTake(candidate);
    const isAllowed = this.#allowance(excluded);
    return (
      strategy(candidates, isIn, request) ??
      strategy(candidates, (candidate) => isAllowed(candidate) && mayTake(candidate), request)
    );
  }

  /**
   * True when `pick` with these exclusions finds no candidate only because the remaining ones are full: it may help to
   * wait.
   */
  isFull(excluded: ReadonlySet<string> = NO_IDS): boolean {
    const allowed = this.candidates.filter(this.#allowance(excluded));
    return allowed.length > 0 && !allowed.some(isBelowCapacity);
  }

  /** True when `pick` with these exclusions may choose this candidate once it has room, other than for its trial. */
  mayBePicked(candidate: { readonly id: string }, excluded: ReadonlySet<string> = NO_IDS): boolean {
    const own = this.#byId.get(candidate.id);
    return own !== undefined && own === candidate && this.#allowance(excluded)(own);
  }

  /** Must be called when the policy names another strategy. The memory of the previous one is lost. */
  renewStrategy(): void {
    this.#strategy = this.#makeStrategy();
    this.#retryStrategy = this.#makeStrategy();
  }

  #makeStrategy(): Strategy<C> {
    const { policy, random } = this.#options;
    const activeCalls = () => this.outliers.activeCalls;
    return STRATEGIES[policy().strategy].create({ policy, random, activeCalls });
  }

  #apply(change: PoolChange<C>): void {
    const id = change.kind === 'up' ? change.candidate.id : change.id;
    const before = this.#byId.get(id);
    if (change.kind === 'up') this.#byId.set(id, change.candidate);
    else this.#byId.delete(id);
    // Without a look at each candidate: thousands come up one after the other.
    const added = change.kind === 'up' ? [change.candidate] : [];
    const removed = before === undefined ? 0 : 1;
    if (this.#isRead) this.#candidates = [...this.#candidates];
    this.#isRead = false;
    this.#candidates.splice(firstAfter(this.#candidates, id) - removed, removed, ...added);
    const after = this.#byId.get(id);
    if (before !== undefined && before !== after) this.outliers.left(before);
    if (after !== undefined && before !== after) this.outliers.joined(after);
    this.outliers.changed();
  }

  /**
   * Whether a candidate, full or not, may be chosen: not an excluded one, nor an ejected one while any other
   * is left.
   */
  #allowance(excluded: ReadonlySet<string>): (candidate: C) => boolean {
    const isNotExcluded = ({ id }: C) => !excluded.has(id);
    const isIncluded = (candidate: C) => isNotExcluded(candidate) && !this.outliers.isEjected(candidate);
    return this.candidates.some(isIncluded) ? isIncluded : isNotExcluded;
  }
}

function isBelowCapacity({ activeCalls, capacity }: Candidate): boolean {
  return activeCalls < capacity;
}
