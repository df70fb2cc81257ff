// The resource subscriptions in one conversation with a legacy backend, for all clients that share it: the backend gets
// `resources/subscribe` for the first client, and `resources/unsubscribe` after the last one. They end with the conversation. The
// feed of the conversation (feed.ts) distributes the updates.

import { Subscription, timer } from 'rxjs';
import { backendUnavailable, notConnected } from '../../domain/error-catalogue.ts';
import { asGatewayError } from '../../domain/errors.ts';
import type { FinalEvent } from '../../domain/exchange.ts';
import type { Upstream } from '../../transports/transport.ts';
import { answerOf } from '../calls/requests.ts';

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

/** One resource: the number of its clients, and its state at the backend. */
class ResourceEntry {
  readonly uri: string;
  clients = 0;
  /** The answer to `resources/subscribe`; undefined until there is one. */
  answer: FinalEvent | undefined;
  /** Settles with the answer, or with the failure of the present request. */
  answering = unread();
  /** A request is under way; one at a time, so that the backend gets them in order. */
  isAsking = false;

  constructor(uri: string) {
    this.uri = uri;
  }
}

export class ResourceSubscriptions {
  readonly #conversation: Pick<Upstream, 'exchange' | 'closed$'>;
  readonly #entries = new Map<string, ResourceEntry>();
  readonly #retries = new Subscription();
  #isOver = false;

  constructor(conversation: Pick<Upstream, 'exchange' | 'closed$'>) {
    this.#conversation = conversation;
    conversation.closed$.subscribe(() => this.#end());
  }

  /** Subscribes the backend to `uri` until every part is released. */
  subscribe(uri: string): SharedSubscription {
    const entry = this.#entries.get(uri) ?? new ResourceEntry(uri);
    const { promise: answer, reject } = entry.answering;
    if (this.#isOver) reject(notConnected());
    else if (!this.#entries.has(uri) && this.#entries.size >= MOST_RESOURCES)
      reject(backendUnavailable('it has too many subscriptions', { delivered: 'no' }));
    else this.#entries.set(uri, entry);
    entry.clients += 1;
    this.#update(entry);
    const part = new Subscription(() => {
      entry.clients -= 1;
      this.#update(entry);
    });
    return { answer, release: () => part.unsubscribe() };
  }

  /** Sends the next request that the backend needs, if any; called again after its answer. */
  #update(entry: ResourceEntry): void {
    const { uri, clients, answer, isAsking } = entry;
    if (isAsking || this.#entries.get(uri) !== entry) return;
    if (clients > 0 && answer === undefined) void this.#subscribe(entry);
    else if (clients === 0 && answer?.kind === 'result') void this.#unsubscribe(entry);
    else if (clients === 0) this.#entries.delete(uri);
  }

  async #subscribe(entry: ResourceEntry): Promise<void> {
    const { answering } = entry;
    try {
      entry.answer = await this.#ask(entry, 'resources/subscribe');
      answering.resolve(entry.answer);
    } catch (thrown) {
      entry.answering = unread();
      answering.reject(asGatewayError(thrown));
      if (entry.clients > 0) {
        this.#retries.add(timer(RETRY_MS).subscribe(() => this.#update(entry)));
        return;
      }
    }
    this.#update(entry);
  }

  async #unsubscribe(entry: ResourceEntry): Promise<void> {
    entry.answer = undefined; // whatever the answer is, a later client subscribes again
    entry.answering = unread();
    await this.#ask(entry, 'resources/unsubscribe').catch(() => undefined);
    this.#update(entry);
  }

  /** The request is sent at once. It ends with the conversation. */
  async #ask(entry: ResourceEntry, method: string): Promise<FinalEvent> {
    entry.isAsking = true;
    try {
      return await answerOf(this.#conversation.exchange({ method, params: { uri: entry.uri } }), ANSWER_MS);
    } finally {
      entry.isAsking = false;
    }
  }

  #end(): void {
    this.#isOver = true;
    this.#retries.unsubscribe();
    for (const { answering } of this.#entries.values()) answering.reject(notConnected());
    this.#entries.clear();
  }
}

/** A promise whose rejection is handled: its receivers may never await it. */
function unread(): PromiseWithResolvers<FinalEvent> {
  const answering = Promise.withResolvers<FinalEvent>();
  answering.promise.catch(() => undefined);
  return answering;
}
