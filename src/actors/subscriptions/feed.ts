// The messages of a conversation outside of its exchanges, for all clients that share it. At a modern backend there is
// one subscription for all, because each takes a connection; at a legacy backend, which sends all messages anyway, one
// per resource (resource-subscriptions.ts). Messages are passed on in tasks: a backend may send thousands at once, each
// for hundreds of clients (ADR 357).

import { Observable, of, Subject, type Subscription, switchMap, take, takeUntil } from 'rxjs';
import { ANONYMOUS, countedIdOf } from '../../domain/accounts/principal.ts';
import { listNotice, type Notification, type ServerMessage, updateNotice } from '../../domain/mcp/client.ts';
import {
  announcesChanges,
  changedList,
  type ListField,
  noticedListsOf,
  RESOURCE_UPDATED,
} from '../../domain/mcp/mcp.ts';
import { MAX_WAITING_NOTICES, noticeKey, ofSubscribed } from '../../domain/mcp/notices-in-tasks.ts';
import { enclosingUris } from '../../domain/mcp/resource-uris.ts';
import type { Timing } from '../../domain/time/task-scheduler.ts';
import type { Conversation } from '../../transports/transport.ts';
import { BackendSubscription } from './backend-subscription.ts';
import { type ClientSubscription, MAX_RESOURCES, ResourceSubscriptions } from './resource-subscriptions.ts';

export const NO_URIS: ReadonlySet<string> = new Set();

/**
 * A client of a feed: gets the messages of a conversation, and, through a binding, also the questions of a dedicated
 * one.
 */
export interface FeedClient<Message = Notification> {
  /** The owner of the client. Owners take turns when there is no room for all resources. Default: ANONYMOUS. */
  readonly ownerId?: string | undefined;
  /** The resources whose updates the client wants; read at each subscription and each update. */
  readonly uris: ReadonlySet<string>;
  deliver(message: Message): void;
  /**
   * Called when the backend is subscribed to the client's resources again, after updates may have been missed. Default:
   * ignored.
   */
  missed?(): void;
}

/** Clients that get a message in one task. */
const CLIENTS_TOGETHER = 20;

/** A conversation that several clients may share. */
type SharedConversation = Pick<
  Conversation,
  'handshake' | 'messages$' | 'resumed$' | 'closed$' | 'exchange' | 'countsOwners'
>;

/**
 * Distributes the messages of one conversation to its clients. As messages do not name a client, an update of a
 * resource goes to the clients that want it, a change of a list to all, and any other message to none. Listens while
 * there are clients.
 */
export class Feed {
  readonly #deps: Timing;
  readonly #conversation: SharedConversation;
  readonly #clients = new Set<FeedClient>();
  readonly #listFollowers = new Set<(list: ListField) => void>();
  /** It is set only for a modern backend. */
  readonly #subscription: BackendSubscription | undefined;
  /** True when there was no room for further resources. */
  #isFull = false;
  #messages: Subscription | undefined;
  #subscriptions: ResourceSubscriptions | undefined;
  /** Messages that no client has got yet, in order of arrival: one for each list or resource, the latest. */
  readonly #waiting = new Map<string, Notification>();
  #isDelivering = false;
  readonly #allDelivered$ = new Subject<void>();

  constructor(conversation: SharedConversation, deps: Timing) {
    this.#deps = deps;
    this.#conversation = conversation;
    if (conversation.handshake.era !== 'modern') return;
    this.#subscription = new BackendSubscription(conversation, {
      wanted: () => (this.#clients.size > 0 ? this.#wanted() : undefined),
      deliver: (message) => this.#deliver(message),
      missed: () => this.#reportMissed(),
      clock: deps.clock,
    });
  }

  /** True when the backend is subscribed to each resource by itself, with `subscribe`. */
  get isOfLegacy(): boolean {
    return this.#subscription === undefined;
  }

  /** Adds a client, which gets messages until the returned function is called. */
  add(client: FeedClient): () => void {
    this.#clients.add(client);
    this.#messages ??= this.#listen();
    this.refresh(client.uris);
    return () => {
      if (!this.#clients.delete(client)) return;
      if (this.#clients.size > 0) return this.#left(client);
      this.#messages?.unsubscribe();
      this.#messages = undefined;
      this.#waiting.clear();
      this.#subscription?.stop();
    };
  }

  /** Subscribes a legacy backend to a resource until each client has released it. Updates reach all clients that want them. */
  subscribe(uri: string, ownerId: string = ANONYMOUS.id): ClientSubscription {
    const missed = (resource: string): void => this.#deliver(updateNotice(resource));
    this.#subscriptions ??= new ResourceSubscriptions(this.#conversation, this.#deps, missed);
    return this.#subscriptions.subscribe(uri, ownerId);
  }

  /**
   * Emits changes of lists, and updates of these resources, to which the backend is subscribed as long as there is a
   * subscriber; cold. Never errors; completes with the conversation. `missed`: see FeedClient; with `isLate` also
   * called after the first subscription.
   */
  messages(
    uris: ReadonlySet<string>,
    { ownerId = ANONYMOUS.id, missed = () => {} }: Pick<FeedClient, 'ownerId' | 'missed'> = {},
    isLate = false,
  ): Observable<Notification> {
    return new Observable<Notification>((subscriber) => {
      subscriber.add(this.add({ ownerId, uris, deliver: (message) => subscriber.next(message), missed }));
      const each = this.#subscription === undefined ? [...uris] : [];
      const subscriptions = each.map((uri) => this.subscribe(uri, ownerId));
      subscriber.add(() => {
        for (const { release } of subscriptions) release();
      });
      if (!isLate) return;
      const answers = subscriptions.map(({ answer }) => answer);
      void Promise.allSettled([this.untilSettled(), ...answers]).then(() => subscriber.closed || missed());
    }).pipe(takeUntil(this.#delivered$));
  }

  /**
   * Emits changes of lists at once, before answers that the backend sent after them, and counts as a client; cold. Never
   * errors; completes with the conversation.
   */
  get listChanges$(): Observable<ListField> {
    return new Observable<ListField>((subscriber) => {
      const next = (list: ListField): void => subscriber.next(list);
      this.#listFollowers.add(next);
      subscriber.add(() => this.#listFollowers.delete(next));
      subscriber.add(this.add({ uris: NO_URIS, deliver: () => undefined }));
    }).pipe(takeUntil(this.#conversation.closed$));
  }

  /**
   * Reports that a client wants these resources from now on; undefined: that it wants fewer. The wishes of all
   * clients are collected only where that may change the subscription, since thousands of clients may come at once.
   */
  refresh(uris?: ReadonlySet<string>): void {
    if (uris === undefined || this.#subscription?.covers(uris) === false) this.#subscription?.refresh();
  }

  /** Resolves when a modern backend knows all changes, see BackendSubscription; undefined when there is no need to wait. */
  untilSettled(withinMs?: number): Promise<void> | undefined {
    return this.#subscription?.untilSettled(withinMs);
  }

  /** Emits when the conversation has ended and its clients have got the messages that it had sent. */
  get #delivered$(): Observable<unknown> {
    const { closed$ } = this.#conversation;
    return closed$.pipe(
      switchMap(() => (this.#isDelivering ? this.#allDelivered$.pipe(take(1)) : of(undefined))),
    );
  }

  #left({ uris }: FeedClient): void {
    if (this.#subscription === undefined) return;
    // Others may have waited for room.
    if (this.#isFull || [...uris].some((uri) => !this.#isWanted(uri))) this.refresh();
  }

  #isWanted(uri: string): boolean {
    for (const { uris } of this.#clients) if (uris.has(uri)) return true;
    return false;
  }

  /**
   * All wanted resources. When there are too many, owners take turns up to MAX_RESOURCES, and so do the
   * clients of each owner.
   */
  #wanted(): ReadonlySet<string> {
    const wanted = new Set<string>();
    const owners = Map.groupBy(this.#clients, ({ ownerId = ANONYMOUS.id }) => countedIdOf(ownerId));
    const ofOwners = [...owners.values()].map((clients) =>
      interleaved(clients.map(({ uris }) => uris.values())),
    );
    const all = interleaved(ofOwners);
    let next = all.next();
    for (; next.done !== true && wanted.size < MAX_RESOURCES; next = all.next()) wanted.add(next.value);
    this.#isFull = wanted.size >= MAX_RESOURCES;
    return wanted;
  }

  #listen(): Subscription {
    const { messages$, resumed$ } = this.#conversation;
    const listening = messages$.subscribe((message) => this.#deliver(message));
    listening.add(resumed$?.subscribe(() => this.#resumed()));
    return listening;
  }

  /** Messages may have been missed: all lists count as changed (ADR 350), for clients those that the server announces. */
  #resumed(): void {
    const { handshake } = this.#conversation;
    for (const list of noticedListsOf(handshake))
      if (announcesChanges(handshake.capabilities, list)) this.#deliver(listNotice(list));
      else this.#follow(list);
    this.#reportMissed();
  }

  #follow(list: ListField): void {
    for (const follow of this.#listFollowers) follow(list);
  }

  #reportMissed(): void {
    for (const client of [...this.#clients]) client.missed?.();
  }

  #deliver(message: ServerMessage): void {
    const list = changedList(message.method);
    const isPassedOn = message.method === RESOURCE_UPDATED || list !== undefined;
    if (message.kind === 'request' || !isPassedOn || this.#clients.size === 0) return;
    if (list !== undefined) this.#follow(list);
    const notice =
      this.#waiting.size < MAX_WAITING_NOTICES ? message : ofSubscribed(message, { has: this.#isSubscribed });
    if (notice === undefined) return;
    this.#waiting.set(noticeKey(notice), notice);
    if (this.#isDelivering) return;
    this.#isDelivering = true;
    void this.#deps.scheduler.each(this.#deliveries(), (deliver) => deliver());
  }

  /** True when the backend is or will be subscribed to the resource. */
  readonly #isSubscribed = (uri: string): boolean =>
    this.#subscription?.covers([uri]) ?? this.#subscriptions?.has(uri) === true;

  /** The waiting messages, one after another: each for some of the clients at a time. */
  *#deliveries(): Generator<() => void> {
    try {
      for (const [key, notice] of this.#waiting) {
        this.#waiting.delete(key); // the same again, while clients get this one, is for all of them
        const isFor = recipientsOf(notice);
        const clients = [...this.#clients];
        for (let at = 0; at < clients.length; at += CLIENTS_TOGETHER)
          yield () => {
            for (const client of clients.slice(at, at + CLIENTS_TOGETHER))
              if (this.#clients.has(client) && isFor(client)) client.deliver(notice);
          };
      }
    } finally {
      this.#isDelivering = false;
      this.#allDelivered$.next();
    }
  }
}

/** A check of who gets the message: of an update the clients that want the resource, or one that it is a part of. */
function recipientsOf({ method, params: { uri } }: Notification): (client: FeedClient) => boolean {
  if (method !== RESOURCE_UPDATED) return () => true;
  const uris = typeof uri === 'string' ? enclosingUris(uri) : [];
  return (client) => uris.some((candidate) => client.uris.has(candidate));
}

/**
 * An iterator over one item of each list in turn, until all lists have ended. Not a generator: clients may have
 * millions of URIs together.
 */
function interleaved<T>(lists: Iterator<T>[]): Iterator<T, undefined> {
  let at = 0;
  const next = (): IteratorResult<T, undefined> => {
    while (lists.length > 0) {
      at %= lists.length;
      const item = lists[at]?.next();
      if (item !== undefined && item.done !== true) {
        at += 1;
        return item;
      }
      lists.splice(at, 1);
    }
    return { done: true, value: undefined };
  };
  return { next };
}
