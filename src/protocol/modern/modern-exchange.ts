// One request of a modern client that is under way: reads the events of its exchange and writes the answer, as JSON when
// no message came before it and it takes no longer than a second, else as an event stream. The request is cancelled when the
// client closes the connection. modern-endpoint.ts chose the destination before.
// Source: MCP 2026-07-28 basic/transports/streamable-http, basic/patterns/cancellation.

import type { Observable, Subscription } from 'rxjs';
import type { ClientQuestion, ServerNotification, ServerRequest } from '../../domain/client.ts';
import { type Clock, SLOW_MS } from '../../domain/clock.ts';
import { type ErrorCode, hasCode, internalError } from '../../domain/errors.ts';
import { type Answer, type CallReport, isFinal } from '../../domain/exchange.ts';
import type { JsonFields, JsonObject, JsonText } from '../../domain/json.ts';
import { type JsonRpcError, RPC } from '../../domain/jsonrpc.ts';
import { LIMITS } from '../../domain/limits.ts';
import { hasRounds, includesLevel, isCustomNotice, LOG, PROGRESS } from '../../domain/mcp.ts';
import { aggregateInstance } from '../aggregate/aggregate-names.ts';
import { type McpReply, type McpStream, noteError } from '../endpoint-types.ts';
import {
  type InputRequest,
  type InputRequests,
  missingCapabilities,
  missingCapabilityError,
} from '../input-requests.ts';
import type { CallParking } from '../ports.ts';
import {
  errorMessage,
  faultOf,
  notificationMessage,
  RpcFailure,
  resultMessage,
  rpcFailureOf,
} from '../rpc.ts';
import { invalidParams, type ModernCall } from './modern-call.ts';
import { infoFor } from './modern-discover.ts';
import { completed, modernError, requestedVisits, resultTypeOf } from './modern-over-legacy.ts';
import type { ModernRouting } from './modern-routing.ts';

export interface ModernExchangeDeps {
  readonly routing: ModernRouting;
  readonly alarm: Clock['alarm'];
  onFault(error: unknown): void;
  readonly parked: CallParking;
}

/** Observes one exchange, and answers once. */
export class ModernExchange {
  readonly #call: ModernCall;
  readonly #report: CallReport;
  readonly #reply: McpReply;
  readonly #deps: ModernExchangeDeps;
  #subscription: Subscription | undefined;
  #cancelSlow: (() => void) | undefined;
  #stream: McpStream | undefined;
  #isOver = false;

  constructor(call: ModernCall, report: CallReport, reply: McpReply, deps: ModernExchangeDeps) {
    this.#call = call;
    this.#report = report;
    this.#reply = reply;
    this.#deps = deps;
  }

  start(answers$: Observable<Answer | ClientQuestion>): void {
    this.#subscription = answers$.subscribe(this);
    if (this.#isOver) {
      this.#subscription.unsubscribe();
      return;
    }
    this.#cancelSlow = this.#deps.alarm(SLOW_MS, () => this.#begin());
    this.#reply.onGone(() => {
      this.#report.ended({ kind: 'cancelled' });
      this.#end();
    });
  }

  #begin(): void {
    if (this.#isOver || this.#stream !== undefined) return;
    const { sentTo } = this.#report;
    const isAggregate = this.#call.template === undefined;
    if (sentTo !== undefined) this.#noteInstance(isAggregate ? aggregateInstance(sentTo) : sentTo.id);
    this.#stream = this.#reply.stream();
  }

  next(answer: Answer | ClientQuestion): void {
    if (this.#isOver) return;
    try {
      if ('kind' in answer) this.#ask(answer);
      else this.#handle(answer);
    } catch (thrown) {
      this.error(thrown);
    }
  }

  error(thrown: unknown): void {
    if (this.#isOver) return;
    const failure = rpcFailureOf(this.#explained(thrown), this.#call.id);
    const { status, error, errorCode, headers } = failure;
    this.#report.ended({ kind: 'failed', code: errorCode ?? error.code });
    const fault = faultOf(failure);
    if (fault !== undefined) this.#deps.onFault(fault);
    // A parameter that the gateway itself refuses gets the answer that a backend would give.
    const isAnswer = error.code === RPC.invalidParams && !(thrown instanceof RpcFailure);
    this.#refuseWith(error, isAnswer ? 200 : status, headers, errorCode);
  }

  complete(): void {
    if (!this.#isOver) this.error(internalError(new Error('the exchange ended without an answer')));
  }

  #handle({ event, instanceId, isRemembered }: Answer): void {
    if (!isRemembered) this.#noteInstance(instanceId);
    if (isFinal(event)) this.#report.ended(event);
    switch (event.kind) {
      case 'result':
        this.#answer(resultMessage(this.#call.id, this.#finished(event.result, instanceId)), 200);
        return;
      case 'error':
        this.#takeError(event.error, instanceId);
        return;
      case 'notification':
        this.#notify(event);
        return;
      case 'request':
        this.#refuse(event);
        return;
      case 'interrupted':
        return; // clients of this era do not poll
    }
  }

  /** The call is parked. It is cancelled if its client cannot answer: the requests of the backend get an error. */
  #ask(asked: ClientQuestion): void {
    const { owner, method } = this.#call;
    this.#noteInstance(asked.instanceId);
    const isAsked = this.#require(Object.fromEntries(asked.requests), { p: asked.id });
    if (isAsked) return;
    const resumed = this.#deps.parked.resume(asked.id, owner, method, new Map());
    resumed?.subscribe({ error: () => undefined }).unsubscribe();
  }

  #takeError(error: JsonRpcError, instanceId: string): void {
    const { method, params } = this.#call;
    const visits = hasRounds(method) ? requestedVisits(error) : undefined;
    if (visits === undefined) this.#fail(modernError(method, params, error));
    else this.#require(visits, { i: instanceId });
  }

  /** Answers with input requests: the client repeats the request with its responses. False when it cannot answer them. */
  #require(requests: InputRequests, state: JsonObject): boolean {
    const call = this.#call;
    const missing = this.#missing(Object.values(requests));
    if (missing !== undefined) {
      this.#fail(missingCapabilityError(missing));
      return false;
    }
    const result = this.#deps.routing.inputRequired(call, requests, state, infoFor(call));
    this.#report.ended({ kind: 'result', result });
    this.#answer(resultMessage(call.id, result), 200);
    return true;
  }

  /** Refuses a request of the server: the client declared no capability for it. */
  #refuse(request: ServerRequest): void {
    const error = missingCapabilityError(this.#missing([request]) ?? {});
    request.answer({ error });
    this.#fail(error);
  }

  #missing(requests: Iterable<InputRequest>): JsonObject | undefined {
    return missingCapabilities(requests, this.#call.envelope.profile.capabilities);
  }

  #finished(result: JsonText, instanceId: string): JsonText {
    const { routing } = this.#deps;
    const call = this.#call;
    const type = resultTypeOf(result);
    if (type === 'input_required' && hasRounds(call.method))
      return routing.encryptState(call, result, instanceId);
    if ((type !== undefined && type !== 'complete') || call.params.task !== undefined)
      routing.learnTask(call, result, instanceId);
    const listed = routing.encryptCursor(call, result, instanceId);
    const isComplete = type === undefined || type === 'complete';
    return isComplete ? completed(call.method, type, listed, infoFor(call)) : listed;
  }

  #notify({ method, params }: ServerNotification): void {
    if (!this.#isWanted(method, params)) return;
    this.#stream ??= this.#reply.stream();
    if (this.#stream.unsentBytes > LIMITS.unreadBytes) return; // messages before the answer may be left out
    this.#stream.send({ data: notificationMessage(method, this.#withOwnToken(method, params)) });
  }

  /** Only notifications about this request, and of those only the ones that the request opted in to. */
  #isWanted(method: string, params: JsonObject): boolean {
    const { progressToken, logLevel } = this.#call.envelope;
    if (method === PROGRESS) return progressToken !== undefined;
    if (method !== LOG) return isCustomNotice(method);
    return logLevel !== undefined && includesLevel(logLevel, params.level);
  }

  /** A call that a retry continues began with the progress token of another request, or with none. */
  #withOwnToken(method: string, params: JsonObject): JsonFields {
    const { progressToken } = this.#call.envelope;
    const isOther = method === PROGRESS && params.progressToken !== progressToken;
    return isOther ? { ...params, progressToken } : params;
  }

  #fail(error: JsonRpcError): void {
    this.#report.ended({ kind: 'error', error });
    this.#refuseWith(error, STATUS_OF.get(error.code) ?? 200);
  }

  #refuseWith(error: JsonRpcError, status: number, headers?: readonly string[], errorCode?: ErrorCode): void {
    const message = errorMessage(this.#call.id, error); // may throw, which fails the exchange
    noteError(this.#reply.log, error.code, errorCode);
    this.#answer(message, status, headers);
  }

  #answer(message: Uint8Array | string, status: number, headers: readonly string[] = []): void {
    const stream = this.#stream;
    this.#end();
    if (stream === undefined) {
      this.#reply.json(status, message, headers);
      return;
    }
    stream.send({ data: message });
    stream.end();
  }

  #noteInstance(instanceId: string): void {
    if (instanceId !== '') this.#reply.log.instanceId = instanceId;
  }

  /** The cursor, state or task of an instance is lost with the instance. */
  #explained(thrown: unknown): unknown {
    if (!hasCode(thrown, 'SERVER_NOT_FOUND')) return thrown;
    return invalidParams('The instance that this request continues with is gone. Start again.', {
      reason: 'instance_gone',
    });
  }

  #end(): void {
    this.#isOver = true;
    this.#cancelSlow?.();
    this.#subscription?.unsubscribe();
  }
}

/** HTTP statuses of error codes; every other error is an answer with 200. Source: streamable-http; SDK. */
const STATUS_OF: ReadonlyMap<number, number> = new Map([
  [RPC.methodNotFound, 404],
  [RPC.headerMismatch, 400],
  [RPC.missingCapability, 400],
  [RPC.unsupportedVersion, 400],
]);
