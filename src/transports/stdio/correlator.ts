// Knows which exchange each message of a shared channel is about: ids and progress tokens of callers collide (every
// client counts from 0), so both are replaced by numbers of the channel and put back on the way home.
// It does not send, and does not know what carries the messages. Source: MCP basic/index#requests.

import type { Observer } from 'rxjs';
import { backendUnavailable } from '../../domain/backend-errors.ts';
import type { ServerRequest } from '../../domain/client.ts';
import type { Delivered, GatewayError } from '../../domain/errors.ts';
import type { Canceller, ExchangeEvent, ExchangeRequest } from '../../domain/exchange.ts';
import { isJsonObject, type JsonFields, type JsonObject, type JsonValue } from '../../domain/json.ts';
import type { BackendMessage } from '../../domain/jsonrpc.ts';
import { META } from '../../domain/mcp.ts';
import { isCustomNotice } from '../../domain/notices.ts';
import { ECHOES, isEcho } from '../echo.ts';
import { LoneCaller } from '../http/lone-caller.ts';
import { callerTokenOf, paramsForCaller, paramsWithToken } from '../progress-token.ts';

type Answer = Extract<BackendMessage, { kind: 'result' | 'error' }>;
type Notification = Extract<BackendMessage, { kind: 'notification' }>;
type Request = Extract<BackendMessage, { kind: 'request' }>;
/** Who waits for an exchange. */
export type ExchangeObserver = Pick<Observer<ExchangeEvent>, 'next' | 'error' | 'complete'>;

/** A request that has no answer yet. */
export interface PendingExchange {
  /** Unique on the channel; also its progress token. */
  readonly id: number;
  readonly method: string;
  /** What is to be sent: the caller's params with the channel's progress token. */
  readonly params: JsonFields | undefined;
  readonly observer: ExchangeObserver;
  /** Whether a progress token was sent, and which one the caller knows it by. */
  readonly reports: boolean;
  readonly callerToken: JsonValue | undefined;
  readonly canceller: Canceller | undefined;
  /** Kept up to date by the channel. */
  delivered: Delivered;
}

const LISTEN = 'subscriptions/listen';
const LOG = 'notifications/message';

/** The exchanges of one channel that wait for their answer. Each is ended once: answered, failed or forgotten. */
export class Correlator {
  readonly #pending = new Map<number, PendingExchange>();
  #lastId = 0;
  #strayMessages = 0;
  readonly #lone: LoneCaller;

  /** `now` is a monotonic clock in ms. */
  constructor(now: () => number = () => performance.now()) {
    this.#lone = new LoneCaller(now);
  }

  /** Messages that were about no exchange: late, duplicate and unknown ids, and what `countStray` was told. */
  get strayMessages(): number {
    return this.#strayMessages;
  }

  countStray(): void {
    this.#strayMessages += 1;
  }

  /** Gives a request its id and remembers who waits. */
  open(request: ExchangeRequest, observer: ExchangeObserver): PendingExchange {
    this.#lastId += 1;
    const id = this.#lastId;
    this.#lone.note(request.caller);
    const params = paramsWithToken(request, id);
    const exchange: PendingExchange = {
      id,
      method: request.method,
      params,
      observer,
      reports: params !== request.params,
      callerToken: callerTokenOf(request),
      canceller: request.canceller,
      delivered: 'no',
    };
    this.#pending.set(id, exchange);
    return exchange;
  }

  /** Ends an exchange without telling its observer. False when it was ended before. */
  forget(exchange: PendingExchange): boolean {
    return this.#pending.delete(exchange.id);
  }

  /** Hands an answer to the exchange it is for. */
  takeAnswer(message: Answer): void {
    const exchange = this.#ownerOf(message);
    if (exchange === undefined) {
      this.#strayMessages += 1;
      // Ids are compared strictly; but a number that came back as text must not leave its caller waiting for nothing.
      if (typeof message.id === 'string')
        this.fail(Number(message.id), 'it answered with an id of another type');
      return;
    }
    this.#pending.delete(exchange.id);
    exchange.observer.next(
      message.kind === 'result'
        ? { kind: 'result', result: message.result }
        : { kind: 'error', error: message.error },
    );
    exchange.observer.complete();
  }

  /** Hands a notification to the exchange it is about. False when it is about none in particular. */
  takeNotification({ method, params }: Notification): boolean {
    if (method === 'notifications/progress') {
      this.#takeProgress(method, params);
      return true;
    }
    const namesNoCall = method === LOG || isCustomNotice(method);
    const exchange = this.#subscriptionOf(params) ?? (namesNoCall ? this.#ownerOfUnnamed() : undefined);
    exchange?.observer.next({ kind: 'notification', method, params });
    return exchange !== undefined;
  }

  /** Hands a request of the backend to the only exchange there is. False when it may be about another, or about none. */
  takeRequest(request: ServerRequest): boolean {
    const exchange = this.#onlyOne();
    exchange?.observer.next(request);
    return exchange !== undefined;
  }

  /** Fails the exchange whose own request came back. False for a request that the backend means as one. */
  takeEcho(message: Request): boolean {
    const exchange = typeof message.id === 'number' ? this.#pending.get(message.id) : undefined;
    if (exchange === undefined || !isEcho(message, exchange)) return false;
    this.fail(exchange.id, ECHOES);
    return true;
  }

  /** Ends one exchange because of something unreadable that is its answer. Does nothing for an unknown id. */
  fail(id: number, reason: string): void {
    const exchange = this.#pending.get(id);
    if (exchange === undefined) return;
    this.#pending.delete(id);
    exchange.observer.error(backendUnavailable(reason, { delivered: 'unknown', suspicious: true }));
  }

  /** Ends the exchanges that are pending now, but for those without an error; what observers start meanwhile stays. */
  failAll(errorFor: (exchange: PendingExchange) => GatewayError | undefined): void {
    const left = [...this.#pending.values()];
    for (const exchange of left) {
      const error = errorFor(exchange);
      if (error !== undefined && this.#pending.delete(exchange.id)) exchange.observer.error(error);
    }
  }

  #ownerOf({ kind, id }: Answer): PendingExchange | undefined {
    if (typeof id === 'number') return this.#pending.get(id);
    // The server could not read which request it refuses. When only one can be meant, it is meant.
    return kind === 'error' && id === null ? this.#onlyOne() : undefined;
  }

  /**
   * Log lines, and notifications that the protocol does not know, carry no id. They are about the only exchange that is under
   * way, or about one that has ended: then they must not reach anybody but who called before, too.
   */
  #ownerOfUnnamed(): PendingExchange | undefined {
    return this.#lone.isAlone ? this.#onlyOne() : undefined;
  }

  /** Subscriptions stay open and ask for nothing: they are not counted. */
  #onlyOne(): PendingExchange | undefined {
    let found: PendingExchange | undefined;
    for (const exchange of this.#pending.values()) {
      if (exchange.method === LISTEN) continue;
      if (found !== undefined) return undefined;
      found = exchange;
    }
    return found;
  }

  /** What belongs to a subscription names the request that opened it. Source: MCP 2026-07-28 basic/patterns/subscriptions. */
  #subscriptionOf({ _meta: meta }: JsonObject): PendingExchange | undefined {
    const id = isJsonObject(meta) ? meta[META.subscriptionId] : undefined;
    const exchange = typeof id === 'number' ? this.#pending.get(id) : undefined;
    return exchange?.method === LISTEN ? exchange : undefined;
  }

  #takeProgress(method: string, params: JsonObject): void {
    const token = params.progressToken;
    const exchange = typeof token === 'number' ? this.#pending.get(token) : undefined;
    if (!exchange?.reports) {
      this.#strayMessages += 1;
      return;
    }
    exchange.observer.next({
      kind: 'notification',
      method,
      params: paramsForCaller(params, exchange.callerToken),
    });
  }
}
