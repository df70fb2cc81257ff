// One request of a legacy client that is under way: writes the messages of its exchange to the POST that carried
// the request. A lost connection does not end it. Below it, the requests of the server that wait for an answer of
// the client. Source: MCP 2025-11-25 basic/utilities/cancellation.

import type { Answer, CallReport } from '../../domain/calls/exchange.ts';
import type { ExchangeEvent, FinalEvent } from '../../domain/calls/exchange-event.ts';
import type { ClientReply, ServerRequest } from '../../domain/mcp/client.ts';
import { type JsonRpcId, numberMeant, RPC } from '../../domain/mcp/jsonrpc.ts';
import { AnswerWriter } from '../answer-writer.ts';
import { noteError } from '../endpoint-types.ts';
import { errorMessage, notificationMessage, type RpcFailure, resultMessage, rpcFailureOf } from '../rpc.ts';
import type { PostAnswer } from './post-answer.ts';

export interface LegacyCallDeps {
  /** The session is one with several templates. */
  readonly isAggregate: boolean;
  ask(request: ServerRequest, call: LegacyCall): void;
  /** The call is over; its answer is not written yet. */
  ended(call: LegacyCall): void;
  onFault(error: unknown): void;
}

export class LegacyCall extends AnswerWriter<Answer> {
  readonly id: JsonRpcId;
  readonly post: PostAnswer;
  readonly #deps: LegacyCallDeps;

  constructor(id: JsonRpcId, post: PostAnswer, deps: LegacyCallDeps, report: CallReport) {
    super(report);
    this.id = id;
    this.post = post;
    this.#deps = deps;
  }

  override cancel(): boolean {
    const isCancelled = super.cancel();
    if (isCancelled) this.post.skip();
    return isCancelled;
  }

  // --- for the writer --------------------------------------------------------------------------------------

  get isAggregate(): boolean {
    return this.#deps.isAggregate;
  }

  /** The stream can be resumed. */
  begin(): void {
    this.post.open();
  }

  take(answer: Answer): void {
    this.noteInstanceOf(answer);
    this.#handle(answer.event);
  }

  failureOf(thrown: unknown): RpcFailure {
    return rpcFailureOf(thrown);
  }

  refuse({ status, error, errorCode }: RpcFailure): void {
    if (!this.end()) return;
    this.leave();
    // Only a session that is over leads to a status: clients initialize again because of it. Any other error is the answer
    // to a request that was accepted. Source: 2025-11-25 basic/transports#session-management.
    const isSessionOver = status === 404 && error.code === RPC.sessionNotFound;
    noteError(this.post.log, error.code, errorCode);
    this.post.answer(errorMessage(this.id, error), this.id, isSessionOver ? 404 : 200);
  }

  /** Notes the instance for the access log; of several requests of one POST the first one counts. */
  noteInstance(instanceId: string): void {
    this.post.log.instanceId ??= instanceId;
  }

  onFault(error: unknown): void {
    this.#deps.onFault(error);
  }

  override onOver(): void {
    this.#deps.ended(this);
  }

  // ---------------------------------------------------------------------------------------------------------

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
    if (!this.end()) return;
    this.report.ended(event);
    if (event.kind === 'error') noteError(this.post.log, event.error.code);
    this.post.answer(message, this.id);
  }
}

/** Pending questions of one session; more are refused. */
const MAX_QUESTIONS = 256;

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
    if (this.#waiting.size >= MAX_QUESTIONS) {
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

  /**
   * Answers the questions that were asked up to this time with an error. Cancels them all before, since the first
   * answer may end the call.
   */
  expire(askedUntilMs: number, cancel: (id: number, call: LegacyCall | undefined) => void): void {
    const late = this.#remove(({ askedAtMs }) => askedAtMs <= askedUntilMs);
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
