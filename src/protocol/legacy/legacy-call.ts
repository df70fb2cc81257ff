// One request of a legacy client that is under way: reads the events of its exchange, and writes them to the POST that carried
// the request. It ends once: answered, failed or cancelled. A lost connection does not end it. Below it, the requests of the
// server that wait for an answer of the client. Source: MCP 2025-11-25 basic/utilities/cancellation.

import type { Observable, Subscription } from 'rxjs';
import type { ClientReply, ServerRequest } from '../../domain/client.ts';
import { type Clock, SLOW_MS } from '../../domain/clock.ts';
import { internalError } from '../../domain/errors.ts';
import type { Answer, CallReport, ExchangeEvent, FinalEvent } from '../../domain/exchange.ts';
import { type JsonRpcId, numberMeant, RPC } from '../../domain/jsonrpc.ts';
import { aggregateInstance } from '../aggregate/aggregate-names.ts';
import { noteError } from '../endpoint-types.ts';
import { errorMessage, faultOf, notificationMessage, resultMessage, rpcFailureOf } from '../rpc.ts';
import type { LegacyPost } from './legacy-post.ts';

export interface LegacyCallDeps {
  /** The session is one with all templates. */
  readonly isAggregate: boolean;
  ask(request: ServerRequest, call: LegacyCall): void;
  /** The call is over; its answer is not written yet. */
  ended(call: LegacyCall): void;
  onFault(error: unknown): void;
}

/** Observes one exchange, and answers once or not at all. */
export class LegacyCall {
  readonly id: JsonRpcId;
  readonly post: LegacyPost;
  readonly #deps: LegacyCallDeps;
  readonly #report: CallReport;
  #cancelSlow: (() => void) | undefined;
  #subscription: Subscription | undefined;
  #isOver = false;

  constructor(id: JsonRpcId, post: LegacyPost, deps: LegacyCallDeps, report: CallReport) {
    this.id = id;
    this.post = post;
    this.#deps = deps;
    this.#report = report;
  }

  start(answers$: Observable<Answer>, alarm: Clock['alarm']): void {
    this.#cancelSlow = alarm(SLOW_MS, () => this.#onSlow());
    this.#subscription = answers$.subscribe(this);
    if (this.#isOver) this.#subscription.unsubscribe();
  }

  /** Begins the stream, which keeps the connection alive and can be resumed. */
  #onSlow(): void {
    if (this.#isOver) return;
    const { sentTo } = this.#report;
    // Not the binding of the session, which may be moving.
    if (sentTo !== undefined) {
      this.post.log.instanceId ??= this.#deps.isAggregate ? aggregateInstance(sentTo) : sentTo.id;
    }
    this.post.open();
  }

  /** Ends it without an answer, on the backend, too. */
  cancel(): void {
    if (!this.#end()) return;
    this.#report.ended({ kind: 'cancelled' });
    this.#subscription?.unsubscribe();
    this.post.skip();
  }

  /** Ends it with an error that is not the backend's. */
  error(thrown: unknown): void {
    if (!this.#end()) return;
    this.#subscription?.unsubscribe();
    const failure = rpcFailureOf(thrown);
    const { status, error } = failure;
    this.#report.ended({ kind: 'failed', code: failure.errorCode ?? error.code });
    const fault = faultOf(failure);
    if (fault !== undefined) this.#deps.onFault(fault);
    // Only a session that is over leads to a status: clients initialize again because of it. Any other error is the answer
    // to a request that was accepted. Source: 2025-11-25 basic/transports#session-management.
    const isSessionOver = status === 404 && error.code === RPC.sessionNotFound;
    noteError(this.post.log, error.code, failure.errorCode);
    this.post.answer(errorMessage(this.id, error), this.id, isSessionOver ? 404 : 200);
  }

  next({ event, instanceId, isRemembered }: Answer): void {
    if (this.#isOver) return;
    if (!isRemembered) this.post.log.instanceId ??= instanceId;
    try {
      this.#handle(event);
    } catch (thrown) {
      this.error(thrown); // a message that is nested too deeply to be serialized
    }
  }

  complete(): void {
    if (!this.#isOver) this.error(internalError(new Error('the exchange ended without an answer')));
  }

  #handle(event: ExchangeEvent): void {
    switch (event.kind) {
      case 'result':
        this.#answer(resultMessage(this.id, event.result), event);
        return;
      case 'error':
        this.#answer(errorMessage(this.id, event.error), event);
        return;
      case 'notification':
        // The server cancels its own request, whose id is another one here; the request ends with the call at the latest.
        if (event.method === 'notifications/cancelled') return;
        // Only the gateway asked for this progress, to restart its deadline. Source: basic/utilities/progress.
        if (event.method === 'notifications/progress' && event.params.progressToken === undefined) return;
        this.post.open()?.notify(notificationMessage(event.method, event.params));
        return;
      case 'request':
        this.#deps.ask(event, this);
        return;
      case 'interrupted':
        this.post.interrupted(event.retryMs);
        return;
    }
  }

  #answer(message: Uint8Array | string, event: FinalEvent): void {
    if (!this.#end()) return;
    this.#report.ended(event);
    if (event.kind === 'error') noteError(this.post.log, event.error.code);
    this.post.answer(message, this.id);
  }

  #end(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#cancelSlow?.();
    this.#deps.ended(this);
    return true;
  }
}

/** Pending questions of one session; more are refused. */
const MOST_QUESTIONS = 256;
/** Longest wait for the answer of a client: a person may have to read first. */
const LONGEST_MS = 10 * 60_000;

interface PendingQuestion extends Pick<ServerRequest, 'answer'> {
  /** The call that it belongs to; undefined when it came outside of any call. */
  readonly call: LegacyCall | undefined;
  readonly askedAtMs: number;
}

/** The questions of one session: requests of its server that wait for an answer of the client. */
export class LegacyQuestions {
  readonly #waiting = new Map<JsonRpcId, PendingQuestion>();

  get size(): number {
    return this.#waiting.size;
  }

  has(id: JsonRpcId): boolean {
    return this.#waiting.has(id);
  }

  /** Stores a question. False when too many wait: then the server got an error. */
  add(
    id: number,
    { answer, method }: ServerRequest,
    call: LegacyCall | undefined,
    askedAtMs: number,
  ): boolean {
    if (this.#waiting.size >= MOST_QUESTIONS) {
      answer(failed(`Too many requests wait for the client; ${method} was not passed on.`));
      return false;
    }
    this.#waiting.set(id, { answer, call, askedAtMs });
    return true;
  }

  /** Passes an answer of the client on. An answer to an unknown or withdrawn question is dropped. */
  answer(id: JsonRpcId, ...reply: Parameters<ServerRequest['answer']>): void {
    const asked = numberMeant(id);
    const question = asked === undefined ? undefined : this.#waiting.get(asked);
    if (asked === undefined || question === undefined) return;
    this.#waiting.delete(asked);
    question.answer(...reply);
  }

  /** Removes the questions of a call that is over, and returns their ids. */
  withdraw(call: LegacyCall): number[] {
    return this.#remove((question) => question.call === call).map(([id]) => Number(id));
  }

  /** Answers the questions that waited too long with an error. Cancels them all before, since the first answer may end the call. */
  expire(nowMs: number, cancel: (id: number, call: LegacyCall | undefined) => void): void {
    const late = this.#remove(({ askedAtMs }) => nowMs - askedAtMs >= LONGEST_MS);
    for (const [id, { call }] of late) cancel(Number(id), call);
    for (const [, { answer }] of late) answer(failed('The client did not answer in time.'));
  }

  /** The session is over: answers the questions outside of any call with an error. The others end with their call. */
  close(): void {
    for (const [, { answer }] of this.#remove(({ call }) => call === undefined)) {
      answer(failed('The session of the client has ended.'));
    }
  }

  #remove(isMatch: (question: PendingQuestion) => boolean): [JsonRpcId, PendingQuestion][] {
    const removed = [...this.#waiting].filter(([, question]) => isMatch(question));
    for (const [id] of removed) this.#waiting.delete(id);
    return removed;
  }
}

/** The reply to a server whose request did not reach the client. */
export function failed(message: string): ClientReply {
  return { error: { code: RPC.internalError, message } };
}
