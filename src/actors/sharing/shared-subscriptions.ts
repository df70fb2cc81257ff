// Resource subscriptions in a conversation that several clients share: the backend gets `resources/subscribe` for the first client,
// `resources/unsubscribe` after the last one, and all subscriptions again after a restart. One object per fleet. The readers of
// the conversation distribute the updates.

import {
  defer,
  filter,
  type Observable,
  Subscription,
  take,
  throwError,
  throwIfEmpty,
  timeout,
  timer,
} from 'rxjs';
import { backendTimeout, backendUnavailable, notConnected } from '../../domain/error-catalogue.ts';
import { asGatewayError, type GatewayError } from '../../domain/errors.ts';
import { type ExchangeEvent, type ExchangeRequest, type FinalEvent, isFinal } from '../../domain/exchange.ts';
import type { Peer } from '../../domain/mcp.ts';

/** A shared conversation: that of an instance (InstanceRef), or one of stateless clients of the same owner. */
export interface SharedConversation {
  /** The peer of the backend; another object after a restart, undefined or null while it is not connected. */
  readonly peer: Peer | null | undefined;
  /** Emits at once, and whenever `peer` may have changed; completes with the conversation. */
  readonly state$: Observable<unknown>;
  exchange(request: ExchangeRequest): Observable<ExchangeEvent>;
}

/** One client's part in a subscription. */
export interface SharedSubscription {
  /**
   * The answer of the backend to `resources/subscribe`, perhaps to an earlier client. Rejects with BACKEND_UNAVAILABLE or
   * BACKEND_TIMEOUT when it could not be asked; then it is asked again as soon as possible, until `release`. May stay unread.
   */
  readonly answer: Promise<FinalEvent>;
  /** Ends this client's part. Idempotent. */
  readonly release: () => void;
}

/** Longest wait for the answer to one request, in ms. */
const ANSWER_MS = 30_000;
/** Wait before a failed request is repeated, in ms. */
const RETRY_MS = 5_000;
/** Most resources of one conversation. */
const MOST_RESOURCES = 10_000;

export class SharedSubscriptions {
  readonly #byConversation = new Map<SharedConversation, ConversationSubscriptions>();

  /** Subscribes the backend to `uri` until every part is released. */
  subscribe(conversation: SharedConversation, uri: string): SharedSubscription {
    return (this.#byConversation.get(conversation) ?? this.#open(conversation)).take(uri);
  }

  /** Number of conversations with subscriptions. */
  get size(): number {
    return this.#byConversation.size;
  }

  #open(conversation: SharedConversation): ConversationSubscriptions {
    const subscriptions = new ConversationSubscriptions(conversation, () =>
      this.#byConversation.delete(conversation),
    );
    this.#byConversation.set(conversation, subscriptions);
    subscriptions.begin();
    return subscriptions;
  }
}

/** One resource: the number of its clients, and its state at the backend. */
interface ResourceEntry {
  readonly uri: string;
  parts: number;
  /** The last answer to `resources/subscribe`, and the peer that gave it. */
  answered?: { readonly peer: Peer; readonly answer: FinalEvent } | undefined;
  /** The request under way; one at a time, so that the backend gets them in order. */
  request?: Subscription | undefined;
  /** The callers that wait for the next answer. */
  waiting?: PromiseWithResolvers<FinalEvent> | undefined;
}

/** The subscriptions of one conversation. */
class ConversationSubscriptions {
  readonly #conversation: SharedConversation;
  readonly #onEmpty: () => void;
  readonly #entries = new Map<string, ResourceEntry>();
  readonly #watch = new Subscription();
  #isOver = false;

  constructor(conversation: SharedConversation, onEmpty: () => void) {
    this.#conversation = conversation;
    this.#onEmpty = onEmpty;
  }

  /** Follows the conversation: a new backend gets the subscriptions again. */
  begin(): void {
    this.#watch.add(
      this.#conversation.state$.subscribe({
        next: () => {
          for (const entry of [...this.#entries.values()]) this.#update(entry);
        },
        error: () => this.#end(),
        complete: () => this.#end(),
      }),
    );
  }

  take(uri: string): SharedSubscription {
    if (this.#isOver) return refused(notConnected());
    const entry = this.#entries.get(uri) ?? this.#entry(uri);
    if (entry === undefined) {
      return refused(backendUnavailable('it has too many subscriptions', { delivered: 'no' }));
    }
    entry.parts += 1;
    const answer = this.#answer(entry);
    this.#update(entry);
    let isHeld = true;
    const release = (): void => {
      if (!isHeld) return;
      isHeld = false;
      entry.parts -= 1;
      this.#update(entry);
    };
    return { answer, release };
  }

  #entry(uri: string): ResourceEntry | undefined {
    if (this.#entries.size >= MOST_RESOURCES) return undefined;
    const entry: ResourceEntry = { uri, parts: 0 };
    this.#entries.set(uri, entry);
    return entry;
  }

  #answer(entry: ResourceEntry): Promise<FinalEvent> {
    const peer = this.#conversation.peer ?? undefined;
    if (peer === undefined) return unread(Promise.reject(notConnected()));
    if (entry.answered?.peer === peer) return Promise.resolve(entry.answered.answer);
    entry.waiting ??= Promise.withResolvers<FinalEvent>();
    return unread(entry.waiting.promise);
  }

  /** Sends the next request that the backend needs, if any; called again after its answer. */
  #update(entry: ResourceEntry): void {
    if (entry.request !== undefined || this.#isOver) return;
    const peer = this.#conversation.peer ?? undefined;
    const isAnsweredHere = peer !== undefined && entry.answered?.peer === peer;
    if (entry.parts > 0) {
      if (peer !== undefined && !isAnsweredHere) this.#subscribe(entry, peer);
    } else if (isAnsweredHere && entry.answered?.answer.kind === 'result') this.#unsubscribe(entry);
    else this.#forget(entry);
  }

  #subscribe(entry: ResourceEntry, peer: Peer): void {
    this.#ask(entry, 'resources/subscribe', {
      answered: (answer) => {
        entry.answered = { peer, answer };
        takeWaiting(entry)?.resolve(answer);
        this.#update(entry);
      },
      failed: (error) => {
        takeWaiting(entry)?.reject(error);
        this.#updateLater(entry);
      },
    });
  }

  #unsubscribe(entry: ResourceEntry): void {
    entry.answered = undefined; // whatever it answers: a later client subscribes anew
    this.#ask(entry, 'resources/unsubscribe', {
      answered: () => this.#update(entry),
      failed: () => this.#update(entry),
    });
  }

  #ask(
    entry: ResourceEntry,
    method: string,
    { answered, failed }: { answered: (event: FinalEvent) => void; failed: (error: GatewayError) => void },
  ): void {
    const request = new Subscription();
    const done = (): void => {
      entry.request = undefined;
    };
    entry.request = request; // before subscribing: the answer may come synchronously
    const late = backendTimeout(ANSWER_MS);
    const answer$ = defer(() => this.#conversation.exchange({ method, params: { uri: entry.uri } })).pipe(
      filter(isFinal),
      take(1),
      throwIfEmpty(() => late),
      timeout({ first: ANSWER_MS, with: () => throwError(() => late) }),
    );
    request.add(
      answer$.subscribe({
        next: (event) => {
          done();
          answered(event);
        },
        error: (thrown: unknown) => {
          done();
          failed(asGatewayError(thrown));
        },
      }),
    );
  }

  /** A restart meanwhile is followed as usual; only a backend without a restart waits. */
  #updateLater(entry: ResourceEntry): void {
    if (entry.parts === 0) this.#update(entry);
    else this.#watch.add(timer(RETRY_MS).subscribe(() => this.#update(entry)));
  }

  #forget(entry: ResourceEntry): void {
    this.#entries.delete(entry.uri);
    takeWaiting(entry)?.reject(notConnected());
    if (this.#entries.size === 0) this.#end();
  }

  /** No subscription is left, or the conversation is over. */
  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#watch.unsubscribe();
    for (const entry of this.#entries.values()) {
      entry.request?.unsubscribe();
      takeWaiting(entry)?.reject(notConnected());
    }
    this.#entries.clear();
    this.#onEmpty();
  }
}

function takeWaiting(entry: ResourceEntry): ResourceEntry['waiting'] {
  const { waiting } = entry;
  entry.waiting = undefined;
  return waiting;
}

function refused(error: GatewayError): SharedSubscription {
  return { answer: unread(Promise.reject(error)), release: () => undefined };
}

/** The same promise; its rejection may stay unhandled. */
function unread<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}
