// Knows which exchange each message of a shared channel is about: ids and progress tokens of callers collide (every
// client counts from 0), so both are replaced by numbers of the channel and put back on the way home.
// It does not send, and does not know what carries the messages. Source: MCP basic/index#requests.

import type { Observer } from 'rxjs';
import { CallMap } from '../../domain/call-map.ts';
import type { ServerRequest } from '../../domain/client.ts';
import { backendUnavailable } from '../../domain/error-catalogue.ts';
import type { Delivered, GatewayError } from '../../domain/errors.ts';
import type { Canceller, ExchangeEvent, ExchangeRequest } from '../../domain/exchange.ts';
import { isJsonObject, type JsonFields, type JsonObject, type JsonValue } from '../../domain/json.ts';
import type { AnswerMessage, NotificationMessage, RequestMessage } from '../../domain/jsonrpc.ts';
import { LIMITS } from '../../domain/limits.ts';
import { isCustomNotice, META } from '../../domain/mcp.ts';
import { callerTokenOf, ECHOES, isEcho, LoneCaller, paramsForCaller, paramsWithToken } from '../handshake.ts';
import type { OversizeLine } from './line-decoder.ts';

/** The observer of an exchange. */
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

/** The exchanges of one channel that wait for their answer. Each ends once: answered, failed or forgotten. */
export class Correlator {
  readonly #pending = new CallMap<PendingExchange>();
  #lastId = 0;
  #unmatchedMessages = 0;
  readonly #lone: LoneCaller;

  /** `now` is a monotonic clock in ms. */
  constructor(now: () => number = () => performance.now()) {
    this.#lone = new LoneCaller(now);
  }

  /** Messages that were about no exchange: late, duplicate and unknown ids, and those that `countStray` counted. */
  get unmatchedMessages(): number {
    return this.#unmatchedMessages;
  }

  countStray(): void {
    this.#unmatchedMessages += 1;
  }

  /** Gives a request its id and remembers its observer. */
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

  /** Ends an exchange without a call to its observer. False when it was ended before. */
  forget(exchange: PendingExchange): boolean {
    return this.#pending.delete(exchange.id);
  }

  /** Hands an answer to the exchange it is for. */
  takeAnswer(message: AnswerMessage): void {
    const exchange = this.#ownerOf(message);
    if (exchange === undefined) {
      this.#unmatchedMessages += 1;
      // Ids are compared strictly; but a number that came back as text must not leave its caller waiting in vain.
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
  takeNotification({ method, params }: NotificationMessage): boolean {
    if (method === 'notifications/progress') {
      this.#takeProgress(method, params);
      return true;
    }
    const namesNoCall = method === LOG || isCustomNotice(method);
    const exchange = this.#subscriptionOf(params) ?? (namesNoCall ? this.#ownerOfUnnamed() : undefined);
    exchange?.observer.next({ kind: 'notification', method, params });
    return exchange !== undefined;
  }

  /** Passes a request of the backend to the only exchange there is. False when it may be about another exchange, or about none. */
  takeRequest(request: ServerRequest): boolean {
    const exchange = this.#onlyOne();
    exchange?.observer.next(request);
    return exchange !== undefined;
  }

  /** Fails the exchange whose own request came back. False for a genuine request of the backend. */
  takeEcho(message: RequestMessage): boolean {
    const exchange = typeof message.id === 'number' ? this.#pending.get(message.id) : undefined;
    if (exchange === undefined || !isEcho(message, exchange)) return false;
    this.fail(exchange.id, ECHOES);
    return true;
  }

  /** Ends one exchange because its answer is unreadable. Does nothing for an unknown id. */
  fail(id: number, reason: string): void {
    const exchange = this.#pending.get(id);
    if (exchange === undefined) return;
    this.#pending.delete(id);
    exchange.observer.error(backendUnavailable(reason, { delivered: 'unknown', suspicious: true }));
  }

  /** Ends the exchanges that are pending now, but for those without an error; what observers start meanwhile stays. */
  failAll(errorFor: (exchange: PendingExchange) => GatewayError | undefined): void {
    const left = this.#pending.values();
    for (const exchange of left) {
      const error = errorFor(exchange);
      if (error !== undefined && this.#pending.delete(exchange.id)) exchange.observer.error(error);
    }
  }

  #ownerOf({ kind, id }: AnswerMessage): PendingExchange | undefined {
    if (typeof id === 'number') return this.#pending.get(id);
    // The server could not read which request it refuses. With one exchange under way it is that one.
    return kind === 'error' && id === null ? this.#onlyOne() : undefined;
  }

  /**
   * Log lines, and notifications that the protocol does not know, carry no id. They are about the only exchange that is under
   * way, or about one that has ended: so they go only to a caller that has called alone for a while.
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
      this.#unmatchedMessages += 1;
      return;
    }
    exchange.observer.next({
      kind: 'notification',
      method,
      params: paramsForCaller(params, exchange.callerToken),
    });
  }
}

// Finds the exchange of a message that cannot be used: looks for the id in the readable part, so that the caller fails at once
// instead of waiting for nothing.

/** Ids that an unusable line answers; empty for what is no answer, such as a log line on stdout. */
export function idsOfBrokenAnswer(line: Buffer): readonly number[] {
  if (!looksLikeJson(line)) return [];
  const message = parsed(line);
  if (message === undefined) {
    // Cut off somewhere, or two in one, or large: the head may still name an id, and the tail another.
    const head = idAtHead(line.toString('latin1', 0, EDGE_BYTES));
    const tail = idAtTail(line.toString('latin1', Math.max(0, line.length - EDGE_BYTES)));
    return [...new Set([head, tail])].filter((id) => id !== undefined);
  }
  const answers = Array.isArray(message) ? message : [message];
  return answers.filter(looksLikeAnswer).map(({ id }) => id);
}

/** Undefined for what is not JSON, or too large to be parsed. */
function parsed(line: Buffer): unknown {
  if (line.length > LIMITS.parsedMessageBytes) return undefined;
  try {
    return JSON.parse(line.toString('utf8'));
  } catch {
    return undefined; // what else can be read of it is looked for
  }
}

/** Whether a line begins like a JSON object or list, and not like text. */
export function looksLikeJson(line: Buffer): boolean {
  return line[0] === OPEN_BRACE || line[0] === OPEN_BRACKET;
}

/** The exchange that waits for an oversize line; 'none' (it is no answer), or 'unknown'. */
export function ownerOfOversize({ head, tail }: OversizeLine): number | 'none' | 'unknown' {
  const start = head.toString('latin1');
  if (METHOD_AT_HEAD.test(start)) return 'none';
  return idAtHead(start) ?? idAtTail(tail.toString('latin1')) ?? 'unknown';
}

const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;
const EDGE_BYTES = 256;

// Python, Go and Rust servers write the id before the result, TypeScript servers after it. What closes the line
// closes the outermost object, and a quote inside a string would be escaped: these are ids of the message itself.
const ID_AT_HEAD = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"[^"]*"\s*,\s*)?"id"\s*:\s*(\d+)\s*[,}]/;
const ID_AT_TAIL =
  /[,{]\s*(?:"jsonrpc"\s*:\s*"[^"]*"\s*,\s*"id"\s*:\s*(\d+)|"id"\s*:\s*(\d+)\s*,\s*"jsonrpc"\s*:\s*"[^"]*")\s*\}\s*$/;
const METHOD_AT_HEAD = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"[^"]*"\s*,\s*)?(?:"id"\s*:\s*[^,{[]*,\s*)?"method"\s*:/;

function idAtHead(head: string): number | undefined {
  return numberOf(ID_AT_HEAD.exec(head)?.[1]);
}

function idAtTail(tail: string): number | undefined {
  const match = ID_AT_TAIL.exec(tail);
  return numberOf(match?.[1] ?? match?.[2]);
}

function numberOf(digits: string | undefined): number | undefined {
  return digits === undefined ? undefined : Number(digits);
}

/** Programs that log JSON to stdout often have an `id` in it; an answer has more than that. */
function looksLikeAnswer(message: unknown): message is { readonly id: number } {
  if (!isJsonObject(message) || typeof message.id !== 'number' || 'method' in message) return false;
  return 'jsonrpc' in message || 'result' in message || isJsonObject(message.error);
}
