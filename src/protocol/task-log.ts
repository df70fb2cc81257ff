// The instances that run the tasks of clients, for both eras and all paths: they are noted when a task begins. The
// code of each era sends requests about a task there, and refuses those about tasks of other owners. A task that
// did not begin here is asked of the other nodes, once.

import { queueFull } from '../domain/errors/error-catalogue.ts';
import { isJsonObject, type JsonText } from '../domain/json/json.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Owner } from '../domain/mcp/client.ts';
import { LruMap } from '../domain/memory/lru-map.ts';
import { OwnerShares } from '../domain/memory/owner-shares.ts';
import type { Clock } from '../domain/time/clock.ts';
import { aggregateInstance, splitInstance } from './aggregate/names.ts';

/** Tasks remembered of one owner, and owners: no caller can push out the tasks of others. */
export const OWN_TASKS = 2_500;
export const OWNERS = 100;
/** Instances remembered that gave one owner the same task id. */
const MAX_INSTANCES = 8;
/** Longest id that is remembered, in characters. */
export const LONGEST_TASK_ID = 1_024;

/** The owner and the template, or view, of a request; without one, the path of all templates. */
export interface TaskScope {
  readonly owner: Pick<Owner, 'id'>;
  readonly template: string | undefined;
}

/** What a node knows of a task. */
export interface TaskPlaces {
  /** See TaskLog.instancesOf. */
  readonly instances: readonly string[];
  /** See TaskLog.isOthers. */
  readonly isOthers: boolean;
}

/** The other nodes. Its promises are bounded in time and never reject. */
export interface TaskPeers {
  /** `undefined` in the place of a node that did not answer. No promise where there are no other nodes. */
  ask(scope: TaskScope, taskId: string): Promise<readonly (TaskPlaces | undefined)[]> | undefined;
}

/** Questions to the other nodes that are remembered, and for how long: an instance may give an id again. */
const MAX_ASKED = 4_096;
const ASKED_MS = 60_000;
/** Tasks that are asked about at a time; an owner has a share of them: see LIMITS.ownerShare. Over it a request is refused. */
export const MAX_ASKING = 64;

/** The templates of a view; undefined for the name of a template. */
export type TemplatesOfView = (name: string) => readonly string[] | undefined;

interface Asked {
  readonly atMs: number;
  /** While the other nodes have not answered. */
  asking: Promise<void> | undefined;
  isOthers: boolean;
}

/**
 * The tasks that began at this node, or were found at another one. Ids that cannot be remembered (`isTaskId`)
 * belong to no owner.
 */
export class TaskLog {
  readonly #now: Clock['now'];
  /** By owner, then by id: the instances as `{template}/{instance}`, the latest last, because two may give the same id. */
  readonly #owners = new LruMap<LruMap<readonly string[]>>(OWNERS);
  readonly #asked = new LruMap<Asked>(MAX_ASKED);
  readonly #asking = new OwnerShares(MAX_ASKING);
  readonly #templatesOf: TemplatesOfView;
  #peers: TaskPeers | undefined;

  constructor({ now }: Pick<Clock, 'now'>, templatesOf: TemplatesOfView = () => undefined) {
    this.#now = now;
    this.#templatesOf = templatesOf;
  }

  /** Asks these nodes about tasks that did not begin here. */
  shareIn(peers: TaskPeers): void {
    this.#peers = peers;
  }

  /**
   * Resolves when the other nodes have told where the task is. Undefined where that is known, or cannot be.
   * Rejects with QUEUE_FULL: a task about which no node was asked may be of another owner.
   */
  untilKnown(scope: TaskScope, taskId: string): Promise<void> | undefined {
    if (this.#peers === undefined || this.instancesOf(scope, taskId).length > 0) return undefined;
    const key = taskKey(scope, taskId);
    const before = this.#asked.get(key);
    if (before !== undefined && this.#now() - before.atMs < ASKED_MS) return before.asking;
    const { id } = scope.owner;
    if (this.#asking.isFull || this.#asking.isShareFull(id))
      return Promise.reject(queueFull('the tasks of other nodes'));
    const answers = this.#peers.ask(scope, taskId);
    if (answers === undefined) return undefined;
    const asked: Asked = { atMs: this.#now(), asking: undefined, isOthers: false };
    this.#asking.take(id);
    asked.asking = answers.then((places) => {
      this.#asking.release(id);
      asked.asking = undefined;
      for (const { instances } of places.filter((each) => each !== undefined))
        for (const instance of instances) this.begun(scope, taskId, instance);
      asked.isOthers = places.some((each) => each?.isOthers);
      // A node that did not answer is asked again.
      const isComplete = asked.isOthers || !places.includes(undefined);
      if (!isComplete && this.#asked.get(key) === asked) this.#asked.delete(key);
    });
    this.#asked.set(key, asked);
    return asked.asking;
  }

  /** For another node: what this one knows of the task. */
  placesOf(scope: TaskScope, taskId: string): TaskPlaces {
    const instances = this.instancesOf(scope, taskId);
    return { instances, isOthers: instances.length === 0 && this.#hasBegun(scope.template, taskId) };
  }

  begun({ owner, template }: TaskScope, taskId: string, instanceId: string): void {
    if (!isTaskId(taskId)) return;
    const isAggregate = template === undefined || splitInstance(instanceId) !== undefined; // in a view, too
    const instance = isAggregate ? instanceId : aggregateInstance({ template, id: instanceId });
    const own = this.#owners.get(owner.id) ?? new LruMap(OWN_TASKS);
    const others = (own.get(taskId) ?? []).filter((known) => known !== instance);
    own.set(taskId, [...others.slice(1 - MAX_INSTANCES), instance]);
    this.#owners.set(owner.id, own);
  }

  /** The instances at which the owner began a task of that id, named as at the path of the scope, the latest last. */
  instancesOf({ owner, template }: TaskScope, taskId: string): readonly string[] {
    return this.#at(template, this.#owners.get(owner.id)?.get(taskId));
  }

  /** True when only other owners began a task of that id at the path. */
  isOthers(scope: TaskScope, taskId: string): boolean {
    if (this.instancesOf(scope, taskId).length > 0) return false;
    const asked = this.#asked.get(taskKey(scope, taskId));
    return asked?.isOthers === true || this.#hasBegun(scope.template, taskId);
  }

  #hasBegun(template: string | undefined, taskId: string): boolean {
    return [...this.#owners.values()].some((tasks) => this.#at(template, tasks.get(taskId)).length > 0);
  }

  /** Without a template: all of them, as they are; in a view those of its templates. */
  #at(template: string | undefined, instances: readonly string[] = []): readonly string[] {
    if (template === undefined || instances.length === 0) return instances;
    const ofView = this.#templatesOf(template);
    if (ofView !== undefined)
      return instances.filter((known) => ofView.includes(splitInstance(known)?.template ?? ''));
    const prefix = aggregateInstance({ template, id: '' });
    return instances.flatMap((known) => (known.startsWith(prefix) ? known.slice(prefix.length) : []));
  }

  /** Remembers the task that a result reports as begun, if any. */
  learn(scope: TaskScope, result: JsonText, instanceId: string): void {
    const taskId = taskIdIn(result);
    if (taskId !== undefined) this.begun(scope, taskId, instanceId);
  }
}

function taskKey({ owner, template }: TaskScope, taskId: string): string {
  return JSON.stringify([owner.id, template ?? null, taskId]);
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
