// Finds the instance, or the parked call, that a modern request must go to: by the state of a call that takes several rounds, by a
// cursor, or by the id of a task. The client carries states and cursors encrypted, together with their instance. Ids of tasks are
// not encrypted: they occur in results, notifications and headers of an extension that the gateway only passes on.
// Source: MCP 2026-07-28 basic/patterns/mrtr, server/utilities/pagination (cursors are opaque).

import { map, type Observable } from 'rxjs';
import type { ClientQuestion, ClientReply } from '../../domain/client.ts';
import {
  asBuffer,
  fieldValue,
  isJsonObject,
  type JsonFields,
  type JsonObject,
  JsonText,
} from '../../domain/json.ts';
import { RPC } from '../../domain/jsonrpc.ts';
import { listOf, META, withoutMeta } from '../../domain/mcp.ts';
import { isTooLong } from '../client-bounds.ts';
import { hasRounds, type InputRequests } from '../input-requests.ts';
import { RpcFailure } from '../rpc.ts';
import {
  isTaskId,
  isTaskMethod,
  NOT_FOUND,
  type TaskFinder,
  type TaskScope,
  taskIdIn,
} from '../task-finder.ts';
import { callKey, invalidParams, type ModernCall, pathKey } from './modern-call.ts';
import { StateCipher } from './state-cipher.ts';

/** A retry that continues a parked call, or a request for one instance with the params that it understands. */
export type ModernRoute =
  | { readonly parkedId: string; readonly replies: ReadonlyMap<string, ClientReply> }
  | { readonly params: JsonFields; readonly instanceId: string };

/** Routes the requests of modern clients, at all paths, and writes into their results what later requests are routed by. */
export class ModernRouting {
  readonly #cipher: StateCipher;
  readonly #finder: TaskFinder;

  constructor(stateKey: Buffer, finder: TaskFinder) {
    this.#cipher = new StateCipher(stateKey);
    this.#finder = finder;
  }

  /** Throws RpcFailure (-32602) when state or cursor were not given out here, to this client, for this call, within the hour. */
  route(call: ModernCall): ModernRoute | undefined {
    const { method, params } = call;
    if (params.requestState !== undefined && hasRounds(method)) return this.#byState(call);
    if (params.cursor !== undefined && listOf(method) !== undefined) return this.#byCursor(call);
    if (!isTaskMethod(method) || !isTaskId(params.taskId)) return undefined;
    const instanceId = this.#finder.memory.find(scopeOf(call), params.taskId);
    return instanceId === undefined ? undefined : { params, instanceId };
  }

  /**
   * Searches for the instance that runs a task, if the owner is not known to have it; see TaskFinder.search. Undefined also when the
   * call is about no task. Errors with RpcFailure (-32602) when there is no such task, and when it is known to be another owner's
   * and no other instance has one of that id: a caller cannot distinguish the two.
   */
  searchTask(call: ModernCall): Observable<string | undefined> | undefined {
    const { method, params, owner, template, backends } = call;
    const { taskId, _meta } = params;
    if (!isTaskMethod(method) || !isTaskId(taskId)) return undefined;
    const isTaken = template !== undefined && this.#finder.memory.isTaken(template, taskId);
    const meta = isJsonObject(_meta) ? _meta : {};
    const found$ = this.#finder.search({ taskId, owner, template, backends, meta });
    return found$?.pipe(
      map((found) => {
        if (found === NOT_FOUND || (isTaken && found === undefined)) throw invalidParams('Unknown task');
        return found;
      }),
    );
  }

  /** Remembers the task of a result: the caller of `tools/call` owns it. Source: SEP-2663, only that begins tasks. */
  learnTask(call: ModernCall, result: JsonText, instanceId: string): void {
    const taskId = taskIdIn(result);
    if (taskId === undefined) return;
    const { memory } = this.#finder;
    if (call.method === 'tools/call') memory.begun(scopeOf(call), taskId, instanceId);
    else memory.found(scopeOf(call), taskId, instanceId);
  }

  /** The result with its cursor encrypted; the same one when it has none. A cursor that is too long is left out. */
  encryptCursor(call: ModernCall, result: JsonText, instanceId: string): JsonText {
    if (listOf(call.method) === undefined || !asBuffer(result.bytes).includes('"nextCursor"')) return result;
    const value = result.exactValue;
    if (!isJsonObject(value) || typeof value.nextCursor !== 'string') return result;
    const { nextCursor, ...rest } = value;
    const encrypted = this.#cipher.encrypt({ i: instanceId, c: nextCursor }, cursorKey(call));
    const isKept = encrypted !== undefined && !isTooLong(encrypted);
    return JsonText.ofValue(isKept ? { ...rest, nextCursor: encrypted } : rest);
  }

  /** An `input_required` result with its state encrypted; unchanged without a state, since then any instance may be asked next. */
  encryptState(call: ModernCall, result: JsonText, instanceId: string): JsonText {
    const value = result.exactValue;
    if (!isJsonObject(value) || typeof value.requestState !== 'string') return result;
    const requestState = this.#encryptFor(call, { i: instanceId, s: value.requestState });
    return JsonText.ofValue({ ...value, requestState });
  }

  /** The result for a call whose legacy backend asks for input: the call is parked here. */
  askParked(call: ModernCall, { id, requests }: ClientQuestion, serverInfo: JsonObject): JsonText {
    const entries = Array.from(requests, ([key, { method, params }]) => [
      key,
      { method, params: withoutProgressToken(params) },
    ]);
    return this.#ask(call, Object.fromEntries(entries), { p: id }, serverInfo);
  }

  /** The result for a call that its legacy instance refused until the client has answered. */
  askFirst(call: ModernCall, requests: InputRequests, instanceId: string, serverInfo: JsonObject): JsonText {
    return this.#ask(call, requests, { i: instanceId }, serverInfo);
  }

  #byState(call: ModernCall): ModernRoute {
    const { requestState, ...params } = call.params;
    const content =
      typeof requestState === 'string' ? this.#cipher.decrypt(requestState, callKey(call)) : undefined;
    if (typeof content?.p === 'string') return { parkedId: content.p, replies: repliesOf(params) };
    if (typeof content?.i !== 'string')
      throw invalidParams('Invalid or expired requestState', { reason: 'invalid_request_state' });
    const own = typeof content.s === 'string' ? { requestState: content.s } : {};
    return { params: { ...params, ...own }, instanceId: content.i };
  }

  /** An empty cursor is a cursor like any other. */
  #byCursor(call: ModernCall): ModernRoute {
    const { cursor } = call.params;
    const content = typeof cursor === 'string' ? this.#cipher.decrypt(cursor, cursorKey(call)) : undefined;
    if (typeof content?.i !== 'string' || typeof content.c !== 'string') {
      throw invalidParams('Invalid or expired cursor', { reason: 'invalid_cursor' });
    }
    return { params: { ...call.params, cursor: content.c }, instanceId: content.i };
  }

  #ask(call: ModernCall, requests: InputRequests, content: JsonObject, serverInfo: JsonObject): JsonText {
    return JsonText.ofValue({
      resultType: 'input_required',
      inputRequests: requests,
      requestState: this.#encryptFor(call, content),
      _meta: { [META.serverInfo]: serverInfo },
    });
  }

  #encryptFor(call: ModernCall, content: JsonObject): string {
    const encrypted = this.#cipher.encrypt(content, callKey(call));
    if (encrypted !== undefined) return encrypted;
    throw new RpcFailure(200, {
      code: RPC.internalError,
      message: 'The state of the server is too large for the client to carry',
    });
  }
}

function scopeOf({ owner, template }: ModernCall): TaskScope {
  return { ownerId: owner.id, template };
}

function cursorKey(call: ModernCall): string {
  return pathKey(`cursor of ${call.method}`, call);
}

/** The request becomes a part of a result, for which there is no progress. */
function withoutProgressToken(params: JsonObject): JsonObject {
  const { _meta } = params;
  const wantsProgress = isJsonObject(_meta) && _meta[META.progressToken] !== undefined;
  return wantsProgress ? withoutMeta(params, [META.progressToken]) : params;
}

/** Replies are plain results: a wrapped one, or one that is no object, is dropped, and the server asks again. RpcFailure (-32602). */
function repliesOf(params: JsonFields): ReadonlyMap<string, ClientReply> {
  const inputResponses = fieldValue(params.inputResponses) ?? {};
  if (!isJsonObject(inputResponses)) throw invalidParams('Invalid params: inputResponses must be an object');
  const replies = new Map<string, ClientReply>();
  for (const [key, result] of Object.entries(inputResponses)) {
    if (isJsonObject(result) && !('method' in result) && !('result' in result)) replies.set(key, { result });
  }
  return replies;
}
