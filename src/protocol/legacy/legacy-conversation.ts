// What a legacy session has to remember between two requests of its client: calls under way, streams that may be resumed,
// questions of the server, messages that found no stream. It is there only while there is something of the kind; the
// session itself is an actor's. Source: MCP 2025-11-25 basic/transports.

import type { Observable, Subscription } from 'rxjs';
import { queueFull } from '../../domain/backend-errors.ts';
import { type ClientReply, mayBeAsked, type ServerMessage, type ServerRequest } from '../../domain/client.ts';
import type { Answer, Canceller } from '../../domain/exchange.ts';
import type { JsonValue } from '../../domain/json.ts';
import { type JsonRpcId, RPC } from '../../domain/jsonrpc.ts';
import { LIMITS } from '../../domain/limits.ts';
import { SlowWatch } from '../../domain/slow-watch.ts';
import type { TaskScheduler } from '../../domain/task-scheduler.ts';
import type { FaultListener, McpReply } from '../endpoint-types.ts';
import { notificationMessage, requestMessage } from '../envelope.ts';
import type { McpSession } from '../ports.ts';
import { failureOf, invalidRequest, refused } from '../rpc-failure.ts';
import { LegacyCall, type LegacyCallDeps } from './legacy-call.ts';
import { EventBudget } from './legacy-event-log.ts';
import { isListenersKey, LegacyListener } from './legacy-listener.ts';
import { LegacyPost } from './legacy-post.ts';
import { LegacyQuestions } from './legacy-questions.ts';
import { canPoll, versionOf } from './legacy-request.ts';
import { LegacyStreams, positionOf } from './legacy-stream.ts';

/** Calls of one session that are under way. Over it: QUEUE_FULL. */
const MOST_CALLS = 1_000;
/** Of the reason for a cancel that its server is told, in UTF-16 units. */
const MOST_REASON_UNITS = 1_024;
/** How long what the server says by itself is heard after the last call, for a client that opened no stream for it. */
const HEARD_MS = 60_000;

/** What the conversations of one endpoint have together. */
export interface ConversationDeps {
  /** What all conversations may hold for clients that lost their streams. */
  readonly budget: EventBudget;
  /** Watches the calls under way. */
  readonly slow: SlowWatch;
  /** Never gives the same number twice. */
  nextNumber(): number;
  /** Hears of a fault of ours that no answer tells. */
  onFault(error: unknown): void;
  /** Nothing is left to remember. */
  emptied(sessionId: string, conversation: LegacyConversation): void;
}

/** Of one session. It reports when there is nothing left of it. */
export class LegacyConversation implements LegacyCallDeps, Canceller {
  readonly #session: McpSession;
  readonly #deps: ConversationDeps;
  readonly #calls = new Map<JsonRpcId, LegacyCall>();
  // Most calls are one question and one answer: what only the others need is made when they come.
  #streams: LegacyStreams | undefined;
  #listener: LegacyListener | undefined;
  #questions: LegacyQuestions<LegacyCall> | undefined;
  #budget: EventBudget | undefined;
  #messages: Subscription | undefined;
  #quietSinceMs: number | undefined;
  /** Since when calls are under way without a stream or a message of their client, and whether the session knows. */
  #awaySinceMs: number | undefined;
  #isAway = false;
  #cancelReason: string | undefined;

  constructor(session: McpSession, deps: ConversationDeps) {
    this.#session = session;
    this.#deps = deps;
  }

  /** Refuses a request whose id is that of another one under way (400), or one too many (QUEUE_FULL). */
  check(id: JsonRpcId): void {
    if (this.#calls.has(id)) throw invalidRequest('the id is that of a request which is under way');
    if (this.#calls.size >= MOST_CALLS) throw failureOf(queueFull('this session'), id);
  }

  /** A message of the client has come. */
  met(): void {
    this.#awaySinceMs = undefined;
    if (this.#isAway) this.#session.setAway(false);
    this.#isAway = false;
  }

  /** The answer to one POST with so many requests, in that revision. */
  post(reply: McpReply, requests: number, version: string): LegacyPost {
    return new LegacyPost(reply, this.#openStream, requests, canPoll(version));
  }

  /** Begins a request that was checked. */
  begin(id: JsonRpcId, post: LegacyPost, answers$: Observable<Answer>): void {
    const call = new LegacyCall(id, post, this);
    this.#calls.set(id, call);
    this.met();
    this.#quietSinceMs = undefined;
    if (!this.#session.isShared && mayBeAsked(this.#session.profile)) this.#listen();
    call.start(answers$);
    if (!call.isOver) this.#deps.slow.add(call);
  }

  /**
   * The client wants no answer any more, and may say why. One that is unknown, or answered, is ignored: the two may have
   * crossed.
   */
  cancel(id: JsonRpcId, reason?: JsonValue): void {
    this.#cancelReason = typeof reason === 'string' ? reason.slice(0, MOST_REASON_UNITS) : undefined;
    this.#calls.get(id)?.cancel();
    this.#cancelReason = undefined;
  }

  /** As a CallHost. */
  get instanceId(): string | undefined {
    return this.#session.instanceId;
  }

  /** As a Canceller. */
  get cancelReason(): string | undefined {
    return this.#cancelReason;
  }

  /** What the client answered to a question. */
  reply(id: JsonRpcId, reply: ClientReply): void {
    this.#questions?.answer(id, reply);
  }

  /**
   * A GET: a stream for what the server says by itself, or the rest of the stream that this event was on. Throws
   * RpcFailure: 409 for a second stream, 400 when nothing is known of the event.
   */
  open(reply: McpReply, lastEventId: string | undefined): void {
    this.met();
    this.#quietSinceMs = undefined;
    const position = lastEventId === undefined ? undefined : positionOf(lastEventId);
    if (position === undefined && lastEventId !== undefined) throw refused(400, 'Invalid event ID format');
    if (position !== undefined && !isListenersKey(position.key)) {
      if (!this.#streams?.resume(reply, position))
        throw refused(400, 'The stream of this event is not kept any more');
    } else {
      this.#listenerOf().open(reply, position);
      this.#listen();
    }
    this.settled();
  }

  /**
   * Listens to what the server says by itself, which is kept until its stream is open. Resolves when nothing can be missed
   * any more; undefined when that is so already.
   */
  listen(): Promise<void> | undefined {
    this.#quietSinceMs = undefined;
    this.#listen();
    return this.#session.opening;
  }

  /** As a CallHost. Its own stream first, then the one for whatever comes, then that of another call; else it waits. */
  ask(request: ServerRequest, call?: LegacyCall): void {
    const id = this.#questionsOf().add(request, call);
    if (id === undefined) return;
    const message = this.#textOf(request, id);
    if (message === undefined) return;
    if (call?.post.ask(message) || this.#listener?.ask(message) || this.#askElsewhere(message, call)) return;
    if (this.#listenerOf().store({ message, question: id })) return;
    this.reply(id, { error: { code: RPC.internalError, message: 'The client listens to nothing.' } });
  }

  /** As a CallHost. What the server asked in the middle of it is not to be answered any more. */
  ended(call: LegacyCall): void {
    this.#calls.delete(call.id);
    this.#deps.slow.delete(call);
    if (this.#questions === undefined || this.#questions.size === 0) return;
    for (const id of this.#questions.withdraw(call)) this.#takeBack(id, call);
  }

  /** As a CallHost. */
  onFault(error: unknown): void {
    this.#deps.onFault(error);
  }

  /** As a CallHost. */
  settled(): void {
    this.#streams?.checkTaken();
    if (!this.#isEmpty) return;
    this.met();
    this.#deps.emptied(this.#session.id, this);
  }

  /** Lets go of what waited too long. To be called now and then. */
  sweep(nowMs: number): void {
    this.#lookForClient(nowMs);
    this.#questions?.expire(nowMs, (id, call) => this.#takeBack(id, call));
    this.#streams?.expire(nowMs);
    this.#listener?.expire(nowMs);
    if (this.#calls.size > 0 || this.#listener?.isOpen || this.#questions?.size)
      this.#quietSinceMs = undefined;
    else this.#quietSinceMs ??= nowMs;
    if (this.#quietSinceMs !== undefined && nowMs - this.#quietSinceMs >= HEARD_MS) this.#stopListening();
    this.settled();
  }

  #lookForClient(nowMs: number): void {
    const isThere = this.#listener?.isLive || [...this.#calls.values()].some(({ post }) => post.isLive);
    if (isThere || this.#calls.size === 0) {
      this.met();
      return;
    }
    this.#awaySinceMs ??= nowMs;
    if (this.#isAway || nowMs - this.#awaySinceMs < LIMITS.clientAwayMs) return;
    this.#isAway = true;
    this.#session.setAway(true);
  }

  /** Ends everything: calls that are left are answered with the error, streams end. */
  close(error: Error): void {
    for (const call of [...this.#calls.values()]) call.fail(error);
    this.#questions?.close();
    this.#streams?.close();
    this.#stopListening();
    this.settled();
  }

  readonly #openStream = () => {
    this.#streams ??= new LegacyStreams(this.#streamDeps());
    return this.#streams.open();
  };

  get #isEmpty(): boolean {
    if (this.#calls.size > 0 || this.#messages !== undefined || this.#listener?.isOpen) return false;
    return !this.#streams?.size && !this.#questions?.size && !this.#listener?.hasWaiting;
  }

  #listenerOf(): LegacyListener {
    this.#listener ??= new LegacyListener({
      ...this.#streamDeps(),
      canPoll: canPoll(versionOf(this.#session)),
      hold: () => this.#session.hold(),
      isPending: (question) => this.#questions?.has(question) ?? false,
    });
    return this.#listener;
  }

  #questionsOf(): LegacyQuestions<LegacyCall> {
    this.#questions ??= new LegacyQuestions(() => this.#deps.nextNumber());
    return this.#questions;
  }

  #streamDeps() {
    this.#budget ??= EventBudget.ofSession(this.#deps.budget);
    const nextKey = () => this.#deps.nextNumber().toString(36);
    return { budget: this.#budget, nextKey, onTaken: () => this.settled() };
  }

  /** The newest call first: it is the one whose client is there most likely. */
  #askElsewhere(message: string, asker: LegacyCall | undefined): boolean {
    return [...this.#calls.values()].reverse().some((call) => call !== asker && call.post.ask(message));
  }

  /** Only who was asked hears of it. Source: basic/utilities/cancellation. */
  #takeBack(requestId: number, call: LegacyCall | undefined): void {
    const message = notificationMessage('notifications/cancelled', { requestId });
    if (call !== undefined) call.post.add(message);
    else if (this.#listener?.isOpen) this.#listener.notify(message);
  }

  #listen(): void {
    if (this.#messages !== undefined) return;
    const messages = this.#session.messages$.subscribe({
      next: (message) => this.#hear(message),
      complete: () => this.#sessionEnded(),
    });
    if (!messages.closed) this.#messages = messages;
  }

  #stopListening(): void {
    this.#messages?.unsubscribe();
    this.#messages = undefined;
    this.#listener?.close();
  }

  #sessionEnded(): void {
    this.#questions?.close();
    this.#stopListening();
    this.settled();
  }

  #hear(message: ServerMessage): void {
    try {
      if (message.kind === 'request') this.ask(message);
      else if (message.method !== 'notifications/cancelled')
        this.#listenerOf().notify(notificationMessage(message.method, message.params));
    } catch (thrown) {
      this.onFault(thrown); // nested too deeply to be written: nobody's answer is lost with it
    }
  }

  /** Undefined for a question that cannot be written: its server has an answer then. */
  #textOf({ method, params }: ServerRequest, id: number): string | undefined {
    try {
      return requestMessage(id, method, params);
    } catch (thrown) {
      this.onFault(thrown);
      const message = 'The request is nested too deeply to be passed on.';
      this.reply(id, { error: { code: RPC.internalError, message } });
      return undefined;
    }
  }
}

// The conversations of one endpoint, by session: made when there is something to remember, forgotten when nothing is left. One
// timer for all. What a conversation remembers is its own business.

/** How often what waited too long is looked for, in ms. */
const SWEEP_MS = 10_000;

/** Whoever makes them closes them. */
export class LegacyConversations {
  readonly #bySession = new Map<string, LegacyConversation>();
  readonly #deps: ConversationDeps;
  readonly #scheduler: TaskScheduler;
  #lastNumber = 0;
  #sweeper: NodeJS.Timeout | undefined;

  constructor(onFault: FaultListener, scheduler: TaskScheduler, bufferedBytes?: number) {
    this.#scheduler = scheduler;
    this.#deps = {
      budget: EventBudget.ofAll(bufferedBytes),
      slow: new SlowWatch(scheduler),
      nextNumber: () => {
        this.#lastNumber += 1;
        return this.#lastNumber;
      },
      onFault,
      emptied: (sessionId, conversation) => {
        // One that was dropped may say so again after the next one began.
        if (this.#bySession.get(sessionId) === conversation) this.#bySession.delete(sessionId);
      },
    };
  }

  /** How many there are. */
  get size(): number {
    return this.#bySession.size;
  }

  /** That of a session, if there is one. */
  find(sessionId: string): LegacyConversation | undefined {
    return this.#bySession.get(sessionId);
  }

  /** That of a session; a new one if need be. Who does nothing with it says that it has settled, and it is forgotten. */
  of(session: McpSession): LegacyConversation {
    const known = this.#bySession.get(session.id);
    if (known !== undefined) return known;
    const conversation = new LegacyConversation(session, this.#deps);
    this.#bySession.set(session.id, conversation);
    this.#sweeper ??= setInterval(() => this.#sweep(), SWEEP_MS).unref();
    return conversation;
  }

  /** Ends them all: calls that are left are answered with the error, streams end. */
  close(error: Error): Promise<void> {
    clearInterval(this.#sweeper);
    this.#deps.slow.close();
    return this.#scheduler.each([...this.#bySession.values()], (conversation) => conversation.close(error));
  }

  #sweep(): void {
    const nowMs = Date.now();
    for (const conversation of [...this.#bySession.values()]) conversation.sweep(nowMs);
  }
}
