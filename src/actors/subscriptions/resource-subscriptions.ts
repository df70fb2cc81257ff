// The resource subscriptions in one conversation with a legacy backend. The backend gets `resources/subscribe` for the
// first client, and `resources/unsubscribe` after the last one. When a request can be sent, the wishes of the clients
// are compared with the state of the backend: a client that has left by then costs no request (ADR 357). Owners take
// turns, and each has a share (ADR 357). feed.ts distributes the updates.

import type { Subscription } from 'rxjs';
import { countedIdOf } from '../../domain/accounts/principal.ts';
import type { FinalEvent } from '../../domain/calls/exchange-event.ts';
import { backendUnavailable, notConnected } from '../../domain/errors/backend-errors.ts';
import type { GatewayError } from '../../domain/errors/errors.ts';
import { tooMany } from '../../domain/errors/request-errors.ts';
import { SUBSCRIBE, UNSUBSCRIBE } from '../../domain/mcp/mcp.ts';
import { UserAmounts, UserShares } from '../../domain/memory/user-shares.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { timer$ } from '../../domain/time/clock-streams.ts';
import type { TaskScheduler, Timing } from '../../domain/time/task-scheduler.ts';
import { answerOf } from '../../transports/gateway-requests.ts';
import type { Conversation } from '../../transports/transport.ts';

/** The subscription of one client to a resource, which the backend has once for all. */
export interface ClientSubscription {
  /**
   * The answer of the backend to `resources/subscribe`, perhaps to that of an earlier client. Throws BACKEND_UNAVAILABLE or
   * BACKEND_TIMEOUT when the backend could not be asked; it is then asked again until `release`. Throws QUEUE_FULL when the
   * owner has used its share, and BACKEND_UNAVAILABLE when there is no room; both are tried again until `release`. May be
   * ignored: it causes no unhandled rejection.
   */
  readonly answer: Promise<FinalEvent>;
  /** Ends it. Idempotent. */
  readonly release: () => void;
}

/** The longest wait for the answer to one request, in ms. */
export const BACKEND_ANSWER_MS = 30_000;
/** Wait before a failed request is repeated, in ms. */
const RETRY_MS = 5_000;
/** The most unanswered requests at a backend, of which an owner has a share; further ones wait. */
export const MAX_SUBSCRIBE_REQUESTS = 64;
/**
 * The most resources of one conversation, with a backend of either era. With a legacy backend an owner has a share of
 * them.
 */
export const MAX_RESOURCES = 10_000;

/** What the backend has of a resource. `asked`: a request is under way, one at a time, so that the backend gets them in order. */
type AtBackend = 'absent' | 'asked' | 'subscribed';

/** One resource, where the backend counts owners of one owner: its clients, and its state at the backend. */
interface ResourceEntry {
  readonly uri: string;
  readonly key: string;
  /** The owner for whom the backend is asked; undefined where it is asked once for all. */
  readonly callerId: string | undefined;
  clients: number;
  /** The number of clients by owner, including one for `leftBy`. */
  readonly clientsByOwner: UserAmounts;
  /**
   * The owner of the last client that left. The resource counts in its share until the backend no longer has it, or
   * another client comes.
   */
  leftBy: string | undefined;
  /** The answer to `resources/subscribe`; undefined when no client waits for one. */
  answer: Promise<FinalEvent> | undefined;
  /** The same answer while it is outstanding: the backend has to be asked. */
  awaited: PromiseWithResolvers<FinalEvent> | undefined;
  atBackend: AtBackend;
  /** True after a failed or refused request, or without room for one, until the backend agrees: updates may have been missed. */
  mayHaveMissed: boolean;
}

interface ResourceClient {
  readonly uri: string;
  readonly ownerId: string;
  /** The resource; undefined when there was no room for it. */
  entry: ResourceEntry | undefined;
}

/** The resource subscriptions in one conversation. */
export class ResourceSubscriptions {
  readonly #clock: Clock;
  readonly #scheduler: TaskScheduler;
  readonly #conversation: Pick<Conversation, 'exchange' | 'countsOwners'>;
  readonly #missed: (uri: string) => void;
  readonly #entries = new Map<string, ResourceEntry>();
  /** The number of entries of each resource. */
  readonly #uris = new Map<string, number>();
  readonly #shares = new UserShares(MAX_RESOURCES);
  /**
   * The resources whose subscription at the backend may differ from what clients want, by owner. The owners are in the order in
   * which they are served, the resources of each in the order of their arrival.
   */
  readonly #due = new Map<string, Set<ResourceEntry>>();
  #isComparing = false;
  readonly #asked = new UserShares(MAX_SUBSCRIBE_REQUESTS);
  /** Resources whose request failed, until all of them are asked again. */
  readonly #failed = new Set<ResourceEntry>();
  /** Subscribers for which there was no room, at most MAX_RESOURCES. Further ones are not tried again. */
  readonly #refused = new Set<ResourceClient>();
  #retry: Subscription | undefined;
  #isClosed = false;

  /**
   * `missed` is called when the backend agrees to a request that failed before, or for which there was no room:
   * updates may have been missed until then.
   */
  constructor(
    conversation: Pick<Conversation, 'exchange' | 'closed$' | 'countsOwners'>,
    { clock, scheduler }: Timing,
    missed: (uri: string) => void,
  ) {
    this.#clock = clock;
    this.#scheduler = scheduler;
    this.#missed = missed;
    this.#conversation = conversation;
    conversation.closed$.subscribe(() => this.#close());
  }

  /** True when there is room for the resource, and a client for it, or was a moment ago. */
  has(uri: string): boolean {
    return this.#uris.has(uri);
  }

  /** Subscribes the backend to `uri` until each client has released its subscription. */
  subscribe(uri: string, principalId: string): ClientSubscription {
    const client: ResourceClient = { uri, ownerId: countedIdOf(principalId), entry: undefined };
    const refusal = this.#refusalOf(client);
    const answer =
      refusal === undefined
        ? this.#answerFor(this.#join(client), [client.ownerId])
        : this.#refuse(client, refusal);
    let isReleased = false;
    const release = (): void => {
      if (isReleased) return;
      isReleased = true;
      this.#refused.delete(client);
      if (client.entry !== undefined) this.#release(client.entry, client.ownerId);
    };
    return { answer, release };
  }

  #refusalOf({ uri, ownerId }: ResourceClient): GatewayError | undefined {
    const entry = this.#entries.get(this.#keyOf(uri, ownerId));
    if (entry !== undefined && entry.clientsByOwner.held(ownerId) > 0) return undefined;
    if (this.#shares.isShareFull(ownerId))
      return tooMany('subscriptions at the instance', { most: this.#shares.share, isShare: true });
    if (this.#uris.has(uri) || this.#uris.size < MAX_RESOURCES) return undefined;
    return backendUnavailable('it has too many subscriptions', { delivered: 'no' });
  }

  #refuse(client: ResourceClient, refusal: GatewayError): Promise<never> {
    if (!this.#isClosed && this.#refused.size < MAX_RESOURCES) this.#refused.add(client);
    this.#retryLater();
    const answer = Promise.reject(refusal);
    answer.catch(() => undefined);
    return answer;
  }

  #join(client: ResourceClient): ResourceEntry {
    const { uri, ownerId } = client;
    const entry = this.#entryOf(uri, ownerId);
    client.entry = entry;
    const { leftBy, clientsByOwner } = entry;
    entry.clients += 1;
    if (clientsByOwner.held(ownerId) === 0) this.#shares.add(ownerId);
    clientsByOwner.add(ownerId, 1);
    entry.leftBy = undefined;
    if (leftBy !== undefined) this.#leave(entry, leftBy);
    return entry;
  }

  #entryOf(uri: string, ownerId: string): ResourceEntry {
    const key = this.#keyOf(uri, ownerId);
    const known = this.#entries.get(key);
    if (known !== undefined) return known;
    const entry: ResourceEntry = {
      uri,
      key,
      callerId: this.#conversation.countsOwners ? ownerId : undefined,
      clients: 0,
      clientsByOwner: new UserAmounts(),
      leftBy: undefined,
      answer: undefined,
      awaited: undefined,
      atBackend: 'absent',
      mayHaveMissed: false,
    };
    this.#entries.set(key, entry);
    this.#uris.set(uri, (this.#uris.get(uri) ?? 0) + 1);
    return entry;
  }

  #keyOf(uri: string, ownerId: string): string {
    return this.#conversation.countsOwners ? `${ownerId}\n${uri}` : uri;
  }

  #release(entry: ResourceEntry, ownerId: string): void {
    entry.clients -= 1;
    if (entry.clients > 0) this.#leave(entry, ownerId);
    else {
      entry.leftBy = ownerId;
      this.#compareLater(entry);
    }
  }

  #leave(entry: ResourceEntry, ownerId: string): void {
    entry.clientsByOwner.release(ownerId);
    if (entry.clientsByOwner.held(ownerId) > 0) return;
    this.#shares.release(ownerId);
    this.#notDue(entry, ownerId);
  }

  #answerFor(entry: ResourceEntry, owners: Iterable<string>): Promise<FinalEvent> {
    if (entry.answer === undefined) {
      entry.awaited = Promise.withResolvers<FinalEvent>();
      entry.answer = entry.awaited.promise;
      entry.answer.catch(() => undefined);
    }
    this.#compareLater(entry, owners); // also where another owner waits: its turn may come later
    return entry.answer;
  }

  #compareLater(entry: ResourceEntry, owners: Iterable<string> = entry.clientsByOwner.users): void {
    const { clients, atBackend, awaited } = entry;
    if (atBackend === 'asked') return; // compared after the answer
    if (clients === 0 && atBackend === 'absent') this.#forget(entry);
    else if (clients === 0 || awaited !== undefined)
      for (const ownerId of owners) this.#due.set(ownerId, (this.#due.get(ownerId) ?? new Set()).add(entry));
    this.#compare();
  }

  /** Forgets a resource that no client wants and the backend does not have. */
  #forget(entry: ResourceEntry): void {
    const { leftBy } = entry;
    if (entry.awaited !== undefined) this.#fail(entry, notConnected());
    this.#entries.delete(entry.key);
    const others = (this.#uris.get(entry.uri) ?? 0) - 1;
    if (others > 0) this.#uris.set(entry.uri, others);
    else this.#uris.delete(entry.uri);
    entry.leftBy = undefined;
    if (leftBy !== undefined) this.#leave(entry, leftBy);
  }

  #notDue(entry: ResourceEntry, ownerId: string): void {
    const due = this.#due.get(ownerId);
    due?.delete(entry);
    if (due?.size === 0) this.#due.delete(ownerId);
  }

  /** Compares due resources with the backend, each in its own task. */
  #compare(): void {
    if (this.#isComparing || this.#nextOwner() === undefined) return;
    this.#isComparing = true;
    void this.#scheduler.each(this.#takeDue(), ([entry, ownerId]) => this.#settle(entry, ownerId));
  }

  *#takeDue(): Generator<[ResourceEntry, string]> {
    for (let ownerId = this.#nextOwner(); ownerId !== undefined; ownerId = this.#nextOwner()) {
      const due = this.#due.get(ownerId) ?? new Set();
      this.#due.delete(ownerId);
      const [entry] = due;
      if (entry === undefined) continue;
      due.delete(entry);
      if (due.size > 0) this.#due.set(ownerId, due); // the others are served first
      yield [entry, ownerId];
    }
    this.#isComparing = false;
  }

  /**
   * The owner whose turn it is to ask the backend; undefined while the backend must first answer earlier
   * requests.
   */
  #nextOwner(): string | undefined {
    if (this.#asked.isFull) return undefined;
    for (const ownerId of this.#due.keys()) if (!this.#asked.isShareFull(ownerId)) return ownerId;
    return undefined;
  }

  /** Asks the backend for what the clients want, unless it has that. `ownerId`: the owner whose turn it is. */
  #settle(entry: ResourceEntry, ownerId: string): void {
    const { clients, awaited, atBackend } = entry;
    if (atBackend === 'asked') return; // compared again after the answer
    if (awaited !== undefined && this.#isClosed) this.#fail(entry, notConnected());
    else if (awaited !== undefined) void this.#ask(entry, ownerId, () => this.#subscribe(entry, awaited));
    else if (clients === 0 && atBackend === 'subscribed')
      void this.#ask(entry, ownerId, () => this.#unsubscribe(entry));
  }

  async #ask(entry: ResourceEntry, ownerId: string, ask: () => Promise<AtBackend>): Promise<void> {
    entry.atBackend = 'asked';
    this.#asked.add(ownerId);
    entry.atBackend = await ask();
    this.#asked.release(ownerId);
    this.#compareLater(entry);
  }

  async #subscribe(entry: ResourceEntry, { resolve }: PromiseWithResolvers<FinalEvent>): Promise<AtBackend> {
    const event = await this.#answerTo(entry, SUBSCRIBE).catch((thrown) => this.#fail(entry, thrown));
    if (event === undefined) return 'absent';
    entry.awaited = undefined;
    resolve(event);
    const hasAgreed = event.kind === 'result';
    if (entry.mayHaveMissed && hasAgreed) this.#missed(entry.uri);
    entry.mayHaveMissed = !hasAgreed;
    if (!hasAgreed) entry.answer = undefined; // for a later client the backend may have the resource
    return hasAgreed ? 'subscribed' : 'absent';
  }

  /** Unsubscribes. Whatever the answer is, a later client subscribes again. */
  async #unsubscribe(entry: ResourceEntry): Promise<AtBackend> {
    entry.answer = undefined;
    if (!this.#isClosed) await this.#answerTo(entry, UNSUBSCRIBE).catch(() => undefined);
    return 'absent';
  }

  #fail(entry: ResourceEntry, thrown: unknown): void {
    entry.awaited?.reject(thrown);
    entry.awaited = undefined;
    entry.answer = undefined;
    if (entry.clients === 0 || this.#isClosed) return;
    entry.mayHaveMissed = true;
    this.#failed.add(entry);
    this.#retryLater();
  }

  #retryLater(): void {
    if (this.#isClosed || this.#refused.size + this.#failed.size === 0) return;
    this.#retry ??= timer$(this.#clock, RETRY_MS).subscribe(() => this.#askAgain());
  }

  #askAgain(): void {
    for (const entry of this.#failed)
      if (entry.clients > 0) void this.#answerFor(entry, entry.clientsByOwner.users);
    this.#failed.clear();
    // One task for each: streams beyond the share of their owner may have millions together.
    const all = this.#scheduler.each(this.#refused, (client) => this.#joinLate(client));
    void all.then(() => {
      this.#retry = undefined;
      this.#retryLater();
    });
  }

  #joinLate(client: ResourceClient): void {
    if (this.#refusalOf(client) !== undefined) return;
    this.#refused.delete(client);
    const entry = this.#join(client);
    if (entry.atBackend === 'subscribed') this.#missed(client.uri);
    else entry.mayHaveMissed = true;
    void this.#answerFor(entry, [client.ownerId]);
  }

  #close(): void {
    this.#isClosed = true;
    this.#retry?.unsubscribe();
    this.#refused.clear();
    for (const entry of this.#entries.values()) this.#compareLater(entry);
  }

  /** Sends a request of the subscription. It ends with the conversation at the latest. */
  async #answerTo({ uri, callerId }: ResourceEntry, method: string): Promise<FinalEvent> {
    return answerOf(
      this.#conversation.exchange({ method, params: { uri }, callerId }),
      BACKEND_ANSWER_MS,
      this.#clock,
    );
  }
}
