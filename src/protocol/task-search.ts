// Finds the instance that runs a task of which this node has not heard: it began at another node, or before this one was
// started. One request becomes many here, so that few may look at a time. What is heard of is in task-memory.ts.

import {
  catchError,
  connect,
  defaultIfEmpty,
  defer,
  delay,
  EMPTY,
  filter,
  finalize,
  map,
  merge,
  type Observable,
  of,
  share,
  take,
  takeUntil,
  tap,
  timer,
  toArray,
} from 'rxjs';
import { ANONYMOUS } from '../domain/account.ts';
import type { ExchangeEvent } from '../domain/exchange.ts';
import { tooManySearches } from '../domain/session-errors.ts';
import { splitInstance } from './aggregate/aggregate-names.ts';
import { LruMap } from './lru-map.ts';
import type { TaskAsker } from './task-memory.ts';

/** Instances that are asked, all at once. */
const MOST_ASKED = 32;
/** Longest wait for one that knows it: nobody says when none does and one is slow. */
const PATIENCE_MS = 5_000;
/** Longest wait for others, once somebody knows it. */
const HEARING_MS = 1_000;
/** Searches under way, and those of one owner. */
const MOST_SEARCHES = 64;
const MOST_OF_ONE = 4;
/** How long it is remembered, in ms, that nobody knew a task, and of how many. */
const MISS_MS = 1_000;
const MOST_MISSES = 1_000;

/** All that may run the task were asked, and said that they know none of that id. */
export const NOBODY = Symbol('nobody');

/** The instance that runs it, or that there is none; undefined when that is not certain. */
export type Sought = string | typeof NOBODY | undefined;

/** What was not found, and until when nobody is asked again. */
interface Miss {
  readonly untilMs: number;
  readonly sought: Exclude<Sought, string>;
}

/** The searches under way. */
export class TaskSearches {
  readonly #now: () => number;
  readonly #underWay = new Map<string, Observable<Sought>>();
  /** How many each owner has under way. */
  readonly #owners = new Map<string, number>();
  readonly #misses = new LruMap<Miss>(MOST_MISSES);

  /** `now`: monotonic clock in ms. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** How many are under way. */
  get size(): number {
    return this.#underWay.size;
  }

  /**
   * What `begin` finds, or the search that the same owner has under way for the same task; at once what came of it when one
   * has just found no instance. Cold; ends when nobody waits for it. QUEUE_FULL when too many are under way, his or all; while
   * authentication is off all callers are one owner, who may have all.
   */
  search(
    { ownerId, template }: TaskAsker,
    taskId: string,
    begin: () => Observable<Sought>,
  ): Observable<Sought> {
    return defer(() => {
      const key = JSON.stringify([ownerId, template, taskId]);
      const miss = this.#misses.get(key);
      if (miss !== undefined && this.#now() < miss.untilMs) return of(miss.sought);
      return this.#underWay.get(key) ?? this.#begin(key, ownerId, begin);
    });
  }

  #begin(key: string, ownerId: string, begin: () => Observable<Sought>): Observable<Sought> {
    const own = this.#owners.get(ownerId) ?? 0;
    const most = ownerId === ANONYMOUS.id ? MOST_SEARCHES : MOST_OF_ONE;
    if (own >= most || this.#underWay.size >= MOST_SEARCHES) throw tooManySearches();
    const search$ = defer(begin).pipe(
      tap((sought) => {
        if (typeof sought !== 'string') this.#misses.set(key, { untilMs: this.#now() + MISS_MS, sought });
      }),
      finalize(() => this.#end(key, ownerId)),
      share(),
    );
    this.#owners.set(ownerId, own + 1);
    this.#underWay.set(key, search$);
    return search$;
  }

  #end(key: string, ownerId: string): void {
    this.#underWay.delete(key);
    const left = (this.#owners.get(ownerId) ?? 0) - 1;
    if (left > 0) this.#owners.set(ownerId, left);
    else this.#owners.delete(ownerId);
  }
}

/**
 * Emits the first instance that answers for the task with a result, or undefined when none does within PATIENCE_MS; then
 * completes. `get` asks one of them. Cold; never errors: one that cannot be asked does not know it.
 */
export function instanceOfTask(
  instanceIds: readonly string[],
  get: (instanceId: string) => Observable<ExchangeEvent>,
): Observable<string | undefined> {
  return knowing(instanceIds, get).pipe(take(1), defaultIfEmpty(undefined));
}

/**
 * The same over all templates, whose servers know nothing of each other: two of them may give one id to two callers, and
 * which one is meant cannot be known, so that none is. The others have HEARING_MS for that from the first one on. Instances
 * of one template are taken for one server, as they are at its own path.
 */
export function instanceOfTaskAnywhere(
  instanceIds: readonly string[],
  get: (instanceId: string) => Observable<ExchangeEvent>,
): Observable<string | undefined> {
  return knowing(instanceIds, get).pipe(
    connect((found$) => found$.pipe(takeUntil(found$.pipe(take(1), delay(HEARING_MS))))),
    toArray(),
    map((found) => {
      const templates = new Set(found.map((instanceId) => splitInstance(instanceId)?.template));
      return templates.size === 1 ? found[0] : undefined;
    }),
  );
}

/** Emits each that answers for the task with a result; completes when all have answered, or PATIENCE_MS are over. */
function knowing(
  instanceIds: readonly string[],
  get: (instanceId: string) => Observable<ExchangeEvent>,
): Observable<string> {
  const answering = instanceIds.slice(0, MOST_ASKED).map((instanceId) =>
    get(instanceId).pipe(
      filter(({ kind }) => kind === 'result'),
      map(() => instanceId),
      catchError(() => EMPTY),
    ),
  );
  return merge(...answering).pipe(takeUntil(timer(PATIENCE_MS)));
}
