// The client of `subscriptions/listen` at modern backends (ADR 70). It opens a new subscription before it ends the previous one,
// so that no message is missed, and renews a subscription that ended, with a back-off. Its users choose the notifications and
// distribute the messages. Source: MCP 2026-07-28 basic/patterns/subscriptions.

import { EMPTY, Observable, Subscription, timer } from 'rxjs';
import type { ServerNotification } from '../../domain/client.ts';
import type { ExchangeEvent, ExchangeRequest } from '../../domain/exchange.ts';
import type { JsonObject } from '../../domain/json.ts';
import { RPC } from '../../domain/jsonrpc.ts';
import { LIMITS } from '../../domain/limits.ts';
import {
  announcesChanges,
  changedList,
  type ListField,
  META,
  NOTICED_LISTS,
  type Peer,
  withoutMeta,
} from '../../domain/mcp.ts';
import { backOffMs } from '../instances/instance-statistics.ts';

export interface ListenClientOptions {
  /** Opens a subscription; its events are those of an exchange. */
  readonly listen: (request: ExchangeRequest) => Observable<ExchangeEvent>;
  /** Takes a message of the subscription, without the subscription id. The acknowledgement is not delivered. */
  readonly deliver: (notification: ServerNotification) => void;
  /** The latest subscription is acknowledged, and the previous one has ended. */
  readonly acknowledged?: () => void;
  /** A subscription has ended. `isRefused`: the backend does not know the method; nothing is repeated. */
  readonly ended?: (isRefused: boolean) => void;
  /** The back-off is over: the user calls `ask` again if it still needs the subscription. */
  readonly retry: () => void;
  /** A subscription of at least this duration, in ms, resets the back-off. Default 0: as soon as it was acknowledged. */
  readonly forgivenMs?: number;
  /** Monotonic clock in ms. */
  readonly now?: () => number;
}

/** Longest wait for an acknowledgement, in ms; afterwards the subscription counts as acknowledged. */
const ACKNOWLEDGED_MS = 5_000;
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
/** The back-off without jitter, which subscriptions of one instance do not need. */
const MIDDLE = 0.5;

class ListenAttempt extends Subscription {
  readonly openedAtMs: number;
  isAcknowledged = false;

  constructor(openedAtMs: number) {
    super();
    this.openedAtMs = openedAtMs;
  }
}

/** Its owner stops it. */
export class ListenClient {
  readonly #options: ListenClientOptions;
  readonly #now: () => number;
  /** The acknowledged subscription, and the one that replaces it once it is acknowledged. */
  #current: ListenAttempt | undefined;
  #next: ListenAttempt | undefined;
  #wait: Subscription | undefined;
  #failures = 0;
  #isRefused = false;

  constructor(options: ListenClientOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  /** True while an acknowledged subscription is open. */
  get isOpen(): boolean {
    return this.#current !== undefined;
  }

  /** True while a subscription waits for its acknowledgement. */
  get isPending(): boolean {
    return this.#next !== undefined;
  }

  /** True when `ask` is useful: no subscription is pending or delayed, and the backend knows the method. */
  get isReady(): boolean {
    return !this.isPending && this.#wait === undefined && !this.#isRefused;
  }

  /** Subscribes to these notifications. Replaces a pending subscription. */
  ask(notifications: JsonObject): void {
    this.#endWait();
    this.#next?.unsubscribe();
    this.#isRefused = false;
    const attempt = new ListenAttempt(this.#now());
    this.#next = attempt; // before subscribing: the answer may come synchronously
    attempt.add(timer(ACKNOWLEDGED_MS).subscribe(() => this.#acknowledge(attempt)));
    attempt.add(
      this.#options.listen({ method: 'subscriptions/listen', params: { notifications } }).subscribe({
        next: (event) => this.#take(attempt, event),
        error: () => this.#end(attempt), // calls report what is wrong with the instance
        complete: () => this.#end(attempt),
      }),
    );
  }

  /** Ends all subscriptions, until the next `ask`. */
  stop(): void {
    this.#endWait();
    this.#current?.unsubscribe();
    this.#next?.unsubscribe();
    this.#current = undefined;
    this.#next = undefined;
  }

  #take(attempt: ListenAttempt, event: ExchangeEvent): void {
    if (event.kind === 'error') this.#end(attempt, event.error.code === RPC.methodNotFound);
    if (event.kind !== 'notification') return;
    this.#acknowledge(attempt);
    if (event.method === ACKNOWLEDGED) return;
    // The id belongs to the subscription of the gateway.
    this.#options.deliver({ ...event, params: withoutMeta(event.params, [META.subscriptionId]) });
  }

  #acknowledge(attempt: ListenAttempt): void {
    if (attempt !== this.#next) return;
    attempt.isAcknowledged = true;
    this.#next = undefined;
    this.#current?.unsubscribe();
    this.#current = attempt;
    this.#options.acknowledged?.();
  }

  #end(attempt: ListenAttempt, isRefused = false): void {
    if (attempt === this.#current) this.#current = undefined;
    else if (attempt === this.#next) this.#next = undefined;
    else return;
    attempt.unsubscribe();
    const { forgivenMs = 0, ended, retry } = this.#options;
    if (attempt.isAcknowledged && this.#now() - attempt.openedAtMs >= forgivenMs) this.#failures = 0;
    this.#failures += 1;
    this.#isRefused = isRefused;
    if (!isRefused && !this.isPending) {
      this.#endWait();
      this.#wait = timer(backOffMs(this.#failures, LIMITS.restartLongestMs, MIDDLE)).subscribe(() => {
        this.#wait = undefined;
        retry();
      });
    }
    ended?.(isRefused);
  }

  #endWait(): void {
    this.#wait?.unsubscribe();
    this.#wait = undefined;
  }
}

/** The notifications for the lists of which a backend announces changes. */
export function listNotifications({ capabilities }: Pick<Peer, 'capabilities'>): JsonObject {
  return Object.fromEntries(announcedLists(capabilities).map((list) => [`${list}ListChanged`, true]));
}

/**
 * Cold: changes of the lists of which a modern backend announces changes. After a renewed subscription all of them count as
 * changed, because changes meanwhile were missed. Never errors; completes when there is nothing to subscribe to, and when the
 * backend refuses the method.
 */
export function listChanges(
  peer: Peer,
  { listen, now }: Required<Pick<ListenClientOptions, 'listen' | 'now'>>,
): Observable<ListField> {
  const lists = peer.era === 'modern' ? announcedLists(peer.capabilities) : [];
  if (lists.length === 0) return EMPTY;
  const notifications = listNotifications(peer);
  return new Observable((subscriber) => {
    let isRepeated = false;
    const client = new ListenClient({
      listen,
      now,
      forgivenMs: LIMITS.restartForgivenMs,
      acknowledged: () => {
        if (isRepeated) for (const list of lists) subscriber.next(list);
      },
      deliver: ({ method }) => {
        const list = changedList(method);
        if (list !== undefined) subscriber.next(list);
      },
      ended: (isRefused) => {
        if (isRefused) subscriber.complete();
      },
      retry: () => {
        isRepeated = true;
        client.ask(notifications);
      },
    });
    client.ask(notifications);
    return () => client.stop();
  });
}

function announcedLists(capabilities: Peer['capabilities']): ListField[] {
  return NOTICED_LISTS.filter((list) => announcesChanges(capabilities, list));
}
