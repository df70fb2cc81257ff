// The resource subscriptions in one conversation with a legacy backend: it gets `resources/subscribe` for the first client, and
// `resources/unsubscribe` after the last one. What clients want is compared with what the backend has when there is room to ask
// it: a client that has left by then costs no request (ADR 357). feed.ts distributes the updates.

import type { Subscription } from 'rxjs';
import type { FinalEvent } from '../../domain/calls/exchange-event.ts';
import { backendUnavailable, notConnected } from '../../domain/errors/error-catalogue.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { timer$ } from '../../domain/time/clock-streams.ts';
import { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import { answerOf } from '../../transports/own-exchange.ts';
import type { Conversation } from '../../transports/transport.ts';

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
export const ANSWER_MS = 30_000;
/** Wait before a failed request is repeated, in ms. */
const RETRY_MS = 5_000;
/** Most requests that a backend has not answered; others wait. */
const MAX_ASKED = 64;
/** Most resources of one conversation, with a backend of either era. */
export const MAX_RESOURCES = 10_000;

/** For the subscriptions of a conversation. */
export interface SubscriptionDeps extends Pick<Clock, 'alarm'> {
  /** Default: one of its own. */
  readonly scheduler?: Pick<TaskScheduler, 'each'> | undefined;
}

/** One resource: the number of its clients, and its state at the backend. */
class ResourceEntry {
  readonly uri: string;
  clients = 0;
  /** The answer to `resources/subscribe`; undefined when no client waits for one. */
  answer: Promise<FinalEvent> | undefined;
  /** The same until it is there: the backend has to be asked. */
  awaited: PromiseWithResolvers<FinalEvent> | undefined;
  /** The backend has agreed. */
  isSubscribed = false;
  /** One request at a time, so that the backend gets them in order. */
  isAsked = false;
  /** The request before has failed. */
  hasFailed = false;

  constructor(uri: string) {
    this.uri = uri;
  }
}

/** The resource subscriptions in one conversation. */
export class ResourceSubscriptions {
  readonly #clock: Pick<Clock, 'alarm'>;
  readonly #scheduler: Pick<TaskScheduler, 'each'>;
  readonly #conversation: Pick<Conversation, 'exchange'>;
  readonly #resumed: (uri: string) => void;
  readonly #entries = new Map<string, ResourceEntry>();
  /** Those whose clients may want something else than the backend has, in order of arrival. */
  readonly #due = new Set<ResourceEntry>();
  #isComparing = false;
  #asked = 0;
  /** Those whose requests have failed, until the next time that all of them are asked again. */
  readonly #failed = new Set<ResourceEntry>();
  #retry: Subscription | undefined;
  #isClosed = false;

  /** `resumed` is called when the backend agrees to a request that had failed: updates before may have been missed. */
  constructor(
    conversation: Pick<Conversation, 'exchange' | 'closed$'>,
    { alarm, scheduler = new TaskScheduler() }: SubscriptionDeps,
    resumed: (uri: string) => void,
  ) {
    this.#clock = { alarm };
    this.#scheduler = scheduler;
    this.#resumed = resumed;
    this.#conversation = conversation;
    conversation.closed$.subscribe(() => this.#close());
  }

  /** Subscribes the backend to `uri` until every part is released. */
  subscribe(uri: string): SharedSubscription {
    const entry = this.#entries.get(uri) ?? new ResourceEntry(uri);
    if (!this.#entries.has(uri) && this.#entries.size >= MAX_RESOURCES) {
      const answer = Promise.reject(backendUnavailable('it has too many subscriptions', { delivered: 'no' }));
      answer.catch(() => undefined);
      return { answer, release: () => undefined };
    }
    this.#entries.set(uri, entry);
    entry.clients += 1;
    let isReleased = false;
    const release = (): void => {
      if (isReleased) return;
      isReleased = true;
      entry.clients -= 1;
      if (entry.clients === 0) this.#compareLater(entry);
    };
    return { answer: this.#answerFor(entry), release };
  }

  #answerFor(entry: ResourceEntry): Promise<FinalEvent> {
    if (entry.answer !== undefined) return entry.answer;
    entry.awaited = Promise.withResolvers<FinalEvent>();
    entry.answer = entry.awaited.promise;
    entry.answer.catch(() => undefined);
    this.#compareLater(entry);
    return entry.answer;
  }

  #compareLater(entry: ResourceEntry): void {
    this.#due.add(entry);
    this.#compare();
  }

  /** A task for each. */
  #compare(): void {
    if (this.#isComparing || this.#due.size === 0 || this.#asked >= MAX_ASKED) return;
    this.#isComparing = true;
    void this.#scheduler.each(this.#takeDue(), (entry) => this.#settle(entry));
  }

  *#takeDue(): Generator<ResourceEntry> {
    for (const entry of this.#due) {
      if (this.#asked >= MAX_ASKED) break;
      this.#due.delete(entry);
      yield entry;
    }
    this.#isComparing = false;
  }

  /** Asks the backend for what the clients want, unless it has that. */
  #settle(entry: ResourceEntry): void {
    const { clients, awaited, isSubscribed, isAsked } = entry;
    if (isAsked) return; // compared again after the answer
    if (clients === 0 && !isSubscribed) this.#entries.delete(entry.uri);
    if (awaited !== undefined && (clients === 0 || this.#isClosed)) this.#fail(entry, notConnected());
    else if (awaited !== undefined) void this.#ask(entry, () => this.#subscribe(entry, awaited));
    else if (clients === 0 && isSubscribed) void this.#ask(entry, () => this.#unsubscribe(entry));
  }

  async #ask(entry: ResourceEntry, ask: () => Promise<void>): Promise<void> {
    entry.isAsked = true;
    this.#asked += 1;
    await ask();
    entry.isAsked = false;
    this.#asked -= 1;
    this.#compareLater(entry);
  }

  async #subscribe(entry: ResourceEntry, { resolve }: PromiseWithResolvers<FinalEvent>): Promise<void> {
    const event = await this.#answerTo(entry, 'resources/subscribe').catch((thrown) =>
      this.#fail(entry, thrown),
    );
    if (event === undefined) return;
    entry.awaited = undefined;
    resolve(event);
    entry.isSubscribed = event.kind === 'result';
    if (entry.hasFailed && entry.isSubscribed) this.#resumed(entry.uri);
    entry.hasFailed = false;
  }

  /** Whatever the answer is, a later client subscribes again. */
  async #unsubscribe(entry: ResourceEntry): Promise<void> {
    entry.isSubscribed = false;
    entry.answer = undefined;
    if (!this.#isClosed) await this.#answerTo(entry, 'resources/unsubscribe').catch(() => undefined);
  }

  #fail(entry: ResourceEntry, thrown: unknown): void {
    entry.awaited?.reject(thrown);
    entry.awaited = undefined;
    entry.answer = undefined;
    if (entry.clients === 0 || this.#isClosed) return;
    entry.hasFailed = true;
    this.#failed.add(entry);
    this.#retry ??= timer$(this.#clock, RETRY_MS).subscribe(() => this.#askAgain());
  }

  #askAgain(): void {
    this.#retry = undefined;
    for (const entry of this.#failed) if (entry.clients > 0) void this.#answerFor(entry);
    this.#failed.clear();
  }

  #close(): void {
    this.#isClosed = true;
    this.#retry?.unsubscribe();
    for (const entry of this.#entries.values()) if (!entry.isAsked) this.#compareLater(entry);
  }

  /** The request ends with the conversation at the latest. */
  async #answerTo({ uri }: ResourceEntry, method: string): Promise<FinalEvent> {
    return answerOf(this.#conversation.exchange({ method, params: { uri } }), ANSWER_MS, this.#clock);
  }
}
