// The instances that run the tasks of clients, for both eras and all paths: they are noted when a task begins. The code of each era
// sends requests about a task there, and refuses those about tasks of other owners.

import { isJsonObject, type JsonText } from '../domain/json.ts';
import { LIMITS } from '../domain/limits.ts';
import { LruMap } from '../domain/lru-map.ts';
import { aggregateInstance } from './aggregate/aggregate-names.ts';
import type { Owner } from './ports.ts';

/** Tasks remembered of one owner, and owners: no caller can push out the tasks of others. */
export const OWN_TASKS = 2_500;
export const OWNERS = 100;
/** Instances remembered that gave one owner the same task id. */
const MAX_INSTANCES = 8;
/** Longest id that is remembered, in characters. */
export const LONGEST_TASK_ID = 1_024;

/** The owner and the template of a request; without a template, the path of all templates. */
export interface TaskScope {
  readonly owner: Pick<Owner, 'id'>;
  readonly template: string | undefined;
}

/** The tasks that began at this node. Ids that cannot be remembered (`isTaskId`) belong to no owner. */
export class TaskLog {
  /** By owner, then by id: the instances as `{template}/{instance}`, the latest last, because two may give the same id. */
  readonly #owners = new LruMap<LruMap<readonly string[]>>(OWNERS);

  begun({ owner, template }: TaskScope, taskId: string, instanceId: string): void {
    if (!isTaskId(taskId)) return;
    const instance = template === undefined ? instanceId : aggregateInstance({ template, id: instanceId });
    const own = this.#owners.get(owner.id) ?? new LruMap(OWN_TASKS);
    const others = (own.get(taskId) ?? []).filter((known) => known !== instance);
    own.set(taskId, [...others.slice(1 - MAX_INSTANCES), instance]);
    this.#owners.set(owner.id, own);
  }

  /** The instances at which the owner began a task of that id, named as at the path of the scope, the latest last. */
  instancesOf({ owner, template }: TaskScope, taskId: string): readonly string[] {
    return at(template, this.#owners.get(owner.id)?.get(taskId));
  }

  /** True when only other owners began a task of that id at the path. */
  isOthers(scope: TaskScope, taskId: string): boolean {
    if (this.instancesOf(scope, taskId).length > 0) return false;
    return [...this.#owners.values()].some((tasks) => at(scope.template, tasks.get(taskId)).length > 0);
  }

  /** Remembers the task that a result reports as begun, if any. */
  learn(scope: TaskScope, result: JsonText, instanceId: string): void {
    const taskId = taskIdIn(result);
    if (taskId !== undefined) this.begun(scope, taskId, instanceId);
  }
}

/** Without a template: all of them, as they are. */
function at(template: string | undefined, instances: readonly string[] = []): readonly string[] {
  if (template === undefined) return instances;
  const prefix = aggregateInstance({ template, id: '' });
  return instances.flatMap((known) => (known.startsWith(prefix) ? known.slice(prefix.length) : []));
}

export function isTaskId(taskId: unknown): taskId is string {
  return typeof taskId === 'string' && taskId.length <= LONGEST_TASK_ID;
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
