// One request of a modern client that is under way: writes the answer as JSON if no message came before it and it takes
// at most a second, otherwise as an event stream.

import type { AskingCalls } from '../../domain/calls/asking-calls.ts';
import { CONFIRM, CONFIRM_MS, ConfirmationRequired } from '../../domain/calls/confirmation-required.ts';
import { CONNECT_LINK_MS, ConnectionRequired } from '../../domain/calls/connection-required.ts';
import type { CallReport, SourcedEvent } from '../../domain/calls/exchange.ts';
import type { FinalEvent } from '../../domain/calls/exchange-event.ts';
import { type ErrorCode, hasCode } from '../../domain/errors/errors.ts';
import type { JsonFields, JsonObject, JsonText } from '../../domain/json/json.ts';
import type { ClientQuestion, InputRequest, Notification, ServerRequest } from '../../domain/mcp/client.ts';
import { type JsonRpcError, RPC } from '../../domain/mcp/jsonrpc.ts';
import { hasRounds, includesLevel, isCustomNotice, LOG, PROGRESS } from '../../domain/mcp/mcp.ts';
import type { SharedTimer } from '../../domain/time/shared-timer.ts';
import { MAX_UNREAD_BYTES } from '../client-bounds.ts';
import { ClientCall } from '../client-call.ts';
import { type FaultListener, type McpStream, noteError, type ReplyWriter } from '../endpoint-types.ts';
import {
  connectionInWords,
  failure,
  type InputRequests,
  missingCapabilities,
  missingCapabilityError,
} from '../input-requests.ts';
import { errorMessage, notificationMessage, RpcFailure, resultMessage, rpcFailureOf } from '../rpc.ts';
import { infoFor } from './discover.ts';
import { type ModernAffinity, stateAt, stateOfAskingCall, stateOfConfirmation } from './modern-affinity.ts';
import { completed, modernError, requestedVisits, resultTypeOf } from './modern-over-legacy.ts';
import { invalidParams, type ModernRequest } from './modern-request.ts';

export interface ModernCallDeps {
  readonly affinity: ModernAffinity;
  readonly slowAnswerTimer: SharedTimer;
  readonly onFault: FaultListener;
  readonly askingCalls: AskingCalls;
}

/**
 * A call, from its POST to the end of its answer. A client cancels its request by closing the connection.
 * modern-endpoint.ts has chosen the destination. Source: MCP 2026-07-28 basic/transports/streamable-http,
 * basic/patterns/cancellation.
 */
export class ModernCall extends ClientCall<SourcedEvent | ClientQuestion> {
  readonly #request: ModernRequest;
  readonly #reply: ReplyWriter;
  readonly #deps: ModernCallDeps;
  #stream: McpStream | undefined;

  constructor(request: ModernRequest, report: CallReport, reply: ReplyWriter, deps: ModernCallDeps) {
    super(report, deps.onFault);
    this.#request = request;
    this.#reply = reply;
    this.#deps = deps;
  }

  // --- for the writer --------------------------------------------------------------------------------------

  get pathName(): string | undefined {
    return this.#request.pathName;
  }

  begin(): McpStream {
    this.#stream ??= this.#reply.stream();
    return this.#stream;
  }

  take(sourced: SourcedEvent | ClientQuestion): void {
    if ('kind' in sourced) this.#ask(sourced);
    else this.#handle(sourced);
  }

  failureOf(thrown: unknown): RpcFailure {
    return rpcFailureOf(explained(thrown), this.#request.id);
  }

  refuse({ status, error, errorCode, headers }: RpcFailure, thrown: unknown): void {
    // A parameter that the gateway itself refuses gets the answer that a backend would give.
    const isAnswer = error.code === RPC.invalidParams && !(thrown instanceof RpcFailure);
    this.#refuseWith(error, isAnswer ? 200 : status, headers, errorCode);
  }

  noteInstance(instanceId: string): void {
    this.#reply.log.instanceId = instanceId;
  }

  #handle(sourced: SourcedEvent): void {
    const { event } = sourced;
    this.noteInstanceOf(sourced);
    switch (event.kind) {
      case 'result':
        this.#answerWith(this.#finished(event.result, sourced), event);
        return;
      case 'error':
        if (event.error instanceof ConnectionRequired) this.#requireConnection(event.error, sourced);
        else if (event.error instanceof ConfirmationRequired) this.#requireConfirmation(event.error, sourced);
        else this.#takeError(event.error, sourced);
        return;
      case 'notification':
        this.#notify(event);
        return;
      case 'request':
        this.#refuseRequest(event);
        return;
      case 'interrupted':
        return; // clients of this era do not poll
    }
  }

  /**
   * Passes questions of the backend to the client, for which the call then waits. If the client cannot answer them,
   * the call is cancelled and the backend gets an error.
   */
  #ask(asked: ClientQuestion): void {
    const { owner, method } = this.#request;
    this.noteInstanceOf(asked);
    const isAsked = this.#require(Object.fromEntries(asked.requests), stateOfAskingCall(asked.id));
    if (isAsked) return;
    const resumed = this.#deps.askingCalls.resume(asked.id, owner.id, method, new Map());
    resumed?.subscribe({ error: () => undefined }).unsubscribe();
  }

  #takeError(error: JsonRpcError, sourced: SourcedEvent): void {
    const { method, params } = this.#request;
    const visits = hasRounds(method) ? requestedVisits(error) : undefined;
    if (visits === undefined) this.#fail(modernError(method, params, error));
    else this.#require(visits, stateAt(sourced), sourced.confirmed === undefined ? undefined : CONFIRM_MS);
  }

  #requireConnection(error: ConnectionRequired, sourced: SourcedEvent): void {
    const { method, envelope } = this.#request;
    const event = connectionInWords(method, error, envelope.profile.capabilities);
    if (event !== undefined) this.#handle({ ...sourced, event });
    else this.#require(requestedVisits(error) ?? {}, stateAt(sourced), CONNECT_LINK_MS);
  }

  /** Asks the user to confirm the call; a client that cannot be asked gets the message in words. */
  #requireConfirmation({ message, request, tool }: ConfirmationRequired, sourced: SourcedEvent): void {
    if (this.#missing([request]) !== undefined)
      this.#handle({ ...sourced, event: failure(this.#request.method, message) });
    else this.#require({ [CONFIRM]: request }, stateOfConfirmation(tool), CONFIRM_MS);
  }

  /**
   * Answers with input requests; the client repeats its request with the responses. Returns false when the client
   * cannot answer them.
   */
  #require(requests: InputRequests, state: JsonObject, validMs?: number): boolean {
    const request = this.#request;
    const missing = this.#missing(Object.values(requests));
    if (missing !== undefined) {
      this.#fail(missingCapabilityError(missing));
      return false;
    }
    const info = infoFor(request);
    this.#answerWith(this.#deps.affinity.inputRequired(request, requests, state, info, validMs));
    return true;
  }

  /** Refuses a request of the server for which the client declared no capability. */
  #refuseRequest(request: ServerRequest): void {
    const error = missingCapabilityError(this.#missing([request]) ?? {});
    request.answer({ error });
    this.#fail(error);
  }

  #missing(requests: Iterable<InputRequest>): JsonObject | undefined {
    return missingCapabilities(requests, this.#request.envelope.profile.capabilities);
  }

  #finished(result: JsonText, sourced: SourcedEvent): JsonText {
    const { instanceId } = sourced;
    const { affinity } = this.#deps;
    const request = this.#request;
    const type = resultTypeOf(result);
    if (type === 'input_required' && hasRounds(request.method))
      return affinity.encryptState(request, result, sourced);
    if ((type !== undefined && type !== 'complete') || request.params.task !== undefined)
      affinity.learnTask(request, result, instanceId, this.report.tool);
    const listed = affinity.encryptCursor(request, result, instanceId);
    const isComplete = type === undefined || type === 'complete';
    return isComplete ? completed(request.method, type, listed, () => infoFor(request)) : listed;
  }

  #notify({ method, params }: Notification): void {
    if (!this.#isWanted(method, params)) return;
    const stream = this.begin();
    if (stream.unsentBytes > MAX_UNREAD_BYTES) return; // messages before the answer may be left out
    stream.send({ data: notificationMessage(method, this.#withOwnToken(method, params)) });
  }

  /** True for progress and log messages that the request asked for, and for all that MCP does not define. */
  #isWanted(method: string, params: JsonObject): boolean {
    const { progressToken, logLevel } = this.#request.envelope;
    if (method === PROGRESS) return progressToken !== undefined;
    if (method !== LOG) return isCustomNotice(method);
    return logLevel !== undefined && includesLevel(logLevel, params.level);
  }

  /**
   * The params with the progress token of this request: the call that it continues began with another token,
   * or with none.
   */
  #withOwnToken(method: string, params: JsonObject): JsonFields {
    const { progressToken } = this.#request.envelope;
    const isOther = method === PROGRESS && params.progressToken !== progressToken;
    return isOther ? { ...params, progressToken } : params;
  }

  #answerWith(result: JsonText, end: FinalEvent = { kind: 'result', result }): void {
    const message = resultMessage(this.#request.id, result); // may throw, which fails the exchange
    this.report.ended(end);
    this.#answer(message, 200);
  }

  #fail(error: JsonRpcError): void {
    this.report.ended({ kind: 'error', error });
    this.#refuseWith(error, STATUS_OF.get(error.code) ?? 200);
  }

  #refuseWith(error: JsonRpcError, status: number, headers?: readonly string[], errorCode?: ErrorCode): void {
    const message = errorMessage(this.#request.id, error); // may throw, which fails the exchange
    noteError(this.#reply.log, error.code, errorCode);
    this.#answer(message, status, headers);
  }

  #answer(message: Uint8Array | string, status: number, headers: readonly string[] = []): void {
    if (!this.end()) return;
    this.leave();
    const stream = this.#stream;
    if (stream === undefined) {
      this.#reply.json(status, message, headers);
      return;
    }
    stream.send({ data: message });
    stream.end();
  }
}

/** Replaces SERVER_NOT_FOUND by an error for the client: the cursor, state or task is lost with its instance. */
function explained(thrown: unknown): unknown {
  if (!hasCode(thrown, 'SERVER_NOT_FOUND')) return thrown;
  return invalidParams('The instance that this request continues with is gone. Start again.', {
    reason: 'instance_gone',
  });
}

/** The HTTP statuses of error codes; every other error is an answer with 200. Source: streamable-http; SDK. */
const STATUS_OF: ReadonlyMap<number, number> = new Map([
  [RPC.methodNotFound, 404],
  [RPC.headerMismatch, 400],
  [RPC.missingCapability, 400],
  [RPC.unsupportedVersion, 400],
]);
