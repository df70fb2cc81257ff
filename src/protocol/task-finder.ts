// Finds the instance that runs a task of an owner, for clients of both eras: from one memory for all paths, or by asking the
// instances. The code of each era refuses and answers the requests.

import {
  catchError,
  connect,
  defaultIfEmpty,
  defer,
  delay,
  EMPTY,
  filter,
  finalize,
  type MonoTypeOperatorFunction,
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
import type { Answer, ExchangeEvent } from '../domain/exchange.ts';
import { isJsonObject, type JsonObject, type JsonText } from '../domain/json.ts';
import { type JsonRpcError, RPC } from '../domain/jsonrpc.ts';
import { LIMITS } from '../domain/limits.ts';
import { LruMap, QuotaLruMap } from '../domain/lru-map.ts';
import { aggregateInstance, type OwnInstance, splitInstance } from './aggregate/aggregate-names.ts';
import type { Backends, Owner } from './ports.ts';

export interface TaskQuery {
  readonly taskId: string;
  readonly owner: Owner;
  /** Of the path; undefined for all templates together. */
  readonly template: string | undefined;
  readonly backends: Pick<Backends, 'modernInstanceIds' | 'askInstance'>;
  /** The client's `_meta` for the request to the instances. */
  readonly meta: JsonObject;
}

export class TaskFinder {
  readonly memory = new TaskMemory();
  readonly #searches = new TaskSearches();

  /**
   * Looks for the instance that runs an unknown task: emits the instance, NOT_FOUND when all instances deny it, or undefined
   * when the search did not decide. Cold; QUEUE_FULL when too many searches run. The result is remembered for this owner, and
   * does not exclude others. Instances at which only other owners began a task of that id are left out, since two instances
   * may give the same id. Returns undefined at the path of a template where there is no choice: fewer than two instances can
   * run the task, and no owner is known to have it.
   */
  search(query: TaskQuery): Observable<SearchResult> | undefined {
    const { taskId, owner, template, backends } = query;
    const scope = { ownerId: owner.id, template };
    const all = backends.modernInstanceIds(owner);
    if (all.length < 2 && template !== undefined && !this.memory.isTaken(template, taskId)) return undefined;
    const instanceIds = all.filter((id) => !this.memory.isOthers(scope, taskId, id));
    if (instanceIds.length === 0) return of(NOT_FOUND);
    return this.#searches.search(scope, taskId, () => this.#ask(query, scope, instanceIds));
  }

  #ask(
    { taskId, owner, backends, meta }: TaskQuery,
    scope: TaskScope,
    instanceIds: readonly string[],
  ): Observable<SearchResult> {
    const request = { method: 'tasks/get', params: { taskId, _meta: meta } };
    const denials: number[] = [];
    const count = (event: ExchangeEvent): void => {
      if (event.kind === 'error' && isDenial(event.error)) denials.push(event.error.code);
    };
    const get = (instanceId: string) => backends.askInstance(request, { owner, instanceId }).pipe(tap(count));
    return instanceOfTask(scope.template, instanceIds, get).pipe(
      map((found) => {
        if (found !== undefined) {
          this.memory.found(scope, taskId, found);
          return found;
        }
        // Not decided: the server itself is to answer that it has no tasks at all.
        const hasNoTasks =
          scope.template !== undefined && denials.every((code) => code === RPC.methodNotFound);
        return denials.length === instanceIds.length && !hasNoTasks ? NOT_FOUND : undefined;
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

const MOST_ASKED = 32;
/** Longest wait for an instance that knows the task. */
const SEARCH_MS = 5_000;
/** Longest wait for further instances after the first one that knows the task. */
const FURTHER_MS = 1_000;
/** Searches under way, and those of one owner. */
const MOST_SEARCHES = 64;
const MOST_OF_OWNER = 4;
/** How long a search without a result is remembered, in ms, and how many of them. */
const MISS_MS = 1_000;
const MOST_MISSES = 1_000;

/** All instances that may run the task were asked, and none knows it. */
export const NOT_FOUND = Symbol('not found');

/** The instance that runs the task, or NOT_FOUND; undefined when the search did not decide. */
type SearchResult = string | typeof NOT_FOUND | undefined;

export class TaskSearches {
  readonly #now: () => number;
  readonly #underWay = new Map<
    string,
    { readonly ownerId: string; readonly search$: Observable<SearchResult> }
  >();
  /** Searches that found no instance, and until when they are not repeated. */
  readonly #misses = new LruMap<{ untilMs: number; result: SearchResult }>(MOST_MISSES);

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  get size(): number {
    return this.#underWay.size;
  }

  /**
   * The result of `begin`, or of the search that the same owner has under way for the same task; at once the last result when a
   * search has just found no instance. Cold; ends without subscribers. QUEUE_FULL when too many searches are under way, of
   * the owner or of all; while authentication is off all callers are one owner without a separate bound.
   */
  search(
    { ownerId, template }: TaskScope,
    taskId: string,
    begin: () => Observable<SearchResult>,
  ): Observable<SearchResult> {
    return defer(() => {
      const key = JSON.stringify([ownerId, template, taskId]);
      const miss = this.#misses.get(key);
      if (miss !== undefined && this.#now() < miss.untilMs) return of(miss.result);
      return this.#underWay.get(key)?.search$ ?? this.#begin(key, ownerId, begin);
    });
  }

  #begin(key: string, ownerId: string, begin: () => Observable<SearchResult>): Observable<SearchResult> {
    const own = [...this.#underWay.values()].filter((search) => search.ownerId === ownerId);
    const most = ownerId === ANONYMOUS.id ? MOST_SEARCHES : MOST_OF_OWNER;
    if (own.length >= most || this.#underWay.size >= MOST_SEARCHES) throw tooManySearches();
    const search$ = defer(begin).pipe(
      tap((result) => {
        if (typeof result !== 'string') this.#misses.set(key, { untilMs: this.#now() + MISS_MS, result });
      }),
      finalize(() => this.#underWay.delete(key)),
      share(),
    );
    this.#underWay.set(key, { ownerId, search$ });
    return search$;
  }
}

/**
 * Emits the first instance whose answer about the task is a result, or undefined when there is none within SEARCH_MS; then
 * completes. `get` asks one of them. Cold; never errors: an instance that cannot be asked does not know the task.
 *
 * Without a template, the servers of several templates are asked, which know nothing of each other: two of them may give
 * one id to two callers. Then no instance is emitted, and after the first one the others have FURTHER_MS. Instances of one
 * template count as one server, as they do at the path of the template.
 */
export function instanceOfTask(
  template: string | undefined,
  instanceIds: readonly string[],
  get: (instanceId: string) => Observable<ExchangeEvent>,
): Observable<string | undefined> {
  const answers = instanceIds.slice(0, MOST_ASKED).map((instanceId) =>
    get(instanceId).pipe(
      filter(({ kind }) => kind === 'result'),
      map(() => instanceId),
      catchError(() => EMPTY),
    ),
  );
  const found$ = merge(...answers).pipe(takeUntil(timer(SEARCH_MS)));
  if (template !== undefined) return found$.pipe(take(1), defaultIfEmpty(undefined));
  return found$.pipe(
    connect((shared$) => shared$.pipe(takeUntil(shared$.pipe(take(1), delay(FURTHER_MS))))),
    toArray(),
    map((found) => {
      const templates = new Set(found.map((instanceId) => splitInstance(instanceId)?.template));
      return templates.size === 1 ? found[0] : undefined;
    }),
  );
}

/** Tasks remembered, of all clients together; QuotaLruMap decides which one is evicted. */
const MOST_TASKS = 10_000;
/** Instances remembered that gave one client the same task id. */
const MOST_LOCATIONS = 8;
/** Longest id that is remembered, in characters. */
const LONGEST_ID = 1_024;

/** Owner and path of a request. Without a template: all templates together. */
export interface TaskScope {
  readonly ownerId: string;
  readonly template: string | undefined;
}

interface TaskLocation extends OwnInstance {
  /** False: the owner only found the task there, which does not exclude other owners. */
  readonly isBegun: boolean;
}

/** The tasks of one owner with one id, latest last: two instances may give the same id. */
interface OwnedTask {
  readonly taskId: string;
  readonly locations: readonly TaskLocation[];
}

/** The known tasks. Ids that cannot be remembered (`isTaskId`) belong to no owner. */
export class TaskMemory {
  readonly #known = new QuotaLruMap<OwnedTask>(MOST_TASKS, ({ taskId, locations }) => {
    for (const location of locations) this.#forget(location, taskId);
  });
  /** Number of owners that began a task: by template and task id, and by template, task id and instance. */
  readonly #begun = new Map<string, number>();

  get size(): number {
    return this.#known.size;
  }

  /** The instance that runs the task, named as at the path of the scope; the latest one of several. */
  find(scope: TaskScope, taskId: string): string | undefined {
    return this.all(scope, taskId).at(-1);
  }

  /** All instances at which the owner has a task of that id, named as in `find`, the latest last. */
  all({ ownerId, template }: TaskScope, taskId: string): readonly string[] {
    const locations = isTaskId(taskId) ? this.#known.get(ownerId, taskId)?.locations : undefined;
    return (locations ?? [])
      .filter((location) => (template ?? location.template) === location.template)
      .filter((location) => location.isBegun || !this.#isBegun(location, taskId))
      .map((location) => (template === undefined ? aggregateInstance(location) : location.instanceId));
  }

  /** True when an owner began a task of that id at the template. */
  isTaken(template: string, taskId: string): boolean {
    return isTaskId(taskId) && this.#begun.has(joinedKey(template, taskId));
  }

  /** True when only other owners began a task of that id at this instance. */
  isOthers(scope: TaskScope, taskId: string, instanceId: string): boolean {
    const own = ownOf(scope, instanceId);
    if (own === undefined || !isTaskId(taskId) || !this.#isBegun(own, taskId)) return false;
    const locations = this.#known.get(scope.ownerId, taskId)?.locations ?? [];
    return !locations.some((location) => location.isBegun && isSame(location, own));
  }

  /** The owner found the task there, which does not exclude other owners. */
  found(scope: TaskScope, taskId: string, instanceId: string): void {
    this.#store(scope, taskId, instanceId, false);
  }

  begun(scope: TaskScope, taskId: string, instanceId: string): void {
    this.#store(scope, taskId, instanceId, true);
  }

  following(scope: TaskScope): MonoTypeOperatorFunction<Answer> {
    return tap(({ event, instanceId }) => {
      const taskId = event.kind === 'result' ? taskIdIn(event.result) : undefined;
      if (taskId !== undefined) this.begun(scope, taskId, instanceId);
    });
  }

  #store(scope: TaskScope, taskId: string, instanceId: string, isBegun: boolean): void {
    const own = ownOf(scope, instanceId);
    if (own === undefined || !isTaskId(taskId)) return;
    const { locations = [] } = this.#known.get(scope.ownerId, taskId) ?? {};
    const before = locations.find((location) => isSame(location, own));
    const others = locations.filter((location) => location !== before);
    const [oldest] = others;
    if (oldest !== undefined && others.length >= MOST_LOCATIONS) this.#forget(oldest, taskId);
    const location = { ...own, isBegun: isBegun || before?.isBegun === true };
    if (location.isBegun && before?.isBegun !== true) this.#count(location, taskId, 1);
    this.#known.set(scope.ownerId, taskId, {
      taskId,
      locations: [...others.slice(1 - MOST_LOCATIONS), location],
    });
  }

  #isBegun({ template, instanceId }: OwnInstance, taskId: string): boolean {
    return this.#begun.has(joinedKey(template, taskId, instanceId));
  }

  #forget(location: TaskLocation, taskId: string): void {
    if (location.isBegun) this.#count(location, taskId, -1);
  }

  #count({ template, instanceId }: TaskLocation, taskId: string, difference: 1 | -1): void {
    for (const key of [joinedKey(template, taskId), joinedKey(template, taskId, instanceId)]) {
      const count = (this.#begun.get(key) ?? 0) + difference;
      if (count > 0) this.#begun.set(key, count);
      else this.#begun.delete(key);
    }
  }
}

export function isTaskId(taskId: unknown): taskId is string {
  return typeof taskId === 'string' && taskId.length <= LONGEST_ID;
}

/** True for the methods that name a task by `taskId`; that field has no meaning in other methods. */
export function isTaskMethod(method: string): boolean {
  return method.startsWith('tasks/');
}

/**
 * Id of the task that a result reports as begun; undefined for any other result. Only small results report tasks.
 * Source: MCP 2025-11-25 basic/utilities/tasks (in `task`), SEP-2663 (in a result of another type than `complete`).
 */
export function taskIdIn(result: JsonText): string | undefined {
  if (result.bytes.length > LIMITS.inspectedResultBytes || !isJsonObject(result.value)) return undefined;
  const { task, taskId, resultType = 'complete' } = result.value;
  if (isJsonObject(task)) return isTaskId(task.taskId) ? task.taskId : undefined;
  return resultType !== 'complete' && isTaskId(taskId) ? taskId : undefined;
}

/** The instance as its template names it. */
function ownOf({ template }: TaskScope, instanceId: string): OwnInstance | undefined {
  return template === undefined ? splitInstance(instanceId) : { template, instanceId };
}

function isSame(a: OwnInstance, b: OwnInstance): boolean {
  return a.template === b.template && a.instanceId === b.instanceId;
}

function joinedKey(...parts: readonly string[]): string {
  return JSON.stringify(parts);
}
