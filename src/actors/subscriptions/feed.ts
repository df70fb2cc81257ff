// The messages of a conversation outside of its exchanges, for all clients that share it: one subscription at a modern backend,
// because each takes a connection; at a legacy one, which sends all messages, one for each resource (resource-subscriptions.ts).

import { Observable, type Subscription, takeUntil } from 'rxjs';
import { ANONYMOUS, holderOf } from '../../domain/accounts/account.ts';
import { type ServerMessage, type ServerNotification, updateNotice } from '../../domain/mcp/client.ts';
import { changedList, RESOURCE_UPDATED } from '../../domain/mcp/mcp.ts';
import { enclosingUris } from '../../domain/mcp/resource-uris.ts';
import type { Conversation } from '../../transports/transport.ts';
import { BackendSubscription } from './backend-subscription.ts';
import {
  MAX_RESOURCES,
  ResourceSubscriptions,
  type SharedSubscription,
  type SubscriptionDeps,
} from './resource-subscriptions.ts';

/** URIs of resources. */
export interface ResourceUris {
  has(uri: string): boolean;
  keys(): Iterable<string>;
}

export const NO_URIS: ResourceUris = { has: () => false, keys: () => [] };

/** Gets the messages of a conversation; from a binding also the questions of a dedicated one. */
export interface FeedClient<Message = ServerNotification> {
  /** Owners take turns where there is no room for all resources. Default: ANONYMOUS. */
  readonly ownerId?: string | undefined;
  /** The resources whose updates it wants; read at each subscription and each update. */
  readonly uris: ResourceUris;
  deliver(message: Message): void;
  /** The backend is subscribed to its resources again: updates before may have been missed. Default: nothing is done. */
  resumed?(): void;
}

/** A conversation that several clients may share. */
type SharedConversation = Pick<Conversation, 'handshake' | 'messages$' | 'resumed$' | 'closed$' | 'exchange'>;

/**
 * The clients of one conversation. Messages name no client: an update of a resource goes to those that want it, a
 * change of a list to all, any other message to none. Open while there are clients.
 */
export class Feed {
  readonly #deps: SubscriptionDeps;
  readonly #conversation: SharedConversation;
  readonly #clients = new Set<FeedClient>();
  /** Only of a modern backend. */
  readonly #subscription: BackendSubscription | undefined;
  /** There was no room for more resources. */
  #isFull = false;
  #messages: Subscription | undefined;
  #subscriptions: ResourceSubscriptions | undefined;

  constructor(conversation: SharedConversation, deps: SubscriptionDeps) {
    this.#deps = deps;
    this.#conversation = conversation;
    if (conversation.handshake.era !== 'modern') return;
    const wanted = () => (this.#clients.size > 0 ? this.#wanted() : undefined);
    this.#subscription = new BackendSubscription(
      conversation,
      wanted,
      (message) => this.#deliver(message),
      () => this.#resumed(),
      deps,
    );
  }

  /** The client gets messages until the returned function is called. */
  add(client: FeedClient): () => void {
    this.#clients.add(client);
    this.#messages ??= this.#listen();
    this.refresh(client.uris);
    return () => {
      if (!this.#clients.delete(client)) return;
      if (this.#clients.size > 0) return this.#left(client);
      this.#messages?.unsubscribe();
      this.#messages = undefined;
      this.#subscription?.stop();
    };
  }

  /** Subscribes a legacy backend to a resource, until every part is released. Updates reach the clients that want them. */
  subscribe(uri: string, ownerId: string = ANONYMOUS.id): SharedSubscription {
    const resumed = (resource: string): void => this.#deliver(updateNotice(resource));
    this.#subscriptions ??= new ResourceSubscriptions(this.#conversation, this.#deps, resumed);
    return this.#subscriptions.subscribe(uri, ownerId);
  }

  /**
   * Cold: the changes of lists, and the updates of these resources, to which the backend is subscribed meanwhile. Never errors;
   * completes with the conversation. `resumed`: see FeedClient; if `isLate` also after the first subscription.
   */
  messages(
    uris: ReadonlySet<string>,
    ownerId: string = ANONYMOUS.id,
    resumed: () => void = () => {},
    isLate = false,
  ): Observable<ServerNotification> {
    return new Observable<ServerNotification>((subscriber) => {
      subscriber.add(this.add({ ownerId, uris, deliver: (message) => subscriber.next(message), resumed }));
      const each = this.#subscription === undefined ? [...uris] : [];
      const parts = each.map((uri) => this.subscribe(uri, ownerId));
      subscriber.add(() => {
        for (const { release } of parts) release();
      });
      if (!isLate) return;
      const answers = parts.map(({ answer }) => answer);
      void Promise.allSettled([this.settled, ...answers]).then(() => subscriber.closed || resumed());
    }).pipe(takeUntil(this.#conversation.closed$));
  }

  /**
   * A client wants these resources from now on; undefined: fewer than before. What all clients want is collected
   * only where that may change the subscription: thousands of clients may come at the same time.
   */
  refresh(uris?: ResourceUris): void {
    if (uris === undefined || this.#subscription?.covers(uris.keys()) === false)
      this.#subscription?.refresh();
  }

  /** As `acknowledged`, without a limit. */
  get settled(): Promise<void> | undefined {
    return this.#subscription?.settled;
  }

  /** Resolves when a modern backend knows all changes; see BackendSubscription. */
  get acknowledged(): Promise<void> | undefined {
    return this.#subscription?.acknowledged;
  }

  #left({ uris }: FeedClient): void {
    if (this.#subscription === undefined) return;
    // Others may have waited for room.
    if (this.#isFull || [...uris.keys()].some((uri) => !this.#isWanted(uri))) this.refresh();
  }

  #isWanted(uri: string): boolean {
    for (const { uris } of this.#clients) if (uris.has(uri)) return true;
    return false;
  }

  /** All resources; if there are too many, the owners take turns until MAX_RESOURCES, and so do the clients of each. */
  #wanted(): ReadonlySet<string> {
    const wanted = new Set<string>();
    const owners = Map.groupBy(this.#clients, ({ ownerId = ANONYMOUS.id }) => holderOf(ownerId));
    const ofOwners = [...owners.values()].map((clients) =>
      inTurn(clients.map(({ uris }) => uris.keys()[Symbol.iterator]())),
    );
    const all = inTurn(ofOwners);
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

  #resumed(): void {
    for (const client of [...this.#clients]) client.resumed?.();
  }

  #deliver(message: ServerMessage): void {
    const isUpdate = message.method === RESOURCE_UPDATED;
    if (message.kind === 'request' || (!isUpdate && changedList(message.method) === undefined)) return;
    const { uri } = message.params;
    const uris = isUpdate && typeof uri === 'string' ? enclosingUris(uri) : [];
    for (const client of [...this.#clients]) {
      if (!isUpdate || uris.some((candidate) => client.uris.has(candidate))) client.deliver(message);
    }
  }
}

/** One of each after the other, until all have ended. Not a generator: clients may have millions of URIs together. */
function inTurn<T>(lists: Iterator<T>[]): Iterator<T, undefined> {
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
