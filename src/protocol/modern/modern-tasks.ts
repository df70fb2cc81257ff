// Where a modern client's request about a task goes: to the instance that runs it. Ids of tasks are not wrapped: they stand
// in results, notifications and headers of an extension that this gateway only passes on. Where it is known, and looked for,
// is task-finder.ts.

import { map, type Observable } from 'rxjs';
import { isJsonObject, type JsonText } from '../../domain/json.ts';
import { TaskFinder } from '../task-finder.ts';
import { isTaskId, isTaskMethod, type TaskAsker, taskIdIn } from '../task-memory.ts';
import { NOBODY } from '../task-search.ts';
import { invalidParams, type ModernCall, type Routed } from './modern-call.ts';

/** Of modern clients, at all paths. */
export class ModernTasks {
  readonly #finder: TaskFinder;

  constructor(finder: TaskFinder = new TaskFinder()) {
    this.#finder = finder;
  }

  /** Where a request about a task goes; undefined when it is about none, or about one that its caller is not known to have. */
  route(call: ModernCall): Routed | undefined {
    const { method, params } = call;
    if (!isTaskMethod(method) || !isTaskId(params.taskId)) return undefined;
    const instanceId = this.#finder.memory.find(askerOf(call), params.taskId);
    return instanceId === undefined ? undefined : { params, instanceId };
  }

  /**
   * Looks for the instance that runs a task which its caller is not known to have; see TaskFinder.seek. Undefined when the
   * call is about no task, too. RpcFailure (-32602), emitted, when there is none, or it is known to be another's and was not
   * found where it is not: the two look alike.
   */
  seek(call: ModernCall): Observable<string | undefined> | undefined {
    const { method, params, owner, template, backends } = call;
    const { taskId, _meta } = params;
    if (!isTaskMethod(method) || !isTaskId(taskId)) return undefined;
    const isTaken = template !== undefined && this.#finder.memory.isTaken(template, taskId);
    const meta = isJsonObject(_meta) ? _meta : {};
    const found$ = this.#finder.seek({ taskId, owner, template, backends, meta });
    return found$?.pipe(
      map((sought) => {
        if (sought === NOBODY || (isTaken && sought === undefined)) throw invalidParams('Unknown task');
        return sought;
      }),
    );
  }

  /** Learns of a task from a result: it is his whose `tools/call` it answers. Source: SEP-2663, only that begins tasks. */
  learn(call: ModernCall, result: JsonText, instanceId: string): void {
    const taskId = taskIdIn(result);
    if (taskId === undefined) return;
    const { memory } = this.#finder;
    if (call.method === 'tools/call') memory.begun(askerOf(call), taskId, instanceId);
    else memory.found(askerOf(call), taskId, instanceId);
  }
}

function askerOf({ owner, template }: ModernCall): TaskAsker {
  return { ownerId: owner.id, template };
}
