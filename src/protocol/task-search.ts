// Finds the instance that runs a task of which this node has not heard: it began at another node, or before this one was
// started. One request becomes many here, so that few may look at a time. What is heard of is in task-memory.ts.

import {
  catchError,
  defaultIfEmpty,
  defer,
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
} from 'rxjs';
import { ANONYMOUS } from '../domain/account.ts';
import type { Answer } from '../domain/exchange.ts';
import { tooManySearches } from '../domain/session-errors.ts';
import { RecentMap } from './recent-map.ts';
import type { TaskAsker } from './task-memory.ts';

/** Instances that are asked, all at once. */
const MOST_ASKED = 32;
/** Longest wait for one that knows it: nobody says when none does and one is slow. */
const PATIENCE_MS = 5_000;
/** Searches under way, and those of one owner. */
const MOST_SEARCHES = 16;
const MOST_OF_ONE = 4;
/** How long it is remembered, in ms, that nobody knew a task, and of how many. */
const MISS_MS = 1_000;
const MOST_MISSES = 1_000;

/** The searches under way. */
export class TaskSearches {
  readonly #now: () => number;
  readonly #underWay = new Map<string, Observable<string | undefined>>();
  /** How many each owner has under way. */
  readonly #owners = new Map<string, number>();
  /** Until when. */
  readonly #misses = new RecentMap<number>(MOST_MISSES);

  /** `now`: monotonic clock in ms. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** How many are under way. */
  get size(): number {
    return this.#underWay.size;
  }

  /**
   * What `begin` finds, or the search that the same owner has under way for the same task; undefined at once when one has
   * just found nobody. Cold; ends when nobody waits for it. QUEUE_FULL when too many are under way, his or all; while
   * authentication is off all callers are one owner, who may have all.
   */
  search(
    { ownerId, template }: TaskAsker,
    taskId: string,
    begin: () => Observable<string | undefined>,
  ): Observable<string | undefined> {
    return defer(() => {
      const key = JSON.stringify([ownerId, template, taskId]);
      if (this.#now() < (this.#misses.get(key) ?? 0)) return of(undefined);
      return this.#underWay.get(key) ?? this.#begin(key, ownerId, begin);
    });
  }

  #begin(
    key: string,
    ownerId: string,
    begin: () => Observable<string | undefined>,
  ): Observable<string | undefined> {
    const own = this.#owners.get(ownerId) ?? 0;
    const most = ownerId === ANONYMOUS.id ? MOST_SEARCHES : MOST_OF_ONE;
    if (own >= most || this.#underWay.size >= MOST_SEARCHES) throw tooManySearches();
    const search$ = defer(begin).pipe(
      tap((found) => found === undefined && this.#misses.set(key, this.#now() + MISS_MS)),
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
  get: (instanceId: string) => Observable<Answer>,
): Observable<string | undefined> {
  const answering = instanceIds.slice(0, MOST_ASKED).map((instanceId) =>
    get(instanceId).pipe(
      filter(({ event }) => event.kind === 'result'),
      map(() => instanceId),
      catchError(() => EMPTY),
    ),
  );
  return merge(...answering).pipe(takeUntil(timer(PATIENCE_MS)), take(1), defaultIfEmpty(undefined));
}
