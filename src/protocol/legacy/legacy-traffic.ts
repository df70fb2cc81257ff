// The state between one legacy session and its client that outlasts single requests: calls under way, streams that may
// be resumed, questions of the server, and messages that wait for a stream. It is kept only while there is such state;
// ClientSessions of src/actors owns the session itself. Source: MCP 2025-11-25 basic/transports.

import type { Observable, Subscription } from 'rxjs';
import type { CallReport, SourcedEvent } from '../../domain/calls/exchange.ts';
import { backendUnavailable } from '../../domain/errors/backend-errors.ts';
import { tooMany } from '../../domain/errors/request-errors.ts';
import type { JsonValue } from '../../domain/json/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import {
  acceptsServerRequests,
  questionFailed,
  type ServerMessage,
  type ServerRequest,
} from '../../domain/mcp/client.ts';
import { type JsonRpcId, numberMeant, requestText } from '../../domain/mcp/jsonrpc.ts';
import { CANCELLED } from '../../domain/mcp/mcp.ts';
import { CallMap } from '../../domain/memory/call-map.ts';
import type { McpSession } from '../../domain/sessions/mcp-session.ts';
import { FIRST_GENERATION } from '../../domain/sessions/session-value.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { SharedTimer } from '../../domain/time/shared-timer.ts';
import type { FaultListener, ReplyWriter } from '../endpoint-types.ts';
import { invalidRequest, notificationMessage, type RpcFailure, refused, rpcFailureOf } from '../rpc.ts';
import { GetStream, type GetStreamOptions, isGetStreamKey } from './get-stream.ts';
import { LegacyCall, type LegacyCallHost } from './legacy-call.ts';
import { LegacyQuestions } from './legacy-questions.ts';
import { type EventBudget, LegacyStream, positionOf, type SessionStreamOptions } from './legacy-stream.ts';
import { PostAnswer } from './post-answer.ts';

/** The most calls of one session that are under way; further ones get QUEUE_FULL. */
const MAX_CALLS = 1_000;
/** The longest reason of a cancellation that is passed on, in UTF-16 units. */
const MAX_REASON_UNITS = 1_024;
/**
 * The time in which messages outside of calls are received after the last call, in ms, for a client that opened no stream for
 * them.
 */
const IDLE_MS = 60_000;

export interface LegacyTrafficDeps extends Pick<GetStreamOptions, 'listened'> {
  readonly clock: Clock;
  readonly slowAnswerTimer: SharedTimer;
  readonly budget: EventBudget;
  /** A number that was not returned before. */
  nextNumber(): number;
  readonly onFault: FaultListener;
}

/** The calls, streams and questions between one session and its client. */
export class LegacyTraffic implements LegacyCallHost {
  readonly session: McpSession;
  readonly #deps: LegacyTrafficDeps;
  readonly #calls = new CallMap<LegacyCall>();
  // Most calls are one request and one answer: these fields are set at their first use.
  /** The event streams that answer POSTs, by key: the open ones, and the ended ones that the client may still resume. */
  #streams: Map<string, LegacyStream> | undefined;
  #getStream: GetStream | undefined;
  #questions: LegacyQuestions | undefined;
  #messages: Subscription | undefined;
  #idleSinceMs: number | undefined;
  /**
   * The time since which calls have been under way without a stream or a message of the client, and whether the session has a
   * report of it.
   */
  #away: { readonly sinceMs: number; isReported: boolean } | undefined;
  /** See `canceller` of ExchangeRequest: set while a request is being cancelled. */
  cancelReason: string | undefined;

  constructor(session: McpSession, deps: LegacyTrafficDeps) {
    this.session = session;
    this.#deps = deps;
  }

  /** Throws RpcFailure for a request whose id another request under way has (400), and for a request too many (QUEUE_FULL). */
  check(id: JsonRpcId): void {
    if (this.#calls.has(id)) throw invalidRequest('the id belongs to a request that is still running');
    if (this.#calls.size >= MAX_CALLS)
      throw rpcFailureOf(tooMany('calls of this session', { most: MAX_CALLS, isShare: false }, 1), id);
  }

  clientSeen(): void {
    if (this.#away?.isReported) this.session.setAway(false);
    this.#away = undefined;
  }

  /** Makes the answer to one POST with these requests. `canPoll`: see legacy-request.ts. */
  answerFor(
    reply: ReplyWriter,
    requests: readonly { readonly id: JsonRpcId }[],
    canPoll: boolean,
  ): PostAnswer {
    return new PostAnswer(reply, this.#openStream, requests, canPoll);
  }

  begin(id: JsonRpcId, post: PostAnswer, events$: Observable<SourcedEvent>, report: CallReport): void {
    const call = new LegacyCall(id, post, this, report);
    this.#calls.set(id, call);
    this.#idleSinceMs = undefined;
    if (!this.session.isShared && acceptsServerRequests(this.session.value.profile)) this.#receiveMessages();
    call.start(events$, this.#deps.slowAnswerTimer);
  }

  /**
   * Cancels a request of the client, which may give a reason. Ignores a request that is answered already: the messages
   * crossed.
   */
  cancel(id: JsonRpcId, reason?: JsonValue): void {
    this.cancelReason = typeof reason === 'string' ? reason.slice(0, MAX_REASON_UNITS) : undefined;
    const number = numberMeant(id);
    const call = this.#calls.get(id) ?? (number === undefined ? undefined : this.#calls.get(number));
    call?.cancel();
    this.cancelReason = undefined;
  }

  get onFault(): FaultListener {
    return this.#deps.onFault;
  }

  get template(): string | undefined {
    const { value } = this.session;
    return value.kind === 'template' ? value.template : undefined;
  }

  takeAnswer(id: JsonRpcId, ...answer: Parameters<ServerRequest['answer']>): void {
    this.#questions?.answer(id, ...answer);
  }

  /**
   * Opens the stream for messages outside of calls, or resumes the one of `lastEventId`. Throws RpcFailure: 409 for a
   * second stream, 400 for an invalid event id, and for one of a call whose stream is no longer stored.
   */
  open(reply: ReplyWriter, lastEventId: string | undefined): void {
    this.clientSeen();
    this.#idleSinceMs = undefined;
    const position = lastEventId === undefined ? undefined : positionOf(lastEventId);
    if (position === undefined && lastEventId !== undefined) throw refused(400, 'Invalid event ID format');
    const isOfOtherLife = position !== undefined && position.generation !== this.#generation;
    if (position !== undefined && !isGetStreamKey(position.key)) {
      const stream = isOfOtherLife ? undefined : this.#streams?.get(position.key);
      if (stream !== undefined) stream.resume(reply, position.number);
      else if (isOfOtherLife && position.request !== undefined)
        reply.event(lostWithGateway(position.request));
      else throw refused(400, 'The stream of this event is no longer stored');
    } else {
      this.#getStreamOf().open(reply, position);
      this.#receiveMessages();
    }
  }

  /**
   * Begins to receive messages outside of calls. Resolves when the backend's stream is open; undefined when there is
   * nothing to wait for.
   */
  listen(): Promise<void> | undefined {
    this.#idleSinceMs = undefined;
    this.#receiveMessages();
    return this.session.untilListening;
  }

  /**
   * Sends a request of the server on the stream of its call, otherwise on that of the GET, otherwise on those of
   * other calls; without a stream it waits. May throw RangeError.
   */
  ask(request: ServerRequest, call?: LegacyCall): void {
    this.#questions ??= new LegacyQuestions();
    const id = this.#questions.newId();
    const message = requestText(id, request.method, request.params);
    if (!this.#questions.add(id, request, call, this.#deps.clock.now())) return;
    if (call?.post.ask(message) || this.#getStream?.ask(message)) return;
    // Streams with a connection first, of these the newest; then streams that their client has to resume.
    const others = this.#calls.values().filter((other) => other !== call);
    others.sort((a, b) => Number(a.post.isLive) - Number(b.post.isLive));
    if (others.findLast(({ post }) => post.ask(message))) return;
    if (this.#getStreamOf().store(message, id)) return;
    this.takeAnswer(id, questionFailed('The client has no open stream.'));
  }

  ended(call: LegacyCall): void {
    this.#calls.delete(call.id);
    if (this.#questions === undefined || this.#questions.size === 0) return;
    for (const id of this.#questions.withdraw(call)) this.#cancelQuestion(id, call);
  }

  /**
   * Expires questions, streams and the subscription to messages. Must be called periodically. Returns true when no
   * state is left.
   */
  sweep(nowMs: number): boolean {
    this.#checkClient(nowMs);
    this.#questions?.expire(nowMs - this.session.questionMs, (id, call) => this.#cancelQuestion(id, call));
    for (const stream of this.#streams?.values() ?? [])
      if (stream.isFinished && stream.isAbandoned(nowMs)) stream.discard();
    this.#getStream?.sweep(nowMs);
    if (this.#calls.size > 0 || this.#getStream?.isOpen || this.#questions?.size) {
      this.#idleSinceMs = undefined;
      return false;
    }
    this.#idleSinceMs ??= nowMs;
    if (nowMs - this.#idleSinceMs >= IDLE_MS) this.#stopReceiving();
    return !(this.#messages || this.#streams?.size || this.#getStream?.hasWaiting);
  }

  /**
   * Answers the open questions with an error, unless a stream of the client is connected. For a stop, when clients that
   * are not connected could answer no more.
   */
  dismiss(): void {
    if (!this.#isConnected)
      this.#questions?.expire(Number.POSITIVE_INFINITY, (id, call) => this.#cancelQuestion(id, call));
  }

  get #isConnected(): boolean {
    return this.#getStream?.isLive === true || [...this.#calls.values()].some(({ post }) => post.isLive);
  }

  #checkClient(nowMs: number): void {
    if (this.#isConnected || this.#calls.size === 0) {
      this.clientSeen();
      return;
    }
    this.#away ??= { sinceMs: nowMs, isReported: false };
    if (this.#away.isReported || nowMs - this.#away.sinceMs < LIMITS.callsYieldAfterMs) return;
    this.#away.isReported = true;
    this.session.setAway(true);
  }

  /** Ends all state: calls under way are answered with the error, and streams end. */
  close(error: Error): void {
    for (const call of [...this.#calls.values()]) call.error(error);
    for (const stream of this.#streams?.values() ?? []) stream.discard();
    this.#sessionEnded();
  }

  #nextKey(): string {
    return this.#deps.nextNumber().toString(36);
  }

  readonly #openStream = (request: JsonRpcId | undefined) => {
    const key = this.#nextKey();
    const onDiscarded = () => this.#streams?.delete(key);
    const stream = new LegacyStream({ ...this.#streamOptions, key, request, onDiscarded });
    this.#streams ??= new Map();
    this.#streams.set(key, stream);
    return stream;
  };

  #getStreamOf(): GetStream {
    const isPending = (question: number) => this.#questions?.has(question) ?? false;
    const { listened } = this.#deps;
    const options = { ...this.#streamOptions, listened, nextKey: () => this.#nextKey(), isPending };
    this.#getStream ??= new GetStream(this.session, options);
    return this.#getStream;
  }

  get #streamOptions(): SessionStreamOptions {
    const { budget, clock } = this.#deps;
    const { id: sessionId, value } = this.session;
    return { budget, clock, sessionId, ownerId: value.ownerId, generation: this.#generation };
  }

  get #generation(): number {
    return this.session.generation ?? FIRST_GENERATION;
  }

  /** Sends the cancellation of a question on the stream of the question. Source: basic/utilities/cancellation. */
  #cancelQuestion(requestId: number, call: LegacyCall | undefined): void {
    const message = notificationMessage(CANCELLED, { requestId });
    if (call !== undefined) call.post.notifyIfBegun(message);
    else if (this.#getStream?.isOpen) this.#getStream.notify(message);
  }

  #receiveMessages(): void {
    if (this.#messages !== undefined) return;
    const messages = this.session.messages$.subscribe({
      next: (message) => this.#receive(message),
      error: (thrown: unknown) => {
        this.onFault(thrown);
        this.#sessionEnded();
      },
      complete: () => this.#sessionEnded(),
    });
    if (!messages.closed) this.#messages = messages;
  }

  #stopReceiving(): void {
    this.#messages?.unsubscribe();
    this.#messages = undefined;
    this.#getStream?.close();
  }

  #sessionEnded(): void {
    this.#questions?.close();
    this.#stopReceiving();
  }

  #receive(message: ServerMessage): void {
    try {
      if (message.kind === 'request') this.ask(message);
      else if (message.method !== CANCELLED)
        this.#getStreamOf().notify(notificationMessage(message.method, message.params));
    } catch (thrown) {
      this.onFault(thrown); // nested too deeply to be serialized
      if (message.kind === 'request') message.answer(questionFailed('The request cannot be passed on.'));
    }
  }
}

/** The answer to a request that was under way in an earlier life of the gateway. */
export function lostWithGateway(request: JsonRpcId): RpcFailure['body'] {
  const error = backendUnavailable('the gateway was started again during the call', { delivered: 'unknown' });
  return rpcFailureOf(error, request).body;
}
