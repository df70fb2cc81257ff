// The resource subscriptions in one conversation with a legacy backend: it gets `resources/subscribe` for the first client, and
// `resources/unsubscribe` after the last one. feed.ts distributes the updates.

import { Subscription } from 'rxjs';
import type { FinalEvent } from '../../domain/calls/exchange-event.ts';
import { backendUnavailable, notConnected } from '../../domain/errors/error-catalogue.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { timer$ } from '../../domain/time/clock-streams.ts';
import { SerialQueue } from '../../domain/time/serial-queue.ts';
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
/** Most resources of one conversation, with a backend of either era. */
export const MAX_RESOURCES = 10_000;

/** One resource: the number of its clients, and its state at the backend. */
class ResourceEntry {
  clients = 0;
  /** One request at a time, so that the backend gets them in order. */
  readonly requests = new SerialQueue();
  /** The answer to `resources/subscribe`; undefined when the backend has to be asked. */
  answer: Promise<FinalEvent> | undefined;
  /** The backend has agreed. */
  isSubscribed = false;
}

/** The resource subscriptions in one conversation. */
export class ResourceSubscriptions {
  readonly #clock: Pick<Clock, 'alarm'>;
  readonly #conversation: Pick<Conversation, 'exchange' | 'closed$'>;
  readonly #resumed: (uri: string) => void;
  readonly #entries = new Map<string, ResourceEntry>();
  readonly #retries = new Subscription();

  /** `resumed` is called when the backend agrees to a request that had failed: updates before may have been missed. */
  constructor(
    conversation: Pick<Conversation, 'exchange' | 'closed$'>,
    clock: Pick<Clock, 'alarm'>,
    resumed: (uri: string) => void,
  ) {
    this.#clock = clock;
    this.#resumed = resumed;
    this.#conversation = conversation;
    conversation.closed$.subscribe(() => this.#retries.unsubscribe());
  }

  /** Subscribes the backend to `uri` until every part is released. */
  subscribe(uri: string): SharedSubscription {
    const entry = this.#entries.get(uri) ?? new ResourceEntry();
    if (!this.#entries.has(uri) && this.#entries.size >= MAX_RESOURCES) {
      const answer = Promise.reject(backendUnavailable('it has too many subscriptions', { delivered: 'no' }));
      answer.catch(() => undefined);
      return { answer, release: () => undefined };
    }
    this.#entries.set(uri, entry);
    entry.clients += 1;
    const part = new Subscription(() => {
      entry.clients -= 1;
      if (entry.clients === 0) void entry.requests.take(() => this.#unsubscribe(uri, entry));
    });
    return { answer: this.#answerFor(uri, entry), release: () => part.unsubscribe() };
  }

  #answerFor(uri: string, entry: ResourceEntry): Promise<FinalEvent> {
    if (entry.answer !== undefined) return entry.answer;
    const answer = entry.requests.take(() => this.#subscribe(uri, entry));
    entry.answer = answer;
    answer.catch(() => {
      if (entry.answer === answer) entry.answer = undefined;
      this.#retries.add(timer$(this.#clock, RETRY_MS).subscribe(() => this.#askAgain(uri, entry)));
    });
    return answer;
  }

  #askAgain(uri: string, entry: ResourceEntry): void {
    if (entry.clients === 0) return;
    const resumed = ({ kind }: FinalEvent): void => void (kind === 'result' && this.#resumed(uri));
    this.#answerFor(uri, entry).then(resumed, () => undefined);
  }

  async #subscribe(uri: string, entry: ResourceEntry): Promise<FinalEvent> {
    if (entry.clients === 0) entry.answer = undefined; // a client that comes before the failure is seen asks again
    if (entry.clients === 0 || this.#retries.closed) throw notConnected();
    const answer = await this.#ask(uri, 'resources/subscribe');
    entry.isSubscribed = answer.kind === 'result';
    return answer;
  }

  /** Whatever the answer is, a later client subscribes again. */
  async #unsubscribe(uri: string, entry: ResourceEntry): Promise<void> {
    if (entry.clients > 0) return;
    const { isSubscribed } = entry;
    entry.isSubscribed = false;
    entry.answer = undefined;
    if (isSubscribed) await this.#ask(uri, 'resources/unsubscribe').catch(() => undefined);
    if (entry.clients === 0 && this.#entries.get(uri) === entry) this.#entries.delete(uri);
  }

  /** Asks the backend; the request ends with the conversation at the latest. */
  #ask(uri: string, method: string): Promise<FinalEvent> {
    return answerOf(this.#conversation.exchange({ method, params: { uri } }), ANSWER_MS, this.#clock);
  }
}
