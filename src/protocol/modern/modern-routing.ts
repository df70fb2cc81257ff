// Finds the instance that a modern request must go to: the one that runs a task (task-finder.ts), or that gave a cursor. Ids of
// tasks are not wrapped: they stand in results, notifications and headers of an extension that the gateway only passes on.

import { map, type Observable } from 'rxjs';
import { asBuffer, isJsonObject, JsonText } from '../../domain/json.ts';
import { listOf } from '../../domain/mcp.ts';
import { isTooLong } from '../client-bounds.ts';
import { isTaskId, isTaskMethod, NOT_FOUND, TaskFinder, type TaskScope, taskIdIn } from '../task-finder.ts';
import { invalidParams, type ModernCall, pathKey, type RoutedRequest } from './modern-call.ts';
import type { StateCipher } from './state-cipher.ts';

/** Of modern clients, at all paths. */
export class ModernTasks {
  readonly #finder: TaskFinder;

  constructor(finder: TaskFinder = new TaskFinder()) {
    this.#finder = finder;
  }

  /** The destination of a request about a task; undefined for any other request, and for an unknown task. */
  route(call: ModernCall): RoutedRequest | undefined {
    const { method, params } = call;
    if (!isTaskMethod(method) || !isTaskId(params.taskId)) return undefined;
    const instanceId = this.#finder.memory.find(scopeOf(call), params.taskId);
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
        if (sought === NOT_FOUND || (isTaken && sought === undefined)) throw invalidParams('Unknown task');
        return sought;
      }),
    );
  }

  /** Learns of a task from a result: the caller of `tools/call` owns it. Source: SEP-2663, only that begins tasks. */
  learn(call: ModernCall, result: JsonText, instanceId: string): void {
    const taskId = taskIdIn(result);
    if (taskId === undefined) return;
    const { memory } = this.#finder;
    if (call.method === 'tools/call') memory.begun(scopeOf(call), taskId, instanceId);
    else memory.found(scopeOf(call), taskId, instanceId);
  }
}

function scopeOf({ owner, template }: ModernCall): TaskScope {
  return { ownerId: owner.id, template };
}

// A cursor is valid only at the instance that gave it. The client gets it encrypted together with that instance, and its next
// request goes there. Source: MCP 2026-07-28 server/utilities/pagination (cursors are opaque).

const QUOTED = '"nextCursor"';

/** Encrypts cursors and decrypts them. */
export class ModernCursors {
  readonly #cipher: StateCipher;

  constructor(cipher: StateCipher) {
    this.#cipher = cipher;
  }

  /**
   * The request with the instance's own cursor; undefined for one without. Throws RpcFailure (-32602) for a cursor that
   * was not given out here, to this client, for this list, within the hour. An empty one is a cursor like any other.
   */
  route(call: ModernCall): RoutedRequest | undefined {
    const { cursor } = call.params;
    if (cursor === undefined || listOf(call.method) === undefined) return undefined;
    const decrypted = typeof cursor === 'string' ? this.#cipher.decrypt(cursor, boundOf(call)) : undefined;
    if (typeof decrypted?.i !== 'string' || typeof decrypted.c !== 'string') {
      throw invalidParams('Invalid or expired cursor', { reason: 'invalid_cursor' });
    }
    return { params: { ...call.params, cursor: decrypted.c }, instanceId: decrypted.i };
  }

  /** The result with its cursor encrypted; the same one when it has none. A cursor that is too long is left out. */
  encrypt(call: ModernCall, result: JsonText, instanceId: string): JsonText {
    if (listOf(call.method) === undefined || !asBuffer(result.bytes).includes(QUOTED)) return result;
    const value = result.exactValue;
    if (!isJsonObject(value) || typeof value.nextCursor !== 'string') return result;
    const { nextCursor, ...rest } = value;
    const encrypted = this.#cipher.encrypt({ i: instanceId, c: nextCursor }, boundOf(call));
    const isKept = encrypted !== undefined && !isTooLong(encrypted);
    return JsonText.ofValue(isKept ? { ...rest, nextCursor: encrypted } : rest);
  }
}

function boundOf(call: ModernCall): string {
  return pathKey(`cursor of ${call.method}`, call);
}
