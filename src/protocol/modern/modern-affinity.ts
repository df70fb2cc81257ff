// Finds the instance, or the asking call, that a modern request must go to: by the state of a call that takes
// several rounds, by a cursor, or by the id of a task. The client carries states and cursors encrypted, together
// with their instance. Ids of tasks are not encrypted: they occur in results, notifications and headers of an
// extension that the gateway only passes on. Source: MCP 2026-07-28 basic/patterns/mrtr,
// server/utilities/pagination (cursors are opaque).

import { CONFIRM, CONFIRM_MS } from '../../domain/calls/confirmation-required.ts';
import type { SourcedEvent } from '../../domain/calls/exchange.ts';
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
import type { ClientAnswer } from '../../domain/mcp/client.ts';
import { RPC } from '../../domain/mcp/jsonrpc.ts';
import { hasRounds, isTaskMethod, listReturnedBy, META } from '../../domain/mcp/mcp.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { isTooLong, shortKey } from '../client-bounds.ts';
import type { InputRequests } from '../input-requests.ts';
import { isTaskId, type KnownTasks } from '../known-tasks.ts';
import { RpcFailure } from '../rpc.ts';
import { callKey, invalidParams, type ModernRequest, pathKey } from './modern-request.ts';
import { StateCipher, type StateKeys } from './state-cipher.ts';

/**
 * The keys of the texts that clients carry: of a state the asking call; or the instance, and the state that it gave; the
 * tool whose call the user is asked to confirm; the tool whose call was confirmed in an earlier round. Of a cursor the
 * instance, and its cursor. Clients return texts of earlier releases, so the keys stay.
 */
const KEYS = { askingCall: 'p', instance: 'i', own: 's', asked: 'c', confirmed: 'd', cursor: 'c' } as const;

/**
 * The destination of a request: a call that waits for its client; or a new request, perhaps for one instance, with
 * the params that the instance understands.
 */
type ModernTarget =
  | { readonly askingCallId: string; readonly answers: ReadonlyMap<string, ClientAnswer> }
  | {
      readonly params: JsonFields;
      readonly instanceId: string | undefined;
      readonly confirmation?: StatedConfirmation | undefined;
      /** The id of the state, if an instance has given it with its answer to an earlier round of the call. */
      readonly continues?: string | undefined;
    };

/** The confirmation in the state of a retry, with the answer of the user. */
export interface StatedConfirmation {
  /** The key of the tool: see itemKey. */
  readonly tool: string;
  /** The id of the state, which counts once. */
  readonly id: string;
  /** The action of the user; undefined when the client did not say it. */
  readonly action: unknown;
}

/**
 * Finds the destination of modern requests, at all paths, and writes into results the texts that later requests need for that.
 */
export class ModernAffinity {
  readonly #cipher: StateCipher;
  readonly #tasks: KnownTasks;

  constructor(stateKeys: StateKeys, tasks: KnownTasks, clock: Clock) {
    this.#cipher = new StateCipher(stateKeys, clock);
    this.#tasks = tasks;
  }

  /**
   * The destination of a request; undefined when any instance may answer. Throws RpcFailure (-32602) for a
   * state or cursor that was not given to this client for this call, for a state that has expired, and for a task of
   * another owner, or of a tool that the client may not call any more.
   */
  targetOf(request: ModernRequest): ModernTarget | undefined {
    const { method, params } = request;
    if (params.requestState !== undefined && hasRounds(method)) return this.#byState(request);
    if (params.cursor !== undefined && listReturnedBy(method) !== undefined) return this.#byCursor(request);
    return isTaskMethod(method) && isTaskId(params.taskId) ? this.#byTask(request, params.taskId) : undefined;
  }

  /** The id of the asking call that a request continues; undefined when it continues none. */
  askingCallIdOf(request: ModernRequest): string | undefined {
    const { requestState } = request.params;
    if (typeof requestState !== 'string' || !hasRounds(request.method)) return undefined;
    const content = this.#cipher.decrypt(requestState, callKey(request));
    return askingCallIn(content);
  }

  /**
   * Resolves when the other nodes have reported where the task of the request is; undefined when there is nothing to
   * ask.
   */
  untilTaskKnown(request: ModernRequest): Promise<void> | undefined {
    const { taskId } = request.params;
    return isTaskMethod(request.method) && isTaskId(taskId)
      ? this.#tasks.untilKnown(request, taskId)
      : undefined;
  }

  /**
   * Remembers the task of a result; the caller of `tools/call`, the only method that begins tasks, owns it. `tool`: its name at
   * the server. Source: SEP-2663.
   */
  learnTask(request: ModernRequest, result: JsonText, instanceId: string, tool: string | undefined): void {
    if (request.method === 'tools/call') this.#tasks.learn(request, result, instanceId, tool);
  }

  /**
   * The result with its cursor encrypted; the same object when it has none. A cursor that is too long is left
   * out. Equal cursors stay equal, because clients end a list whose cursor repeats.
   */
  encryptCursor(request: ModernRequest, result: JsonText, instanceId: string): JsonText {
    if (listReturnedBy(request.method) === undefined || !result.bytes.includes('"nextCursor"')) return result;
    const nextCursor = memberText(result.bytes, 'nextCursor');
    if (nextCursor === undefined) return result;
    const encrypted = this.#cipher.encryptEqually(
      { [KEYS.instance]: instanceId, [KEYS.cursor]: nextCursor },
      cursorKey(request),
    );
    const isKept = encrypted !== undefined && !isTooLong(encrypted);
    const written = Buffer.from(isKept ? JSON.stringify(encrypted) : '');
    const bytes = editedFields(result.bytes, (key) => (key === 'nextCursor' ? written : undefined));
    return JsonText.ofBytes(bytes);
  }

  /**
   * An `input_required` result with its state encrypted. A result without a state is unchanged, unless the call was confirmed,
   * or counted. Then the state says so; that of a counted call names no instance, since any may be asked next.
   */
  encryptState(request: ModernRequest, result: JsonText, answer: Answered): JsonText {
    const value = parsedResult(result, 'exactValue');
    if (!isJsonObject(value)) return result;
    const { requestState: own } = value;
    const isConfirmed = answer.confirmed !== undefined;
    const needsState = isConfirmed || answer.isCounted === true;
    if (typeof own !== 'string' && (own !== undefined || !needsState)) return result;
    const isOfAny = own === undefined && !isConfirmed;
    const state = isOfAny ? {} : { ...stateAt(answer), ...(own === undefined ? {} : { [KEYS.own]: own }) };
    const requestState = this.#encryptFor(request, state, isConfirmed ? CONFIRM_MS : undefined);
    return JsonText.ofValue({ ...value, requestState });
  }

  /**
   * The result for a call that first needs something of its client. `state` names the asking call, the
   * instance that refused the call, or the tool.
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
    const askingCallId = askingCallIn(content);
    if (askingCallId !== undefined) return { askingCallId, answers: answersOf(params) };
    const {
      [KEYS.asked]: asked,
      [KEYS.confirmed]: confirmed,
      [KEYS.instance]: instanceId,
      [KEYS.own]: own,
    } = content ?? {};
    const tool = asked ?? confirmed;
    const isAsked = asked !== undefined;
    const id = shortKey(String(requestState));
    const confirmation =
      typeof tool === 'string' ? { tool, id, action: isAsked ? actionIn(params) : 'accept' } : undefined;
    if (isAsked) {
      const { inputResponses: _, ...asBefore } = params; // no backend has asked
      return { params: asBefore, instanceId: undefined, confirmation };
    }
    if (content === undefined || (instanceId !== undefined && typeof instanceId !== 'string'))
      throw invalidParams('Invalid or expired requestState', { reason: 'invalid_request_state' });
    const asGiven = typeof own === 'string' ? { ...params, requestState: own } : params;
    return { params: asGiven, instanceId, confirmation, continues: id };
  }

  /** Finds the destination by the cursor. An empty cursor is a cursor like any other. */
  #byCursor(request: ModernRequest): ModernTarget {
    const { cursor } = request.params;
    const content = typeof cursor === 'string' ? this.#cipher.decrypt(cursor, cursorKey(request)) : undefined;
    const { [KEYS.instance]: instanceId, [KEYS.cursor]: own } = content ?? {};
    if (typeof instanceId !== 'string' || typeof own !== 'string') {
      throw invalidParams('Invalid or expired cursor', { reason: 'invalid_cursor' });
    }
    return { params: { ...request.params, cursor: own }, instanceId };
  }

  #byTask(request: ModernRequest, taskId: string): ModernTarget | undefined {
    const instanceId = this.#tasks.instancesOf(request, taskId).at(-1);
    if (instanceId !== undefined) return { params: request.params, instanceId };
    if (this.#tasks.isRefused(request, taskId)) throw invalidParams('Unknown task');
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

type Answered = Pick<SourcedEvent, 'instanceId' | 'confirmed' | 'isCounted'>;

/** The state of a retry that has to reach the instance of this answer. */
export function stateAt({ instanceId, confirmed }: Answered): JsonObject {
  return { [KEYS.instance]: instanceId, ...(confirmed === undefined ? {} : { [KEYS.confirmed]: confirmed }) };
}

/** The state of a retry that continues an asking call. */
export function stateOfAskingCall(id: string): JsonObject {
  return { [KEYS.askingCall]: id };
}

/** The state of a retry whose user is asked to confirm the call of this tool. */
export function stateOfConfirmation(tool: string): JsonObject {
  return { [KEYS.asked]: tool };
}

function askingCallIn(content: JsonObject | undefined): string | undefined {
  const id = content?.[KEYS.askingCall];
  return typeof id === 'string' ? id : undefined;
}

function actionIn(params: JsonFields): unknown {
  const answer = answersOf(params).get(CONFIRM);
  return answer !== undefined && 'result' in answer ? Object(answer.result).action : undefined;
}

function cursorKey(request: ModernRequest): string {
  return pathKey(`cursor of ${request.method}`, request);
}

/**
 * Reads the answers, which are plain results. A wrapped one, or one that is not an object, is dropped, so that the server
 * asks again. Throws RpcFailure (-32602).
 */
function answersOf(params: JsonFields): ReadonlyMap<string, ClientAnswer> {
  const inputResponses = fieldValue(params.inputResponses) ?? {};
  if (!isJsonObject(inputResponses)) throw invalidParams('Invalid params: inputResponses must be an object');
  const answers = new Map<string, ClientAnswer>();
  for (const [key, result] of Object.entries(inputResponses)) {
    if (isJsonObject(result) && !('method' in result) && !('result' in result)) answers.set(key, { result });
  }
  return answers;
}
