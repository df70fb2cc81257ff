// Answers as promises, for callers that do not stream: a result, a whole list, or the error that an error answer means.

import { filter, fromEvent, lastValueFrom, type Observable, takeUntil } from 'rxjs';
import type { ToolRights } from '../domain/accounts/rights.ts';
import { errorOfAnswer, needsList, promptOf } from '../domain/calls/answer-errors.ts';
import {
  type ExchangeOptions,
  type ExchangeRequest,
  isSourcedAnswer,
  type OpenReport,
  type SourcedAnswer,
  type SourcedEvent,
} from '../domain/calls/exchange.ts';
import { parsedResult } from '../domain/calls/parsed-result.ts';
import { backendUnavailable } from '../domain/errors/backend-errors.ts';
import { atInstance, type GatewayError } from '../domain/errors/errors.ts';
import { definedFields, type JsonObject } from '../domain/json/json.ts';
import type { ListReader, Reading } from '../domain/lists/list-reader.ts';
import { allowedTools, type ListReading } from '../domain/lists/listed-tools.ts';
import { type JsonRpcError, RPC } from '../domain/mcp/jsonrpc.ts';
import type { ListField } from '../domain/mcp/mcp.ts';
import { NO_CALLER } from '../domain/memory/user-shares.ts';
import type { TaskScheduler } from '../domain/time/task-scheduler.ts';

/** Aborting `signal` cancels the request on the backend and rejects with the reason of the signal. */
export interface RequestOptions extends ExchangeOptions {
  /** The id of the principal whose shares count; overrides that of the request. Default: none. */
  readonly callerId?: string | undefined;
  /** The tools that the caller may call; a list of tools contains no others. Default: all. */
  readonly tools?: ToolRights | undefined;
  /** The id of the HTTP request, for events; overrides that of the request. Default: none. */
  readonly requestId?: string | undefined;
  /** Gets the facts of the request, such as the instance that works on it; for a list, those of all its pages. */
  readonly report?: OpenReport | undefined;
  /** Cancels the request. */
  readonly signal?: AbortSignal | undefined;
}

/** A result, and the instance that gave it. */
export interface CallResult {
  /** The MCP result as the backend gave it. */
  readonly result: unknown;
  readonly instanceId: string;
  readonly serverId: string;
}

/** The items of all pages of a list, from one instance. */
export interface ListResult {
  /** Equal lists that are in use at the same time share their items, which must not be changed. */
  readonly items: readonly JsonObject[];
  readonly instanceId: string;
  /**
   * The reason why the list is not complete, as a clause: it has no end, or too many items; templates of a view are missing, or
   * not up to date.
   */
  readonly cut?: string;
}

/** The JSON-RPC error of a backend, and the instance that gave it. */
export interface ErrorAnswer {
  readonly error: JsonRpcError;
  readonly instanceId: string;
}

/** The signature of Gateway.exchange. */
type Exchange = (
  template: string,
  request: ExchangeRequest,
  options?: ExchangeOptions,
) => Observable<SourcedEvent>;

/** Makes requests for routes and embedding programs, and promises one answer to each. */
export class PromisedAnswers {
  readonly #exchange: Exchange;
  readonly #scheduler: TaskScheduler;
  readonly #reader: ListReader;

  constructor(exchange: Exchange, { scheduler, listReader }: ListReading) {
    this.#exchange = exchange;
    this.#scheduler = scheduler;
    this.#reader = listReader;
  }

  /**
   * Resolves with the result; rejects with the errors of an exchange, with BACKEND_UNAVAILABLE for a result that is not JSON, and
   * with `errorOf` an error answer.
   */
  async ask(template: string, request: ExchangeRequest, options: RequestOptions = {}): Promise<CallResult> {
    const { event, instanceId, serverId } = await this.#answer(template, request, options);
    if (event.kind === 'error') {
      throw await this.errorOf(template, request, { error: event.error, instanceId }, options.signal);
    }
    return { result: parsedResult(event.result, 'value', ANY_SIZE), instanceId, serverId };
  }

  /**
   * All pages of one list from one instance, with exact numbers (parseExact). Empty when its server does not offer
   * the list. See gatherPages.
   */
  list(template: string, field: ListField, options: RequestOptions = {}): Promise<ListResult> {
    return this.useList(template, field, options, (list) => list);
  }

  /**
   * Reads a list as `list` does; resolves with the result of `use` for the list, which counts in memory until then. Throws
   * QUEUE_FULL when there is no room for it.
   */
  useList<T>(
    template: string,
    field: ListField,
    options: RequestOptions,
    use: (list: ListResult) => T | Promise<T>,
  ): Promise<T> {
    let bound: RequestOptions = options;
    const reading: Reading = {
      ownerId: options.callerId ?? NO_CALLER,
      formOf: () => 'exactValue',
      ask: async (request) => {
        const answer = await this.#answer(template, request, bound);
        // A cursor is valid only at its instance.
        bound = { ...options, instanceId: answer.instanceId, isContinuation: true };
        return answer;
      },
      refused: (error, request) => {
        if (error.code !== RPC.methodNotFound) throw errorOfAnswer(request, error);
        return undefined;
      },
    };
    return this.#reader.read(field, reading, async ({ items, cut }) => {
      const { instanceId = '' } = bound;
      const { tools } = options;
      // The list of a view comes from no instance, and was made for the caller.
      const isLimited = field === 'tools' && instanceId !== '' && tools !== undefined;
      const allowed = isLimited ? await allowedTools(template, tools, items, this.#scheduler) : items;
      return use({ items: allowed, ...definedFields({ cut }), instanceId });
    });
  }

  /** See errorOfAnswer; the prompts of the instance are listed if the answer alone is not enough. Never rejects. */
  async errorOf(
    template: string,
    request: ExchangeRequest,
    { error, instanceId }: ErrorAnswer,
    signal?: AbortSignal,
  ): Promise<GatewayError> {
    const isListed =
      needsList(request, error) && (await this.#lists(template, request, { instanceId, signal }));
    return atInstance(errorOfAnswer(request, error, isListed), instanceId);
  }

  #answer(
    template: string,
    request: ExchangeRequest,
    { signal, callerId, tools, requestId, report, ...options }: RequestOptions,
  ): Promise<SourcedAnswer> {
    const asked = { ...request, ...definedFields({ callerId, tools, requestId, report }) };
    return answerIn(this.#exchange(template, asked, options), signal);
  }

  /** True also when the list cannot be read: the backend itself blamed the arguments. */
  async #lists(template: string, request: ExchangeRequest, options: RequestOptions): Promise<boolean> {
    try {
      const { items } = await this.list(template, 'prompts', options);
      return items.some(({ name }) => name === promptOf(request));
    } catch {
      return true;
    }
  }
}

/** Resolves with the last event. Aborting cancels the exchange and rejects with the reason of the signal. */
async function answerIn(events$: Observable<SourcedEvent>, signal?: AbortSignal): Promise<SourcedAnswer> {
  signal?.throwIfAborted();
  const final$ = events$.pipe(filter(isSourcedAnswer));
  const bounded$ = signal === undefined ? final$ : final$.pipe(takeUntil(fromEvent(signal, 'abort')));
  const answer = await lastValueFrom(bounded$, { defaultValue: undefined });
  signal?.throwIfAborted();
  if (answer === undefined) throw backendUnavailable('it ended without an answer', { delivered: 'unknown' });
  return answer;
}

/** No bound: an embedding program asked for the value. */
const ANY_SIZE = { bytes: Number.POSITIVE_INFINITY, values: Number.POSITIVE_INFINITY };
