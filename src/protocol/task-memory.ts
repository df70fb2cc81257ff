// The instances that run the tasks of clients, for both eras and all paths: they are noted when a task begins. The code of each era
// sends requests about a task there, and refuses those about tasks of other owners.

import { type MonoTypeOperatorFunction, tap } from 'rxjs';
import type { Answer } from '../domain/exchange.ts';
import { isJsonObject, type JsonText } from '../domain/json.ts';
import { LIMITS } from '../domain/limits.ts';
import { LruMap } from '../domain/lru-map.ts';
import { aggregateInstance, type OwnInstance, splitInstance } from './aggregate/aggregate-names.ts';

/** Tasks remembered, of all clients together. */
const MOST_TASKS = 10_000;
/** Instances remembered that gave the same task id. */
const MOST_LOCATIONS = 8;
/** Longest id that is remembered, in characters. */
const LONGEST_ID = 1_024;

/** Owner and path of a request. Without a template: all templates together. */
export interface TaskScope {
  readonly ownerId: string;
  readonly template: string | undefined;
}

interface TaskLocation extends OwnInstance {
  readonly ownerId: string;
}

/** The tasks that began at this node. Ids that cannot be remembered (`isTaskId`) belong to no owner. */
export class TaskMemory {
  /** By id, the latest location last: two instances may give the same id. */
  readonly #known = new LruMap<readonly TaskLocation[]>(MOST_TASKS);

  begun({ ownerId, template }: TaskScope, taskId: string, instanceId: string): void {
    const own = template === undefined ? splitInstance(instanceId) : { template, instanceId };
    if (own === undefined || !isTaskId(taskId)) return;
    const location = { ...own, ownerId };
    const others = (this.#known.get(taskId) ?? []).filter((known) => !isSame(known, location));
    this.#known.set(taskId, [...others.slice(1 - MOST_LOCATIONS), location]);
  }

  /** The instances at which the owner began a task of that id, named as at the path of the scope, the latest last. */
  instancesOf({ ownerId, template }: TaskScope, taskId: string): readonly string[] {
    return this.#at(template, taskId)
      .filter((location) => location.ownerId === ownerId)
      .map((location) => (template === undefined ? aggregateInstance(location) : location.instanceId));
  }

  /** True when only other owners began a task of that id at the path. */
  isOthers({ ownerId, template }: TaskScope, taskId: string): boolean {
    const locations = this.#at(template, taskId);
    return locations.length > 0 && locations.every((location) => location.ownerId !== ownerId);
  }

  /** Remembers the task that an exchange begins. */
  following(scope: TaskScope): MonoTypeOperatorFunction<Answer> {
    return tap(({ event, instanceId }) => {
      const taskId = event.kind === 'result' ? taskIdIn(event.result) : undefined;
      if (taskId !== undefined) this.begun(scope, taskId, instanceId);
    });
  }

  #at(template: string | undefined, taskId: string): readonly TaskLocation[] {
    const locations = this.#known.get(taskId) ?? [];
    return locations.filter((location) => template === undefined || template === location.template);
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

function isSame(a: TaskLocation, b: TaskLocation): boolean {
  return a.ownerId === b.ownerId && a.template === b.template && a.instanceId === b.instanceId;
}
