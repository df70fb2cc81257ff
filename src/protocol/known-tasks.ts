// Remembers which instances run the tasks of clients, for both eras and all paths. The code of each era sends requests
// about a task to its instance, and refuses those about tasks of other owners, or of tools that the caller may not call any
// more. For a task that did not begin on this node, the other nodes are asked once.

import { countedIdOf } from '../domain/accounts/principal.ts';
import { mayCall } from '../domain/accounts/rights.ts';
import { tooMany } from '../domain/errors/request-errors.ts';
import { isJsonObject, type JsonText } from '../domain/json/json.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Owner } from '../domain/mcp/client.ts';
import { LruMap } from '../domain/memory/lru-map.ts';
import { UserShares } from '../domain/memory/user-shares.ts';
import type { Clock } from '../domain/time/clock.ts';
import { aggregateInstance, splitInstance } from './aggregate/aggregate-names.ts';

/**
 * The most remembered tasks of one user, whose clients count together, and the most remembered users: no caller can displace the
 * tasks of others.
 */
export const MAX_OWN_TASKS = 2_500;
export const MAX_OWNERS = 100;
/** The most remembered instances that gave one client of a user the same task id, and all clients of the user together. */
export const MAX_TASK_INSTANCES = 8;
export const MAX_USER_INSTANCES = 32;
/** The longest id that is remembered, and the longest name of a tool, in characters. */
export const MAX_TASK_ID_LENGTH = 1_024;

/** The owner of a request, and the name in its path, of a template or a view; undefined at the path of all templates. */
export interface TaskScope {
  readonly owner: Pick<Owner, 'id' | 'tools'>;
  readonly pathName: string | undefined;
}

/** The knowledge of one node of a task. */
export interface TaskOnNode {
  /** All at which the owner began it, whatever tools it may call: the node that asks knows its rights. */
  readonly instances: readonly string[];
  /** For each instance the tool that began the task; '' for an unknown one. Earlier releases do not say it. */
  readonly tools?: readonly string[];
  /** True for a task of other callers only. */
  readonly isOthers: boolean;
}

/** The other nodes. The promises are bounded in time, and never reject. */
interface TaskPeers {
  /**
   * Asks all other nodes for a task. The result has `undefined` for a node that did not answer. Undefined when there
   * are no other nodes.
   */
  ask(scope: TaskScope, taskId: string): Promise<readonly (TaskOnNode | undefined)[]> | undefined;
}

/**
 * The most remembered questions to the other nodes, and how long each is remembered, in ms: an instance may use an id
 * again.
 */
const MAX_ASKED = 4_096;
const ASKED_MS = 60_000;
/**
 * The most tasks that the other nodes are asked for concurrently; an owner has a share of them (LIMITS.ownerShare).
 * Further requests are refused.
 */
const MAX_ASKED_TASKS = 64;

/** What decides which tasks are reached through a view. */
export interface TaskViews {
  /** The templates of a view; undefined for the name of a template. */
  readonly templatesOf: (name: string) => readonly string[] | undefined;
  /** True when the view has this tool of the template now. */
  readonly hasTool: (view: string, template: string, tool: string) => boolean;
}

const NO_VIEWS: TaskViews = { templatesOf: () => undefined, hasTool: () => false };

/** A task at an instance, which is named `{template}/{instance}`. */
interface TaskAt {
  readonly ownerId: string;
  readonly instance: string;
  /** The name of the tool at its server; undefined for one that is not known. */
  readonly tool: string | undefined;
}

interface Asked {
  readonly atMs: number;
  /** The question under way; undefined once the other nodes have answered. */
  asking: Promise<void> | undefined;
  isOthers: boolean;
}

/**
 * The tasks that began on this node, or were found on another one. Ids that cannot be remembered (see `isTaskId`)
 * belong to no owner.
 */
export class KnownTasks {
  readonly #now: Clock['now'];
  /** The tasks by `countedIdOf` their owner, then by task id; the latest last, because two instances may give the same id. */
  readonly #users = new LruMap<LruMap<readonly TaskAt[]>>(MAX_OWNERS);
  readonly #asked = new LruMap<Asked>(MAX_ASKED);
  readonly #asking = new UserShares(MAX_ASKED_TASKS);
  readonly #views: TaskViews;
  #peers: TaskPeers | undefined;

  constructor({ now }: Clock, views: TaskViews = NO_VIEWS) {
    this.#now = now;
    this.#views = views;
  }

  /** Sets the nodes that are asked for tasks that did not begin here. */
  setPeers(peers: TaskPeers): void {
    this.#peers = peers;
  }

  /**
   * Asks the other nodes for a task, and resolves when they have answered. Undefined when its place is known, or
   * cannot be found. Throws QUEUE_FULL, because a task for which no node was asked may belong to another owner.
   */
  untilKnown(scope: TaskScope, taskId: string): Promise<void> | undefined {
    if (this.#peers === undefined || this.#own(scope, taskId).length > 0) return undefined;
    const key = taskKey(scope, taskId);
    const before = this.#asked.get(key);
    if (before !== undefined && this.#now() - before.atMs < ASKED_MS) return before.asking;
    const { id } = scope.owner;
    const exceeded = this.#asking.exceededBy(id);
    if (exceeded !== undefined)
      return Promise.reject(tooMany('tasks that other nodes are asked for', exceeded, 1));
    const answers = this.#peers.ask(scope, taskId);
    if (answers === undefined) return undefined;
    const asked: Asked = { atMs: this.#now(), asking: undefined, isOthers: false };
    this.#asking.add(id);
    asked.asking = answers.then((places) => {
      this.#asking.release(id);
      asked.asking = undefined;
      for (const { instances, tools } of places.filter((each) => each !== undefined))
        for (const [index, instance] of instances.entries())
          this.begun(scope, taskId, instance, tools?.[index]);
      asked.isOthers = places.some((each) => each?.isOthers);
      // A node that did not answer is asked again.
      const isComplete = asked.isOthers || !places.includes(undefined);
      if (!isComplete && this.#asked.get(key) === asked) this.#asked.delete(key);
    });
    this.#asked.set(key, asked);
    return asked.asking;
  }

  /** The knowledge of this node of the task, for another node. */
  lookUp(scope: TaskScope, taskId: string): TaskOnNode {
    const own = this.#own(scope, taskId);
    return {
      instances: this.#named(scope.pathName, own),
      tools: own.map(({ tool = '' }) => tool),
      isOthers: own.length === 0 && this.#hasBegun(scope.pathName, taskId),
    };
  }

  /** `name`: that of the tool at its server. */
  begun({ owner, pathName }: TaskScope, taskId: string, instanceId: string, name = ''): void {
    if (!isTaskId(taskId)) return;
    const isAggregate = pathName === undefined || splitInstance(instanceId) !== undefined; // in a view, too
    const instance = isAggregate ? instanceId : aggregateInstance({ template: pathName, id: instanceId });
    const userId = countedIdOf(owner.id);
    const ofUser = this.#users.get(userId) ?? new LruMap(MAX_OWN_TASKS);
    const known = (ofUser.get(taskId) ?? []).filter(
      (task) => task.ownerId !== owner.id || task.instance !== instance,
    );
    const own = known.filter(({ ownerId }) => ownerId === owner.id);
    const oldest = own.length < MAX_TASK_INSTANCES ? undefined : own[0];
    const others = known.filter((task) => task !== oldest).slice(1 - MAX_USER_INSTANCES);
    const tool = name === '' || name.length > MAX_TASK_ID_LENGTH ? undefined : name;
    ofUser.set(taskId, [...others, { ownerId: owner.id, instance, tool }]);
    this.#users.set(userId, ofUser);
  }

  /**
   * The instances at which the owner began a task with that id, by a tool that it may still call at the path, named as at
   * that path, the latest last.
   */
  instancesOf(scope: TaskScope, taskId: string): readonly string[] {
    const reached = this.#own(scope, taskId).filter((task) => this.#mayReach(scope, task));
    return this.#named(scope.pathName, reached);
  }

  /**
   * True for a task that the caller may not ask for: one that only others began at the path, or a tool that the caller may not
   * call there. A caller that may call some tools only gets no task of an unknown tool.
   */
  isRefused(scope: TaskScope, taskId: string): boolean {
    if (this.instancesOf(scope, taskId).length > 0) return false;
    const asked = this.#asked.get(taskKey(scope, taskId));
    return (
      scope.owner.tools !== undefined || asked?.isOthers === true || this.#hasBegun(scope.pathName, taskId)
    );
  }

  #hasBegun(pathName: string | undefined, taskId: string): boolean {
    return [...this.#users.values()].some((tasks) => this.#at(pathName, tasks.get(taskId) ?? []).length > 0);
  }

  /** The tasks of the owner with that id at the path, whatever tools it may call now. */
  #own({ owner, pathName }: TaskScope, taskId: string): readonly TaskAt[] {
    const ofUser = this.#users.get(countedIdOf(owner.id))?.get(taskId) ?? [];
    return this.#at(
      pathName,
      ofUser.filter(({ ownerId }) => ownerId === owner.id),
    );
  }

  #mayReach({ owner, pathName }: TaskScope, { instance, tool }: TaskAt): boolean {
    const view = pathName !== undefined && this.#views.templatesOf(pathName) ? pathName : undefined;
    if (tool === undefined) return owner.tools === undefined && view === undefined;
    const { template = '' } = splitInstance(instance) ?? {};
    return (
      mayCall(owner, template, tool) && (view === undefined || this.#views.hasTool(view, template, tool))
    );
  }

  /** Those of the path: without a name all; in a view those of its templates. */
  #at(pathName: string | undefined, tasks: readonly TaskAt[]): readonly TaskAt[] {
    if (pathName === undefined || tasks.length === 0) return tasks;
    const templates = this.#views.templatesOf(pathName) ?? [pathName];
    return tasks.filter(({ instance }) => templates.includes(splitInstance(instance)?.template ?? ''));
  }

  /** The instances as the path names them: with their templates, except at that of a template. */
  #named(pathName: string | undefined, tasks: readonly TaskAt[]): readonly string[] {
    const isOfTemplate = pathName !== undefined && this.#views.templatesOf(pathName) === undefined;
    return tasks.map(({ instance }) => (isOfTemplate ? (splitInstance(instance)?.id ?? instance) : instance));
  }

  /** Remembers the task that a result reports as begun, if there is one. */
  learn(scope: TaskScope, result: JsonText, instanceId: string, tool?: string): void {
    const taskId = taskIdIn(result);
    if (taskId !== undefined) this.begun(scope, taskId, instanceId, tool);
  }
}

function taskKey({ owner, pathName }: TaskScope, taskId: string): string {
  return JSON.stringify([owner.id, pathName ?? null, taskId]);
}

export function isTaskId(taskId: unknown): taskId is string {
  return typeof taskId === 'string' && taskId.length <= MAX_TASK_ID_LENGTH;
}

/**
 * The id of the task that a result reports as begun; undefined for any other result. Only small results
 * report tasks. Source: MCP 2025-11-25 basic/utilities/tasks (in `task`), SEP-2663 (in a result of another type than
 * `complete`).
 */
function taskIdIn(result: JsonText): string | undefined {
  if (result.bytes.length > LIMITS.inspectedResultBytes || !isJsonObject(result.value)) return undefined;
  const { task, taskId, resultType = 'complete' } = result.value;
  if (isJsonObject(task)) return isTaskId(task.taskId) ? task.taskId : undefined;
  return resultType !== 'complete' && isTaskId(taskId) ? taskId : undefined;
}
