// Remembers the instance that runs a task, by owner: one memory for all paths and both eras. The eras word and answer the
// requests.

import { type MonoTypeOperatorFunction, tap } from 'rxjs';
import type { Answer } from '../domain/exchange.ts';
import { isJsonObject, type JsonText } from '../domain/json.ts';
import { LIMITS } from '../domain/limits.ts';
import { aggregateInstance, type OwnInstance, splitInstance } from './aggregate/aggregate-names.ts';
import { QuotaLruMap } from './lru-map.ts';

/** Tasks remembered, of all clients together; QuotaLruMap decides which one goes first. */
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

/** An instance that runs a task of this id. */
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
    for (const location of locations) this.#leave(location, taskId);
  });
  /** By template and task id: the number of owners that began such a task, by instance. */
  readonly #begun = new Map<string, Map<string, number>>();

  /** How many are remembered. */
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
      .filter((one) => (template ?? one.template) === one.template)
      .filter((one) => one.isBegun || !this.#isBegun(one, taskId))
      .map((one) => (template === undefined ? aggregateInstance(one) : one.instanceId));
  }

  /** True when an owner began a task of that id at the template. */
  isTaken(template: string, taskId: string): boolean {
    return isTaskId(taskId) && this.#begun.has(keyOf(template, taskId));
  }

  /** True when only other owners began a task of that id at this instance. */
  isOthers(scope: TaskScope, taskId: string, instanceId: string): boolean {
    const own = ownOf(scope, instanceId);
    if (own === undefined || !isTaskId(taskId) || !this.#isBegun(own, taskId)) return false;
    const locations = this.#known.get(scope.ownerId, taskId)?.locations ?? [];
    return !locations.some((one) => one.isBegun && isSame(one, own));
  }

  /** The owner found the task there, which does not exclude other owners. */
  found(scope: TaskScope, taskId: string, instanceId: string): void {
    this.#store(scope, taskId, instanceId, false);
  }

  /** The owner began the task there. */
  begun(scope: TaskScope, taskId: string, instanceId: string): void {
    this.#store(scope, taskId, instanceId, true);
  }

  /** Learns of the task that a request begins. */
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
    const before = locations.find((one) => isSame(one, own));
    const others = locations.filter((one) => one !== before);
    const [oldest] = others;
    if (oldest !== undefined && others.length >= MOST_LOCATIONS) this.#leave(oldest, taskId);
    const location = { ...own, isBegun: isBegun || before?.isBegun === true };
    if (location.isBegun && before?.isBegun !== true) this.#take(location, taskId);
    this.#known.set(scope.ownerId, taskId, {
      taskId,
      locations: [...others.slice(1 - MOST_LOCATIONS), location],
    });
  }

  #isBegun({ template, instanceId }: OwnInstance, taskId: string): boolean {
    return this.#begun.get(keyOf(template, taskId))?.has(instanceId) === true;
  }

  #take({ template, instanceId }: TaskLocation, taskId: string): void {
    const key = keyOf(template, taskId);
    const instances = this.#begun.get(key) ?? new Map<string, number>();
    instances.set(instanceId, (instances.get(instanceId) ?? 0) + 1);
    this.#begun.set(key, instances);
  }

  #leave({ template, instanceId, isBegun }: TaskLocation, taskId: string): void {
    const key = keyOf(template, taskId);
    const instances = this.#begun.get(key);
    if (!isBegun || instances === undefined) return;
    const left = (instances.get(instanceId) ?? 0) - 1;
    if (left > 0) instances.set(instanceId, left);
    else instances.delete(instanceId);
    if (instances.size === 0) this.#begun.delete(key);
  }
}

/** True for an id that can be remembered. */
export function isTaskId(taskId: unknown): taskId is string {
  return typeof taskId === 'string' && taskId.length <= LONGEST_ID;
}

/** True for the methods that name a task by its `taskId`, which means nothing in any other. */
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

function isSame(one: OwnInstance, other: OwnInstance): boolean {
  return one.template === other.template && one.instanceId === other.instanceId;
}

function keyOf(...parts: readonly string[]): string {
  return JSON.stringify(parts);
}
