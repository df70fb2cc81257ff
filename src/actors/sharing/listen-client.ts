// The client of `subscriptions/listen` towards backends of the modern era (ADR 70). It opens the next subscription before it
// gives the last one up, so that nothing is missed in between, and repeats a subscription that ended, with a back-off. Its
// users decide what is wanted and which clients get a message.
// Source: MCP 2026-07-28 basic/patterns/subscriptions.

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
  /** Takes a message of the subscription, without the id of that. The acknowledgement is not delivered. */
  readonly deliver: (notification: ServerNotification) => void;
  /** The latest subscription is acknowledged, and the one before is given up. */
  readonly acknowledged?: () => void;
  /** A subscription has ended. `isRefused`: the backend does not know the method; nothing is repeated. */
  readonly ended?: (isRefused: boolean) => void;
  /** The back-off is over: subscribes again with `ask`, if anything is still wanted. */
  readonly retry: () => void;
  /** A subscription that lasted so long, in ms, starts the back-off anew. Default 0: once it was acknowledged. */
  readonly forgivenMs?: number;
  /** Monotonic clock in ms. */
  readonly now?: () => number;
}

/** Wait for an acknowledgement, in ms; a subscription without one counts as acknowledged then. */
const ACKNOWLEDGED_MS = 5_000;
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
/** Subscriptions of one instance need no jitter. */
const MIDDLE = 0.5;

/** One subscription at the backend. */
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
  /** The subscription that is heard, and the one that takes its place once it is acknowledged. */
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

  /** True while a subscription is not acknowledged. */
  get isPending(): boolean {
    return this.#next !== undefined;
  }

  /** True when asking makes sense: nothing is under way, and the backend knows the method. */
  get isReady(): boolean {
    return !this.isPending && this.#wait === undefined && !this.#isRefused;
  }

  /** Subscribes to these notifications. A subscription that is not acknowledged yet is given up for it. */
  ask(notifications: JsonObject): void {
    this.#endWait();
    this.#next?.unsubscribe();
    this.#isRefused = false;
    const attempt = new ListenAttempt(this.#now());
    this.#next = attempt; // before subscribing: the answer may come in there
    attempt.add(timer(ACKNOWLEDGED_MS).subscribe(() => this.#acknowledge(attempt)));
    attempt.add(
      this.#options.listen({ method: 'subscriptions/listen', params: { notifications } }).subscribe({
        next: (event) => this.#take(attempt, event),
        error: () => this.#end(attempt), // calls tell what is wrong with the instance
        complete: () => this.#end(attempt),
      }),
    );
  }

  /** Ends every subscription; `ask` begins anew. */
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
    // The id is that of the gateway's own subscription.
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

/** What is to be subscribed to for the lists that a backend announces changes of. */
export function listNotifications({ capabilities }: Pick<Peer, 'capabilities'>): JsonObject {
  return Object.fromEntries(announcedLists(capabilities).map((list) => [`${list}ListChanged`, true]));
}

/**
 * Cold: changes of the lists for which a modern backend announces them. After a subscription had to be repeated all of them
 * count as changed, because changes in between were not heard. Never errors; completes at once where there is nothing to
 * subscribe to, and when the backend refuses the method.
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
