// Where a request about a task goes: to the instance that runs it. Ids of tasks are not wrapped: they stand in results,
// notifications and headers of an extension that this gateway only passes on. What is remembered is task-memory.ts.

import { map, type Observable, tap } from 'rxjs';
import type { JsonText } from '../domain/json.ts';
import { invalidParams, type ModernCall, type Routed } from './modern-call.ts';
import { isTaskId, isTaskMethod, type TaskAsker, TaskMemory, taskIdIn } from './task-memory.ts';
import { instanceOfTask, TaskSearches } from './task-search.ts';

/** Of modern clients, at all paths. */
export class ModernTasks {
  readonly #memory: TaskMemory;
  readonly #searches = new TaskSearches();

  constructor(memory: TaskMemory = new TaskMemory()) {
    this.#memory = memory;
  }

  /** Where a request about a task goes; undefined when it is about none, or about one that its caller is not known to have. */
  route(call: ModernCall): Routed | undefined {
    const { method, params } = call;
    if (!isTaskMethod(method) || !isTaskId(params.taskId)) return undefined;
    const instanceId = this.#memory.find(askerOf(call), params.taskId);
    return instanceId === undefined ? undefined : { params, instanceId };
  }

  /**
   * Looks for the instance that runs a task which its caller is not known to have: emits it, or undefined when no instance
   * knows the task either. Cold; QUEUE_FULL when too many are looked for. Undefined itself where there is no choice: the
   * call is about no task, or fewer than two can run one. What was found is remembered for this caller, and proves nothing
   * against another one. An id that is known to be another's is looked for only where it is not his, since two instances
   * may give the same one: RpcFailure (-32602), thrown or emitted, when nobody has it there.
   */
  seek(call: ModernCall): Observable<string | undefined> | undefined {
    const { method, params, template, backends } = call;
    const { taskId } = params;
    if (!isTaskMethod(method) || !isTaskId(taskId)) return undefined;
    const asker = askerOf(call);
    const isTaken = template !== undefined && this.#memory.isTaken(template, taskId);
    const all = backends.modernInstanceIds?.() ?? [];
    const instanceIds = isTaken ? all.filter((id) => !this.#memory.isOthers(asker, taskId, id)) : all;
    if (isTaken && instanceIds.length === 0) throw unknownTask();
    if (!isTaken && instanceIds.length < 2) return undefined;
    const found$ = this.#searches.search(asker, taskId, () => this.#search(call, taskId, instanceIds));
    return isTaken ? found$.pipe(map(orUnknown)) : found$;
  }

  /** Learns of a task from a result: it is his whose `tools/call` it answers. Source: SEP-2663, only that begins tasks. */
  learn(call: ModernCall, result: JsonText, instanceId: string): void {
    const taskId = taskIdIn(result);
    if (taskId === undefined) return;
    if (call.method === 'tools/call') this.#memory.begun(askerOf(call), taskId, instanceId);
    else this.#memory.found(askerOf(call), taskId, instanceId);
  }

  #search(call: ModernCall, taskId: string, instanceIds: readonly string[]): Observable<string | undefined> {
    const { params, owner, envelope, backends } = call;
    const request = { method: 'tasks/get', params: { taskId, _meta: params._meta ?? {} } };
    const { profile } = envelope;
    const get = (instanceId: string) => backends.exchange(request, { owner, profile, instanceId });
    return instanceOfTask(instanceIds, get).pipe(
      tap((found) => found !== undefined && this.#memory.found(askerOf(call), taskId, found)),
    );
  }
}

function askerOf({ owner, template }: ModernCall): TaskAsker {
  return { ownerId: owner.id, template };
}

function unknownTask() {
  return invalidParams('Unknown task');
}

function orUnknown(found: string | undefined): string {
  if (found === undefined) throw unknownTask();
  return found;
}
