// Finds the instance, or the waiting call, that a modern request must go to: by the state of a call that takes
// several rounds, by a cursor, or by the id of a task. The client carries states and cursors encrypted, together
// with their instance. Ids of tasks are not encrypted: they occur in results, notifications and headers of an
// extension that the gateway only passes on. Source: MCP 2026-07-28 basic/patterns/mrtr,
// server/utilities/pagination (cursors are opaque).

import { CONFIRM, CONFIRM_MS } from '../../domain/calls/confirmation-required.ts';
import type { Answer } from '../../domain/calls/exchange.ts';
import { parsedResult } from '../../domain/calls/parsed-result.ts';
import {
  fieldValue,
  isJsonObject,
  type JsonFields,
  type JsonObject,
  JsonText,
} from '../../domain/json/json.ts';
import { editedFields } from '../../domain/json/json-fields.ts';
import { memberText } from '../../domain/json/json-scanner.ts';
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

/**
 * A retry that continues a call that waits for its client, or a request, perhaps for one instance, with the params
 * that it understands.
 */
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
  /** Id of the state, which counts once. */
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
   * Throws RpcFailure (-32602) when state or cursor were not given out here, to this client, for this call, a
   * state within the hour, and for a task of another owner. Undefined when any instance may answer.
   */
  targetOf(request: ModernRequest): ModernTarget | undefined {
    const { method, params } = request;
    if (params.requestState !== undefined && hasRounds(method)) return this.#byState(request);
    if (params.cursor !== undefined && listOf(method) !== undefined) return this.#byCursor(request);
    return isTaskMethod(method) && isTaskId(params.taskId) ? this.#byTask(request, params.taskId) : undefined;
  }

  /** The id of the waiting call that a request continues, if it does. */
  waitingCallIdOf(request: ModernRequest): string | undefined {
    const { requestState } = request.params;
    if (typeof requestState !== 'string' || !hasRounds(request.method)) return undefined;
    const content = this.#cipher.decrypt(requestState, callKey(request));
    return typeof content?.p === 'string' ? content.p : undefined;
  }

  /** Resolves when the other nodes have told where the task of the request is; undefined where there is nothing to ask. */
  whenTaskKnown(request: ModernRequest): Promise<void> | undefined {
    const { taskId } = request.params;
    return isTaskMethod(request.method) && isTaskId(taskId)
      ? this.#tasks.untilKnown(request, taskId)
      : undefined;
  }

  /** Remembers the task of a result: the caller of `tools/call` owns it. Source: SEP-2663, only that begins tasks. */
  learnTask(request: ModernRequest, result: JsonText, instanceId: string): void {
    if (request.method === 'tools/call') this.#tasks.learn(request, result, instanceId);
  }

  /**
   * The result with its cursor encrypted; the same one when it has none. A cursor that is too long is left out.
   * Equal cursors stay equal, because clients end a list whose cursor repeats.
   */
  encryptCursor(request: ModernRequest, result: JsonText, instanceId: string): JsonText {
    if (listOf(request.method) === undefined || !result.bytes.includes('"nextCursor"')) return result;
    const nextCursor = memberText(result.bytes, 'nextCursor');
    if (nextCursor === undefined) return result;
    const encrypted = this.#cipher.encryptEqually({ i: instanceId, c: nextCursor }, cursorKey(request));
    const isKept = encrypted !== undefined && !isTooLong(encrypted);
    const written = Buffer.from(isKept ? JSON.stringify(encrypted) : '');
    const bytes = editedFields(result.bytes, (key) => (key === 'nextCursor' ? written : undefined));
    return JsonText.ofBytes(bytes);
  }

  /**
   * An `input_required` result with its state encrypted; unchanged without a state, since then any instance may be
   * asked next, unless the call was confirmed: its state says so.
   */
  encryptState(request: ModernRequest, result: JsonText, answer: Answered): JsonText {
    const value = parsedResult(result, 'exactValue');
    if (!isJsonObject(value)) return result;
    const { requestState: own } = value;
    const isConfirmed = answer.confirmed !== undefined;
    if (typeof own !== 'string' && (own !== undefined || !isConfirmed)) return result;
    const state = { ...placeOf(answer), ...(own === undefined ? {} : { s: own }) };
    const requestState = this.#encryptFor(request, state, isConfirmed ? CONFIRM_MS : undefined);
    return JsonText.ofValue({ ...value, requestState });
  }

  /**
   * The result for a call that needs something of its client first: `state` names the waiting call, the instance
   * that refused it, or the tool.
   */
  inputRequired(
    request: ModernRequest,
    requests: InputRequests,
    state: JsonObject,
    serverInfo: JsonObject,
    validMs?: number,
  ): JsonText {
    return JsonText.ofValue({
      resultType: 'input_required',
      inputRequests: requests,
      requestState: this.#encryptFor(request, state, validMs),
      _meta: { [META.serverInfo]: serverInfo },
    });
  }

  #byState(request: ModernRequest): ModernTarget {
    const { requestState, ...params } = request.params;
    const content =
      typeof requestState === 'string' ? this.#cipher.decrypt(requestState, callKey(request)) : undefined;
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
  #byCursor(request: ModernRequest): ModernTarget {
    const { cursor } = request.params;
    const content = typeof cursor === 'string' ? this.#cipher.decrypt(cursor, cursorKey(request)) : undefined;
    if (typeof content?.i !== 'string' || typeof content.c !== 'string') {
      throw invalidParams('Invalid or expired cursor', { reason: 'invalid_cursor' });
    }
    return { params: { ...request.params, cursor: content.c }, instanceId: content.i };
  }

  #byTask(request: ModernRequest, taskId: string): ModernTarget | undefined {
    const instanceId = this.#tasks.instancesOf(request, taskId).at(-1);
    if (instanceId !== undefined) return { params: request.params, instanceId };
    if (this.#tasks.isOthers(request, taskId)) throw invalidParams('Unknown task');
    return undefined;
  }

  #encryptFor(request: ModernRequest, content: JsonObject, validMs?: number): string {
    const encrypted = this.#cipher.encrypt(content, callKey(request), validMs);
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

/**
 * Keys of a state: the tool whose call its user is asked to confirm, and the one whose call was confirmed in an
 * earlier round.
 */
export const ASKED = 'c';
const CONFIRMED = 'd';

function actionIn(params: JsonFields): unknown {
  const reply = repliesOf(params).get(CONFIRM);
  return reply !== undefined && 'result' in reply ? Object(reply.result).action : undefined;
}

function cursorKey(request: ModernRequest): string {
  return pathKey(`cursor of ${request.method}`, request);
}

/**
 * Replies are plain results: a wrapped one, or one that is not an object, is dropped, and the server asks again.
 * RpcFailure (-32602).
 */
function repliesOf(params: JsonFields): ReadonlyMap<string, ClientReply> {
  const inputResponses = fieldValue(params.inputResponses) ?? {};
  if (!isJsonObject(inputResponses)) throw invalidParams('Invalid params: inputResponses must be an object');
  const replies = new Map<string, ClientReply>();
  for (const [key, result] of Object.entries(inputResponses)) {
    if (isJsonObject(result) && !('method' in result) && !('result' in result)) replies.set(key, { result });
  }
  return replies;
}
