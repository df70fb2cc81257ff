// Where a task is of which an owner speaks, whichever era he speaks in: what was heard of it (task-memory.ts), or else who
// answers for it (task-search.ts). How a request about it is worded, and refused, is the business of each era.

import { map, type Observable, of, tap } from 'rxjs';
import type { ExchangeEvent } from '../domain/exchange.ts';
import type { JsonObject } from '../domain/json.ts';
import { type JsonRpcError, RPC } from '../domain/jsonrpc.ts';
import type { Backends, Owner } from './ports.ts';
import { type TaskAsker, TaskMemory } from './task-memory.ts';
import { instanceOfTask, instanceOfTaskAnywhere, NOBODY, type Sought, TaskSearches } from './task-search.ts';

/** Who looks for a task, and among whom. */
export interface TaskQuestion {
  readonly taskId: string;
  readonly owner: Owner;
  /** Of the path; undefined for all templates together. */
  readonly template: string | undefined;
  readonly backends: Pick<Backends, 'modernInstanceIds' | 'inquire'>;
  /** What instances are told of the client, as `_meta`. */
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
   * Looks for the instance that runs a task which its owner is not known to have: emits it, or NOBODY when all say that they
   * do not know it, or undefined when it was not found otherwise. Cold; QUEUE_FULL when too many are looked for. What was
   * found is remembered for this owner, and proves nothing against another one. An id that is known to be another's is
   * looked for only where it is not his, since two instances may give the same one. Undefined itself at the path of a
   * template where there is no choice: fewer than two can run it, and nobody is known to.
   */
  seek(question: TaskQuestion): Observable<Sought> | undefined {
    const { taskId, owner, template, backends } = question;
    const asker = { ownerId: owner.id, template };
    const all = backends.modernInstanceIds(owner);
    if (all.length < 2 && template !== undefined && !this.memory.isTaken(template, taskId)) return undefined;
    const instanceIds = all.filter((id) => !this.memory.isOthers(asker, taskId, id));
    if (instanceIds.length === 0) return of(NOBODY);
    return this.#searches.search(asker, taskId, () => this.#search(question, asker, instanceIds));
  }

  #search(
    { taskId, owner, backends, meta }: TaskQuestion,
    asker: TaskAsker,
    instanceIds: readonly string[],
  ): Observable<Sought> {
    const request = { method: 'tasks/get', params: { taskId, _meta: meta } };
    const denials: number[] = [];
    const count = (event: ExchangeEvent): void => {
      if (event.kind === 'error' && isDenial(event.error)) denials.push(event.error.code);
    };
    const get = (instanceId: string) => backends.inquire(request, { owner, instanceId }).pipe(tap(count));
    const search = asker.template === undefined ? instanceOfTaskAnywhere : instanceOfTask;
    return search(instanceIds, get).pipe(
      map((found) => {
        if (found !== undefined) {
          this.memory.found(asker, taskId, found);
          return found;
        }
        // That there are no tasks at all is for a server to say.
        const isForServer =
          asker.template !== undefined && denials.every((code) => code === RPC.methodNotFound);
        return denials.length === instanceIds.length && !isForServer ? NOBODY : undefined;
      }),
    );
  }
}

/** True where a server says that it has no such task, or none at all. Source: SEP-2663. */
function isDenial({ code }: JsonRpcError): boolean {
  return code === RPC.invalidParams || code === RPC.methodNotFound;
}
