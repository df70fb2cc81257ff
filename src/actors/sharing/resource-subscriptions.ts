// The resource subscriptions in one conversation with a legacy backend, for all clients that share it: the backend gets
// `resources/subscribe` for the first client, and `resources/unsubscribe` after the last one. They end with the conversation. The
// feed of the conversation (feed.ts) distributes the updates.

import { defer, Subscription, timer } from 'rxjs';
import { backendUnavailable, notConnected } from '../../domain/error-catalogue.ts';
import { asGatewayError, type GatewayError } from '../../domain/errors.ts';
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
interface ResourceEntry {
  readonly uri: string;
  clients: number;
  /** The last answer to `resources/subscribe`. */
  answer?: FinalEvent | undefined;
  /** A request is under way; one at a time, so that the backend gets them in order. */
  isAsking: boolean;
  /** The callers that wait for the next answer. */
  waiting?: PromiseWithResolvers<FinalEvent> | undefined;
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
    if (this.#isOver) return failedSubscription(notConnected());
    const entry = this.#entries.get(uri) ?? this.#add(uri);
    if (entry === undefined) {
      return failedSubscription(backendUnavailable('it has too many subscriptions', { delivered: 'no' }));
    }
    entry.clients += 1;
    const answer = answerFor(entry);
    this.#update(entry);
    let isHeld = true;
    const release = (): void => {
      if (!isHeld) return;
      isHeld = false;
      entry.clients -= 1;
      this.#update(entry);
    };
    return { answer, release };
  }

  #add(uri: string): ResourceEntry | undefined {
    if (this.#entries.size >= MOST_RESOURCES) return undefined;
    const entry: ResourceEntry = { uri, clients: 0, isAsking: false };
    this.#entries.set(uri, entry);
    return entry;
  }

  /** Sends the next request that the backend needs, if any; called again after its answer. */
  #update(entry: ResourceEntry): void {
    if (entry.isAsking || this.#isOver) return;
    if (entry.clients > 0) {
      if (entry.answer === undefined) void this.#subscribe(entry);
    } else if (entry.answer?.kind === 'result') void this.#unsubscribe(entry);
    else this.#forget(entry);
  }

  async #subscribe(entry: ResourceEntry): Promise<void> {
    try {
      entry.answer = await this.#ask(entry, 'resources/subscribe');
      takeWaiting(entry)?.resolve(entry.answer);
    } catch (thrown) {
      takeWaiting(entry)?.reject(asGatewayError(thrown));
      if (entry.clients > 0) {
        this.#retries.add(timer(RETRY_MS).subscribe(() => this.#retry(entry)));
        return;
      }
    }
    this.#update(entry);
  }

  /** An entry that was forgotten meanwhile may have a successor for the same resource. */
  #retry(entry: ResourceEntry): void {
    if (entry.clients > 0) this.#update(entry);
  }

  async #unsubscribe(entry: ResourceEntry): Promise<void> {
    entry.answer = undefined; // whatever the answer is, a later client subscribes again
    await this.#ask(entry, 'resources/unsubscribe').catch(() => undefined);
    this.#update(entry);
  }

  /** The request is sent at once. It ends with the conversation. */
  async #ask(entry: ResourceEntry, method: string): Promise<FinalEvent> {
    entry.isAsking = true;
    const request = { method, params: { uri: entry.uri } };
    try {
      return await answerOf(
        defer(() => this.#conversation.exchange(request)),
        ANSWER_MS,
      );
    } finally {
      entry.isAsking = false;
    }
  }

  #forget(entry: ResourceEntry): void {
    this.#entries.delete(entry.uri);
    takeWaiting(entry)?.reject(notConnected());
  }

  #end(): void {
    this.#isOver = true;
    this.#retries.unsubscribe();
    for (const entry of this.#entries.values()) {
      this.#forget(entry);
    }
  }
}

function answerFor(entry: ResourceEntry): Promise<FinalEvent> {
  if (entry.answer !== undefined) return Promise.resolve(entry.answer);
  entry.waiting ??= Promise.withResolvers<FinalEvent>();
  return unread(entry.waiting.promise);
}

function takeWaiting(entry: ResourceEntry): ResourceEntry['waiting'] {
  const { waiting } = entry;
  entry.waiting = undefined;
  return waiting;
}

function failedSubscription(error: GatewayError): SharedSubscription {
  return { answer: unread(Promise.reject(error)), release: () => undefined };
}

/** Marks a rejection of the promise as handled: its receiver may never await it. */
function unread<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}
