// A conversation with a backend for one client, or for clients with equal declarations. It ends with its last use, or
// after some time without one. dedicated-conversations.ts assigns uses and bounds the number of conversations; the
// events `upstream.*` report them.
//
//   serving ──► retired ──► closing ──► gone      serving: opening or open      retired: no further use begins
//
// Any stage may be left out: a conversation that could not be opened is gone at once.

import { type Observable, type Observer, tap } from 'rxjs';
import type { ExchangeRequest } from '../../domain/calls/exchange.ts';
import type { ExchangeEvent } from '../../domain/calls/exchange-event.ts';
import { backendUnavailable } from '../../domain/errors/backend-errors.ts';
import type { JsonObject } from '../../domain/json/json.ts';
import { type ClientProfile, QUESTION_REFUSALS } from '../../domain/mcp/client.ts';
import { includesLevel, LEGACY_VERSIONS, SET_LEVEL } from '../../domain/mcp/mcp.ts';
import type { McpSession } from '../../domain/sessions/mcp-session.ts';
import type { Timing } from '../../domain/time/task-scheduler.ts';
import { closeQuietly } from '../../transports/close-quietly.ts';
import { answerOf } from '../../transports/gateway-requests.ts';
import type { CallConversation, Closed, Conversation } from '../../transports/transport.ts';
import { Feed } from '../subscriptions/feed.ts';

/** Time after which a process that clients with equal extensions share ends, when no session and no call uses it. */
export const EXTENSION_IDLE_MS = 10 * 60_000;

/** One use, those of one owner, or those of all owners; see `sharedBy`. */
type Sharing = 'oneUse' | 'owner' | 'equalExtensions';

/** The conversation that a use needs, and the owner to whom it is counted. */
export interface ConversationRequest {
  /** The owner in whose share the conversation counts. For a shared one: the owner that needed it first. */
  readonly ownerId: string;
  /** The client profile that the backend gets. */
  readonly profile: ClientProfile;
  /** The uses that may use the conversation at the same time. Default: 'oneUse'. */
  readonly sharing?: Sharing;
  /** The session that needs the use, whose end ends the conversation. Default: a call, whose client always counts as present. */
  readonly session?: McpSession | undefined;
  /** How long the conversation stays open without a use, in ms. Default: it is for this use alone, and ends with it. */
  readonly idleMs?: number;
  /** Wraps the open conversation for its calls; called once. Default: they use the conversation itself. */
  readonly wrap?: ((conversation: Conversation) => ForCalls) | undefined;
}

/**
 * The request for a process that all clients with these extensions share, of any owner. The backend gets no
 * other declarations of them. Source: ADR 26.
 */
export function sharedBy(extensions: JsonObject) {
  return {
    profile: { protocolVersion: LEGACY_VERSIONS[0], capabilities: extensions, clientInfo: {} },
    sharing: 'equalExtensions',
    idleMs: EXTENSION_IDLE_MS,
  } satisfies Partial<ConversationRequest>;
}

type ForCalls = Pick<Conversation, 'exchange'>;

interface DedicatedConversationOptions {
  readonly request: ConversationRequest;
  /** Equal for conversations that the same uses may use; undefined when no other use may use it. */
  readonly key: string | undefined;
  /**
   * Opens the conversation; resolves with undefined when the backend keeps no dedicated conversations. `signal` ends
   * the opening.
   */
  readonly open: (signal: AbortSignal) => Promise<Conversation | undefined>;
  readonly listener: ConversationListener;
}

/** Gets the events of a conversation, each at most once. */
export interface ConversationListener {
  opened(opened: DedicatedConversation, conversation: Conversation): void;
  /** The backend or `close` has ended the conversation; its process may still be ending. */
  ended(ended: DedicatedConversation, closed: Closed): void;
  gone(gone: DedicatedConversation): void;
}

/** The longest wait for the answer to `logging/setLevel`, in ms; the call then continues without it. */
const LEVEL_MS = 5_000;

/**
 * A conversation of one or more clients with the backend of an instance. It is itself the observer of its end, to
 * save an object in each of thousands of conversations.
 */
export class DedicatedConversation implements CallConversation, Pick<Observer<Closed>, 'next'> {
  readonly ownerId: string;
  readonly key: string | undefined;
  readonly sharing: Sharing;
  readonly session: McpSession | undefined;
  /** Settles like `open`, but rejects with BACKEND_UNAVAILABLE when the conversation was closed meanwhile. */
  readonly opening: Promise<Conversation | undefined>;
  /** Resolves when the conversation and its process have ended. Never rejects. */
  readonly gone: Promise<void>;
  readonly #deps: Timing;
  readonly #listener: ConversationListener;
  readonly #idleMs: number;
  readonly #ending = new AbortController();
  readonly #resolveGone: () => void;
  /** The open conversation; undefined until it is open. */
  inner: Conversation | undefined;
  /** The conversation as calls of stateless clients use it; undefined until it is open. */
  #forCalls: ForCalls | undefined;
  #feed: Feed | undefined;
  /** The number of sessions that hold it, also between their calls. */
  #sessions = 0;
  /** The number of calls under way in it. */
  #calls = 0;
  /** The number of uses so far, of sessions and calls. */
  #uses = 0;
  usedAtMs: number;
  /** True once the conversation has ended, and its calls have got their error; its process may still be ending. */
  isOver = false;
  /** True when the conversation ended because another one needed its place. */
  isReplaced = false;
  #stage: 'serving' | 'retired' | 'closing' | 'gone' = 'serving';
  #disarm: (() => void) | undefined;
  #level: string | undefined;
  #settingLevel: Promise<void> | undefined;
  /** False once the level could not be set: calls do not wait for the next attempt. */
  #awaitsLevel = true;

  constructor(deps: Timing, { request, key, open, listener }: DedicatedConversationOptions) {
    const { ownerId, sharing = 'oneUse', session, idleMs = 0, wrap } = request;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ownerId = ownerId;
    this.key = key;
    this.sharing = sharing;
    this.session = sharing === 'equalExtensions' ? undefined : session; // it has more than one
    this.gone = promise;
    this.#resolveGone = resolve;
    this.#deps = deps;
    this.#listener = listener;
    this.#idleMs = idleMs;
    this.usedAtMs = deps.clock.now();
    if (idleMs > 0) this.#disarm = this.#arm(idleMs);
    this.opening = this.#open(open, wrap);
    this.opening.catch(() => undefined); // its uses get the error
  }

  /** Settles like `opening`, but rejects with BACKEND_UNAVAILABLE when the backend keeps no dedicated conversations. */
  get requiredOpening(): Promise<Conversation> {
    return this.opening.then((conversation) => conversation ?? refuse());
  }
  /** The subscriptions and messages, for the clients that share the conversation; undefined until it is open. */
  get feed(): Feed | undefined {
    const conversation = this.inner;
    if (conversation === undefined) return undefined;
    const { handshake, messages$, resumed$, closed$, countsOwners } = conversation;
    const exchange = (request: ExchangeRequest) => withoutClient(conversation, request);
    this.#feed ??= new Feed({ handshake, messages$, resumed$, closed$, countsOwners, exchange }, this.#deps);
    return this.#feed;
  }
  /**
   * The time since when the client of its session has had no open stream and sent no message, in ms of the gateway's
   * monotonic clock. Infinity while the client is present, or without a session.
   */
  get clientAwaySinceMs(): number {
    const { activity } = this.session ?? {};
    return activity?.isIdle === true ? activity.usedAtMs : Number.POSITIVE_INFINITY;
  }
  get isUnused(): boolean {
    return this.#sessions + this.#calls === 0;
  }
  /** True when the conversation is open and no call is under way: ending it would affect only idle sessions. */
  get isOpenWithoutCalls(): boolean {
    return this.isOpen && this.#calls === 0;
  }
  get isReused(): boolean {
    return this.#uses > 1;
  }
  get isOpen(): boolean {
    return this.inner !== undefined;
  }
  get isIndependent(): boolean | undefined {
    return this.inner?.isIndependent;
  }
  get acceptsAnotherUse(): boolean {
    return this.#stage === 'serving' && (this.sharing !== 'oneUse' || this.isUnused);
  }

  /** Carries a call of a stateless client, when the conversation is open. */
  exchange(request: ExchangeRequest): Observable<ExchangeEvent> {
    return (this.#forCalls ?? refuse()).exchange(request);
  }

  /** Keeps the conversation open for a session, until `release`. */
  hold(): void {
    this.#uses += 1;
    this.#sessions += 1;
  }
  release(): void {
    this.#sessions -= 1;
    this.#useEnded();
  }

  /** Keeps the conversation open for a call, until `endCall`. */
  beginCall(): void {
    this.#uses += 1;
    this.#calls += 1;
  }
  endCall(): void {
    this.#calls -= 1;
    this.#useEnded();
  }

  /** Refuses further uses, and ends the conversation when it has none left. Idempotent. */
  refuseUses(): void {
    if (this.#stage !== 'serving') return;
    this.#stage = 'retired';
    this.#disarm?.();
    if (this.isUnused) void this.close();
  }

  /** Ends the conversation and its calls at once. Resolves when its process has ended; never rejects. */
  close(): Promise<void> {
    if (this.#stage === 'serving' || this.#stage === 'retired') void this.#close();
    return this.gone;
  }

  /** Ends it, and its session, because another conversation needs its place. Resolves as `close` does. */
  replace(): Promise<void> {
    this.isReplaced = true;
    void this.session?.close('processNeeded');
    return this.close();
  }

  /**
   * Makes the backend send log messages of this level. Returns a promise, which never rejects, while the request is
   * under way and is waited for; otherwise undefined. The level is never raised again, since other calls may have asked
   * for more messages. One that could not be set is asked for again with the next call.
   */
  requireLogLevel(level: string): Promise<void> | undefined {
    const conversation = this.inner;
    if (conversation?.handshake.capabilities.logging === undefined) return undefined;
    const before = this.#level;
    if (before !== undefined && includesLevel(before, level)) return this.#settingLevel;
    this.#level = level;
    const request = { method: SET_LEVEL, params: { level } };
    const settingLevel: Promise<void> = answerOf(
      withoutClient(conversation, request),
      LEVEL_MS,
      this.#deps.clock,
    )
      .then(
        () => undefined,
        () => {
          this.#awaitsLevel = false; // a call is worth more than its log messages
          if (this.#level === level) this.#level = before;
        },
      )
      .finally(() => {
        if (this.#settingLevel === settingLevel) this.#settingLevel = undefined;
      });
    this.#settingLevel = this.#awaitsLevel ? settingLevel : undefined;
    return this.#settingLevel;
  }

  // --- observer of its end ---------------------------------------------------------------------------------

  next(closed: Closed): void {
    this.isOver = true;
    this.#listener.ended(this, closed);
    void this.close();
  }

  #useEnded(): void {
    this.usedAtMs = this.#deps.clock.now();
    if (this.isUnused && (this.#stage !== 'serving' || this.#idleMs === 0)) void this.close();
  }

  async #open(open: DedicatedConversationOptions['open'], wrap: ConversationRequest['wrap']) {
    const { signal } = this.#ending;
    let conversation: Conversation | undefined;
    try {
      conversation = await open(signal);
    } finally {
      if (conversation === undefined) this.#finish();
    }
    if (conversation === undefined) return undefined;
    if (signal.aborted) {
      await closeQuietly(conversation);
      throw backendUnavailable('closed by the gateway', { delivered: 'no' });
    }
    this.inner = conversation;
    this.#forCalls = wrap?.(conversation) ?? conversation;
    this.#listener.opened(this, conversation);
    conversation.closed$.subscribe(this);
    return conversation;
  }

  /** Ends the conversation. An opening is aborted; if it succeeds all the same, the conversation is closed then. */
  async #close(): Promise<void> {
    this.#stage = 'closing';
    this.#disarm?.();
    this.#ending.abort();
    try {
      const conversation = this.inner ?? (await this.opening);
      if (conversation !== undefined) await closeQuietly(conversation);
    } catch {
      // The conversation was never opened.
    }
    this.#finish();
  }

  #finish(): void {
    if (this.#stage === 'gone') return;
    this.#stage = 'gone';
    this.#disarm?.();
    this.#listener.gone(this);
    this.#resolveGone();
  }

  /** Sets the one timer of the conversation. When it fires after a later use, it is set again. */
  #arm(waitMs: number): () => void {
    return this.#deps.clock.alarm(waitMs, () => {
      const idleMs = this.isUnused ? this.#deps.clock.now() - this.usedAtMs : 0;
      if (idleMs >= this.#idleMs) this.refuseUses();
      else this.#disarm = this.#arm(this.#idleMs - idleMs);
    });
  }
}

/** Sends a request of the gateway itself. Questions of the backend are refused, since there is no client to answer them. */
function withoutClient(conversation: Conversation, request: ExchangeRequest): Observable<ExchangeEvent> {
  return conversation
    .exchange(request)
    .pipe(tap((event) => event.kind === 'request' && event.answer(QUESTION_REFUSALS.noCall)));
}

/** Throws the error for a backend that used to keep dedicated conversations, and no longer does. */
function refuse(): never {
  throw backendUnavailable('it now speaks another era of the protocol', { delivered: 'no' });
}
