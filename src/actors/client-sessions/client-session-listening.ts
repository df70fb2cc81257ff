// Asks a modern backend for news: one `subscriptions/listen` on behalf of all sessions that listen at an instance. It asks
// anew when they want other resources, and when the backend ended it. Who is told what is shared-binding.ts's.

import { Subscription } from 'rxjs';
import type { ServerMessage } from '../../domain/client.ts';
import type { ExchangeEvent } from '../../domain/exchange.ts';
import type { JsonObject } from '../../domain/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import { META, type Peer } from '../../domain/mcp.ts';
import { withoutMeta } from '../../domain/meta.ts';
import { announcesChanges, NOTICED_LISTS } from '../../domain/notices.ts';
import type { SessionDeps, SessionInstance, Uris } from './client-session-types.ts';

/** Wait before a backend is asked again that ended what it was asked for, in ms: doubled each time until it agrees. */
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 30_000;

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';

export interface ListeningOptions {
  readonly ref: Pick<SessionInstance, 'listen'>;
  readonly peer: Pick<Peer, 'capabilities'>;
  readonly alarm: SessionDeps['alarm'];
  /** Read whenever it asks. */
  readonly uris: Pick<Uris, 'keys'>;
  readonly deliver: (message: ServerMessage) => void;
}

/**
 * Asks in the microtask after it was made, so that many who come at once are one question. A new question takes over when
 * the backend agreed to it: until then the old one is listened to, so that nothing is lost in between.
 */
export class Listening {
  readonly #options: ListeningOptions;
  /** The question that is listened to, and the one that is to take its place. */
  #current: Subscription | undefined;
  #next: Subscription | undefined;
  #isDue = false;
  #isClosed = false;
  #retryMs = FIRST_RETRY_MS;
  #disarm: (() => void) | undefined;
  /** Of those who wait until the backend has agreed to what is wanted now. */
  #agreement: { readonly promise: Promise<void>; readonly end: () => void } | undefined;

  constructor(options: ListeningOptions) {
    this.#options = options;
    this.refresh();
  }

  /** The wanted resources may have changed. */
  refresh(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    queueMicrotask(() => {
      this.#isDue = false;
      if (!this.#isClosed) this.#ask();
    });
  }

  /** Resolves when the backend has agreed to what is wanted now, or will not, at the latest after LIMITS.courtesyMs. */
  get agreed(): Promise<void> | undefined {
    if (this.#isClosed || (!this.#isDue && this.#next === undefined)) return undefined;
    this.#agreement ??= this.#newAgreement();
    return this.#agreement.promise;
  }

  close(): void {
    this.#isClosed = true;
    this.#agreement?.end();
    this.#disarm?.();
    this.#current?.unsubscribe();
    this.#next?.unsubscribe();
  }

  #ask(): void {
    this.#disarm?.();
    this.#next?.unsubscribe();
    const notifications = this.#wanted();
    if (Object.keys(notifications).length === 0) {
      this.#current?.unsubscribe();
      this.#current = undefined;
      this.#next = undefined;
      this.#agreement?.end();
      return;
    }
    const request = { method: 'subscriptions/listen', params: { notifications } };
    const question = new Subscription();
    this.#next = question; // before subscribing: it may be answered in there
    const ended = (isRefused: boolean): void => this.#ended(question, isRefused);
    question.add(
      this.#options.ref.listen(request).subscribe({
        next: (event) => {
          if (event.kind === 'error') ended(true);
          else this.#heard(question, event);
        },
        error: () => ended(false),
        complete: () => ended(false),
      }),
    );
  }

  #heard(question: Subscription, event: ExchangeEvent): void {
    if (event.kind !== 'notification') return;
    if (this.#next === question) {
      this.#current?.unsubscribe();
      this.#current = question;
      this.#next = undefined;
      this.#retryMs = FIRST_RETRY_MS;
      if (!this.#isDue) this.#agreement?.end();
    }
    if (this.#current !== question || event.method === ACKNOWLEDGED) return;
    this.#options.deliver({ ...event, params: withoutMeta(event.params, [META.subscriptionId]) });
  }

  /** A backend that refuses is asked again when somebody wants something else. */
  #ended(question: Subscription, isRefused: boolean): void {
    if (this.#next === question) this.#next = undefined;
    else if (this.#current === question) this.#current = undefined;
    else return;
    question.unsubscribe();
    // The one that is to take its place may still be agreed to.
    if (!this.#isDue && this.#next === undefined) this.#agreement?.end();
    if (isRefused || this.#isClosed || this.#next !== undefined) return;
    this.#disarm?.();
    this.#disarm = this.#options.alarm(this.#retryMs, () => this.#ask());
    this.#retryMs = Math.min(this.#retryMs * 2, LONGEST_RETRY_MS);
  }

  #newAgreement() {
    const { promise, resolve } = Promise.withResolvers<void>();
    const end = (): void => {
      this.#agreement = undefined;
      disarm();
      resolve();
    };
    const disarm = this.#options.alarm(LIMITS.courtesyMs, end);
    return { promise, end };
  }

  /** Source: MCP 2026-07-28 basic/patterns/subscriptions; each kind is told only if it is asked for. */
  #wanted(): JsonObject {
    const { capabilities } = this.#options.peer;
    const uris = [...this.#options.uris.keys()];
    const lists = NOTICED_LISTS.filter((list) => announcesChanges(capabilities, list));
    const notifications: JsonObject = Object.fromEntries(lists.map((list) => [`${list}ListChanged`, true]));
    return uris.length === 0 ? notifications : { ...notifications, resourceSubscriptions: uris };
  }
}
