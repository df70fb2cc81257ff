// Finds the instance that runs a task of an owner, for clients of both eras: from memory (task-memory.ts), or by asking the
// instances. The eras word and refuse the requests.

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
import { tooManySearches } from '../domain/error-catalogue.ts';
import type { ExchangeEvent } from '../domain/exchange.ts';
import type { JsonObject } from '../domain/json.ts';
import { type JsonRpcError, RPC } from '../domain/jsonrpc.ts';
import { splitInstance } from './aggregate/aggregate-names.ts';
import { LruMap } from './lru-map.ts';
import type { Backends, Owner } from './ports.ts';
import { TaskMemory, type TaskScope } from './task-memory.ts';

/** A task, its owner, and the instances that may run it. */
export interface TaskQuery {
  readonly taskId: string;
  readonly owner: Owner;
  /** Of the path; undefined for all templates together. */
  readonly template: string | undefined;
  readonly backends: Pick<Backends, 'modernInstanceIds' | 'inquire'>;
  /** The client's `_meta` for the request to the instances. */
  readonly meta: JsonObject;
}

/** Of all clients, at all paths. */
export class TaskFinder {
  readonly memory: TaskMemory;
  readonly #searches = new TaskSearches();

  constructor(memory: TaskMemory = new TaskMemory()) {
    this.memory = memory;
  }

  /**
   * Looks for the instance that runs an unknown task: emits the instance, NOT_FOUND when all instances deny it, or undefined
   * when the search did not decide. Cold; QUEUE_FULL when too many searches run. The result is remembered for this owner, and
   * does not exclude others. Instances at which only other owners began a task of that id are left out, since two instances
   * may give the same id. Returns undefined at the path of a template where there is no choice: fewer than two instances can
   * run the task, and no owner is known to have it.
   */
  seek(question: TaskQuery): Observable<SearchResult> | undefined {
    const { taskId, owner, template, backends } = question;
    const scope = { ownerId: owner.id, template };
    const all = backends.modernInstanceIds(owner);
    if (all.length < 2 && template !== undefined && !this.memory.isTaken(template, taskId)) return undefined;
    const instanceIds = all.filter((id) => !this.memory.isOthers(scope, taskId, id));
    if (instanceIds.length === 0) return of(NOT_FOUND);
    return this.#searches.search(scope, taskId, () => this.#search(question, scope, instanceIds));
  }

  #search(
    { taskId, owner, backends, meta }: TaskQuery,
    scope: TaskScope,
    instanceIds: readonly string[],
  ): Observable<SearchResult> {
    const request = { method: 'tasks/get', params: { taskId, _meta: meta } };
    const denials: number[] = [];
    const count = (event: ExchangeEvent): void => {
      if (event.kind === 'error' && isDenial(event.error)) denials.push(event.error.code);
    };
    const get = (instanceId: string) => backends.inquire(request, { owner, instanceId }).pipe(tap(count));
    const search = scope.template === undefined ? instanceOfTaskAnywhere : instanceOfTask;
    return search(instanceIds, get).pipe(
      map((found) => {
        if (found !== undefined) {
          this.memory.found(scope, taskId, found);
          return found;
        }
        // The server itself answers that it has no tasks at all.
        const isForServer =
          scope.template !== undefined && denials.every((code) => code === RPC.methodNotFound);
        return denials.length === instanceIds.length && !isForServer ? NOT_FOUND : undefined;
      }),
    );
  }
}

/** True when a server has no such task, or no tasks at all. Source: SEP-2663. */
function isDenial({ code }: JsonRpcError): boolean {
  return code === RPC.invalidParams || code === RPC.methodNotFound;
}

// The search for a task that began at another node, or before this one started. One request becomes many here, so that the
// number of searches is bounded.

/** Instances asked at the same time. */
const MOST_ASKED = 32;
/** Longest wait for an instance that knows the task. */
const PATIENCE_MS = 5_000;
/** Longest wait for further instances after the first one that knows the task. */
const HEARING_MS = 1_000;
/** Searches under way, and those of one owner. */
const MOST_SEARCHES = 64;
const MOST_OF_ONE = 4;
/** How long a search without a result is remembered, in ms, and how many of them. */
const MISS_MS = 1_000;
const MOST_MISSES = 1_000;

/** All instances that may run the task were asked, and none knows it. */
export const NOT_FOUND = Symbol('not found');

/** The instance that runs the task, or NOT_FOUND; undefined when the search did not decide. */
type SearchResult = string | typeof NOT_FOUND | undefined;

/** A search without a result, and until when it is not repeated. */
interface Miss {
  readonly untilMs: number;
  readonly sought: Exclude<SearchResult, string>;
}

/** The searches under way. */
export class TaskSearches {
  readonly #now: () => number;
  readonly #underWay = new Map<string, Observable<SearchResult>>();
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
   * The result of `begin`, or of the search that the same owner has under way for the same task; at once the last result when a
   * search has just found no instance. Cold; ends without subscribers. QUEUE_FULL when too many searches are under way, of
   * the owner or of all; while authentication is off all callers are one owner, which may have all.
   */
  search(
    { ownerId, template }: TaskScope,
    taskId: string,
    begin: () => Observable<SearchResult>,
  ): Observable<SearchResult> {
    return defer(() => {
      const key = JSON.stringify([ownerId, template, taskId]);
      const miss = this.#misses.get(key);
      if (miss !== undefined && this.#now() < miss.untilMs) return of(miss.sought);
      return this.#underWay.get(key) ?? this.#begin(key, ownerId, begin);
    });
  }

  #begin(key: string, ownerId: string, begin: () => Observable<SearchResult>): Observable<SearchResult> {
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
  return answeringInstances(instanceIds, get).pipe(take(1), defaultIfEmpty(undefined));
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
  return answeringInstances(instanceIds, get).pipe(
    connect((found$) => found$.pipe(takeUntil(found$.pipe(take(1), delay(HEARING_MS))))),
    toArray(),
    map((found) => {
      const templates = new Set(found.map((instanceId) => splitInstance(instanceId)?.template));
      return templates.size === 1 ? found[0] : undefined;
    }),
  );
}

/** Emits each that answers for the task with a result; completes when all have answered, or PATIENCE_MS are over. */
function answeringInstances(
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
