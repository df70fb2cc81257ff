// Remembers which instance runs a task, so that what is asked about it goes there. Ids of tasks are not wrapped: they
// stand in results, notifications and headers of an extension that this gateway only passes on.

import { isJsonObject, type JsonText } from '../domain/json.ts';
import { LIMITS } from '../domain/limits.ts';
import { invalidParams, type ModernCall, pathKey, type Routed } from './modern-call.ts';
import { RecentMap } from './recent-map.ts';

/** Tasks remembered, of all clients together; the one that was not asked about for longest is forgotten first. */
const MOST_TASKS = 10_000;
/** Longest id that is remembered, in characters. */
const LONGEST_ID = 1_024;

/** The tasks that were heard of. */
export class ModernTasks {
  /** By owner, path and task. Two instances may give the same id to two clients, but not to one at a time. */
  readonly #instances = new RecentMap<string>(MOST_TASKS);
  /** By path and task: it is somebody's. */
  readonly #taken = new RecentMap<true>(MOST_TASKS);

  /** How many are remembered. */
  get size(): number {
    return this.#instances.size;
  }

  /**
   * Where a request about a task goes; undefined when it is about none, or about one that nobody here knows. Throws
   * RpcFailure (-32602) for one that only others are known to have: a backend may tell them apart by nothing but the id.
   */
  route(call: ModernCall): Routed | undefined {
    const { taskId } = call.params;
    if (typeof taskId !== 'string') return undefined;
    const instanceId = this.#instances.get(keyOf(call, taskId));
    const isTaken = this.#taken.get(pathOf(call, taskId)) !== undefined;
    if (instanceId !== undefined) return { params: call.params, instanceId };
    if (isTaken) throw invalidParams('Unknown task');
    return undefined;
  }

  /** Learns of a task from a result; only small ones can be about one. */
  learn(call: ModernCall, result: JsonText, instanceId: string): void {
    if (result.bytes.length > LIMITS.provenAnswerBytes) return;
    const { taskId } = isJsonObject(result.value) ? result.value : {};
    if (typeof taskId !== 'string' || taskId.length > LONGEST_ID) return;
    this.#instances.set(keyOf(call, taskId), instanceId);
    this.#taken.set(pathOf(call, taskId), true);
  }
}

function keyOf(call: ModernCall, taskId: string): string {
  return `${pathKey('task', call)}${taskId}`;
}

function pathOf({ template }: ModernCall, taskId: string): string {
  return JSON.stringify([template ?? null, taskId]);
}
