// Finds the instance, or the waiting call, that a modern request must go to: by the state of a call that takes several rounds, by a
// cursor, or by the id of a task. The client carries states and cursors encrypted, together with their instance. Ids of tasks are
// not encrypted: they occur in results, notifications and headers of an extension that the gateway only passes on.
// Source: MCP 2026-07-28 basic/patterns/mrtr, server/utilities/pagination (cursors are opaque).

import { CONFIRM, CONFIRM_MS } from '../../domain/calls/confirmation-required.ts';
import { type Answer, parsedResult } from '../../domain/calls/exchange.ts';
import {
  fieldValue,
  isJsonObject,
  type JsonFields,
  type JsonObject,
  JsonText,
} from '../../domain/json/json.ts';
import type { ClientReply } from '../../domain/mcp/client.ts';
import { RPC } from '../../domain/mcp/jsonrpc.ts';
import { hasRounds, listOf, META } from '../../domain/mcp/mcp.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { isTooLong, shortKey } from '../client-bounds.ts';
import type { InputRequests } from '../input-requests.ts';
import { RpcFailure } from '../rpc.ts';
import { isTaskId, isTaskMethod, type TaskLog } from '../task-log.ts';
import { callKey, invalidParams, type ModernRequest, pathKey } from './modern-request.ts';
import { StateCipher, type StateKeys } from './state-cipher.ts';

/** A retry that continues a call that waits for its client, or a request, perhaps for one instance, with the params that it understands. */
export type ModernTarget =
  | { readonly waitingCallId: string; readonly replies: ReadonlyMap<string, ClientReply> }
  | {
      readonly params: JsonFields;
      readonly instanceId: string | undefined;
      readonly confirmation?: StatedConfirmation | undefined;
    };

/** What the state of a retry, and the answer of its user, say about the confirmation of the call. */
export interface StatedConfirmation {
  /** See toolKey. */
  readonly tool: string;
  /** Of the state, which counts once. */
  readonly id: string;
  /** What the user did; undefined when the client did not say. */
  readonly action: unknown;
}

/** Finds where requests of modern clients belong, at all paths, and writes into their results what says so of later requests. */
export class ModernAffinity {
  readonly #cipher: StateCipher;
  readonly #tasks: TaskLog;

  constructor(stateKeys: StateKeys, tasks: TaskLog, clock: Pick<Clock, 'wall'>) {
    this.#cipher = new StateCipher(stateKeys, clock);
    this.#tasks = tasks;
  }

  /**
   * Throws RpcFailure (-32602) when state or cursor were not given out here, to this client, for this call, a state within the hour,
   * and for a task of another owner. Undefined when any instance may answer.
   */
  targetOf(call: ModernRequest): ModernTarget | undefined {
    const { method, params } = call;
    if (params.requestState !== undefined && hasRounds(method)) return this.#byState(call);
    if (params.cursor !== undefined && listOf(method) !== undefined) return this.#byCursor(call);
    return isTaskMethod(method) && isTaskId(params.taskId) ? this.#byTask(call, params.taskId) : undefined;
  }

  /** The id of the waiting call that a request continues, if it does. */
  waitingCallIdOf(call: ModernRequest): string | undefined {
    const { requestState } = call.params;
    if (typeof requestState !== 'string' || !hasRounds(call.method)) return undefined;
    const content = this.#cipher.decrypt(requestState, callKey(call));
    return typeof content?.p === 'string' ? content.p : undefined;
  }

  /** Resolves when the other nodes have told where the task of the request is; undefined where there is nothing to ask. */
  whenTaskKnown(call: ModernRequest): Promise<void> | undefined {
    const { taskId } = call.params;
    return isTaskMethod(call.method) && isTaskId(taskId) ? this.#tasks.whenKnown(call, taskId) : undefined;
  }

  /** Remembers the task of a result: the caller of `tools/call` owns it. Source: SEP-2663, only that begins tasks. */
  learnTask(call: ModernRequest, result: JsonText, instanceId: string): void {
    if (call.method === 'tools/call') this.#tasks.learn(call, result, instanceId);
  }

  /**
   * The result with its cursor encrypted; the same one when it has none. A cursor that is too long is left out. Equal cursors stay
   * equal, because clients end a list whose cursor repeats.
   */
  encryptCursor(call: ModernRequest, result: JsonText, instanceId: string): JsonText {
    if (listOf(call.method) === undefined || !result.bytes.includes('"nextCursor"')) return result;
    const value = parsedResult(result, 'exactValue');
    if (!isJsonObject(value) || typeof value.nextCursor !== 'string') return result;
    const { nextCursor, ...rest } = value;
    const encrypted = this.#cipher.encryptEqually({ i: instanceId, c: nextCursor }, cursorKey(call));
    const isKept = encrypted !== undefined && !isTooLong(encrypted);
    return JsonText.ofValue(isKept ? { ...rest, nextCursor: encrypted } : rest);
  }

  /**
   * An `input_required` result with its state encrypted; unchanged without a state, since then any instance may be asked next, unless
   * the call was confirmed: its state says so.
   */
  encryptState(call: ModernRequest, result: JsonText, answer: Answered): JsonText {
    const value = parsedResult(result, 'exactValue');
    if (!isJsonObject(value)) return result;
    const { requestState: own } = value;
    const isConfirmed = answer.confirmed !== undefined;
    if (typeof own !== 'string' && (own !== undefined || !isConfirmed)) return result;
    const state = { ...placeOf(answer), ...(own === undefined ? {} : { s: own }) };
    const requestState = this.#encryptFor(call, state, isConfirmed ? CONFIRM_MS : undefined);
    return JsonText.ofValue({ ...value, requestState });
  }

  /** The result for a call that needs something of its client first: `state` names the waiting call, the instance that refused it, or the tool. */
  inputRequired(
    call: ModernRequest,
    requests: InputRequests,
    state: JsonObject,
    serverInfo: JsonObject,
    validMs?: number,
  ): JsonText {
    return JsonText.ofValue({
      resultType: 'input_required',
      inputRequests: requests,
      requestState: this.#encryptFor(call, state, validMs),
      _meta: { [META.serverInfo]: serverInfo },
    });
  }

  #byState(call: ModernRequest): ModernTarget {
    const { requestState, ...params } = call.params;
    const content =
      typeof requestState === 'string' ? this.#cipher.decrypt(requestState, callKey(call)) : undefined;
    if (typeof content?.p === 'string') return { waitingCallId: content.p, replies: repliesOf(params) };
    const tool = content?.[ASKED] ?? content?.[CONFIRMED];
    const isAsked = content?.[ASKED] !== undefined;
    const confirmation =
      typeof tool === 'string'
        ? { tool, id: shortKey(String(requestState)), action: isAsked ? actionIn(params) : 'accept' }
        : undefined;
    if (isAsked) {
      const { inputResponses: _, ...asBefore } = params; // no backend has asked
      return { params: asBefore, instanceId: undefined, confirmation };
    }
    if (typeof content?.i !== 'string')
      throw invalidParams('Invalid or expired requestState', { reason: 'invalid_request_state' });
    const own = typeof content.s === 'string' ? { requestState: content.s } : {};
    return { params: { ...params, ...own }, instanceId: content.i, confirmation };
  }

  /** An empty cursor is a cursor like any other. */
  #byCursor(call: ModernRequest): ModernTarget {
    const { cursor } = call.params;
    const content = typeof cursor === 'string' ? this.#cipher.decrypt(cursor, cursorKey(call)) : undefined;
    if (typeof content?.i !== 'string' || typeof content.c !== 'string') {
      throw invalidParams('Invalid or expired cursor', { reason: 'invalid_cursor' });
    }
    return { params: { ...call.params, cursor: content.c }, instanceId: content.i };
  }

  #byTask(call: ModernRequest, taskId: string): ModernTarget | undefined {
    const instanceId = this.#tasks.instancesOf(call, taskId).at(-1);
    if (instanceId !== undefined) return { params: call.params, instanceId };
    if (this.#tasks.isOthers(call, taskId)) throw invalidParams('Unknown task');
    return undefined;
  }

  #encryptFor(call: ModernRequest, content: JsonObject, validMs?: number): string {
    const encrypted = this.#cipher.encrypt(content, callKey(call), validMs);
    if (encrypted !== undefined) return encrypted;
    throw new RpcFailure(200, {
      code: RPC.internalError,
      message: 'The state of the server is too large for the client to carry',
    });
  }
}

type Answered = Pick<Answer, 'instanceId' | 'confirmed'>;

/** The state of a retry that the instance of this answer is to get. */
export function placeOf({ instanceId, confirmed }: Answered): JsonObject {
  return { i: instanceId, ...(confirmed === undefined ? {} : { [CONFIRMED]: confirmed }) };
}

/** Keys of a state: the tool whose call its user is asked to confirm, and the one whose call was confirmed in an earlier round. */
export const ASKED = 'c';
const CONFIRMED = 'd';

function actionIn(params: JsonFields): unknown {
  const reply = repliesOf(params).get(CONFIRM);
  return reply !== undefined && 'result' in reply ? Object(reply.result).action : undefined;
}

function cursorKey(call: ModernRequest): string {
  return pathKey(`cursor of ${call.method}`, call);
}

/** Replies are plain results: a wrapped one, or one that is not an object, is dropped, and the server asks again. RpcFailure (-32602). */
function repliesOf(params: JsonFields): ReadonlyMap<string, ClientReply> {
  const inputResponses = fieldValue(params.inputResponses) ?? {};
  if (!isJsonObject(inputResponses)) throw invalidParams('Invalid params: inputResponses must be an object');
  const replies = new Map<string, ClientReply>();
  for (const [key, result] of Object.entries(inputResponses)) {
    if (isJsonObject(result) && !('method' in result) && !('result' in result)) replies.set(key, { result });
  }
  return replies;
}
