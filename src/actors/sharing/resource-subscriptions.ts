// The resource subscriptions in one conversation with a legacy backend, for all clients that share it: the backend gets
// `resources/subscribe` for the first client, and `resources/unsubscribe` after the last one. They end with the conversation. The
// feed of the conversation (feed.ts) distributes the updates.

import { defer, filter, Subscription, take, throwError, throwIfEmpty, timeout, timer } from 'rxjs';
import { backendTimeout, backendUnavailable, notConnected } from '../../domain/error-catalogue.ts';
import { asGatewayError, type GatewayError } from '../../domain/errors.ts';
import { type FinalEvent, isFinal } from '../../domain/exchange.ts';
import type { Upstream } from '../../transports/transport.ts';

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
  parts: number;
  /** The last answer to `resources/subscribe`. */
  answer?: FinalEvent | undefined;
  /** The request under way; one at a time, so that the backend gets them in order. */
  request?: Subscription | undefined;
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
    const end = () => this.#end();
    conversation.closed$.subscribe({ next: end, error: end, complete: end });
  }

  /** Subscribes the backend to `uri` until every part is released. */
  subscribe(uri: string): SharedSubscription {
    if (this.#isOver) return refused(notConnected());
    const entry = this.#entries.get(uri) ?? this.#add(uri);
    if (entry === undefined) {
      return refused(backendUnavailable('it has too many subscriptions', { delivered: 'no' }));
    }
    entry.parts += 1;
    const answer = answerOf(entry);
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

  #add(uri: string): ResourceEntry | undefined {
    if (this.#entries.size >= MOST_RESOURCES) return undefined;
    const entry: ResourceEntry = { uri, parts: 0 };
    this.#entries.set(uri, entry);
    return entry;
  }

  /** Sends the next request that the backend needs, if any; called again after its answer. */
  #update(entry: ResourceEntry): void {
    if (entry.request !== undefined || this.#isOver) return;
    if (entry.parts > 0) {
      if (entry.answer === undefined) this.#subscribe(entry);
    } else if (entry.answer?.kind === 'result') this.#unsubscribe(entry);
    else this.#forget(entry);
  }

  #subscribe(entry: ResourceEntry): void {
    this.#ask(entry, 'resources/subscribe', {
      answered: (answer) => {
        entry.answer = answer;
        takeWaiting(entry)?.resolve(answer);
        this.#update(entry);
      },
      failed: (error) => {
        takeWaiting(entry)?.reject(error);
        if (entry.parts === 0) this.#update(entry);
        else this.#retries.add(timer(RETRY_MS).subscribe(() => this.#retry(entry)));
      },
    });
  }

  /** An entry that was forgotten meanwhile may have a successor for the same resource. */
  #retry(entry: ResourceEntry): void {
    if (entry.parts > 0) this.#update(entry);
  }

  #unsubscribe(entry: ResourceEntry): void {
    entry.answer = undefined; // whatever it answers: a later client subscribes anew
    const ended = () => this.#update(entry);
    this.#ask(entry, 'resources/unsubscribe', { answered: ended, failed: ended });
  }

  #ask(
    entry: ResourceEntry,
    method: string,
    { answered, failed }: { answered: (event: FinalEvent) => void; failed: (error: GatewayError) => void },
  ): void {
    const request = new Subscription();
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
          entry.request = undefined;
          answered(event);
        },
        error: (thrown: unknown) => {
          entry.request = undefined;
          failed(asGatewayError(thrown));
        },
      }),
    );
  }

  #forget(entry: ResourceEntry): void {
    this.#entries.delete(entry.uri);
    takeWaiting(entry)?.reject(notConnected());
  }

  /** The conversation is over. */
  #end(): void {
    this.#isOver = true;
    this.#retries.unsubscribe();
    for (const entry of this.#entries.values()) {
      entry.request?.unsubscribe();
      this.#forget(entry);
    }
  }
}

function answerOf(entry: ResourceEntry): Promise<FinalEvent> {
  if (entry.answer !== undefined) return Promise.resolve(entry.answer);
  entry.waiting ??= Promise.withResolvers<FinalEvent>();
  return unread(entry.waiting.promise);
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
