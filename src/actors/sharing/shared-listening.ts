// Updates of resources of modern backends: one subscription per instance for all clients that want any, however many they
// are, because each one takes a connection. What is wanted grows: the next subscription is opened before the last one is
// given up, so that nothing is missed in between. One object per fleet.

import { filter, Observable, Subject, Subscription, timer } from 'rxjs';
import type { ServerNotification } from '../../domain/client.ts';
import type { ExchangeEvent, ExchangeRequest } from '../../domain/exchange.ts';
import { RPC } from '../../domain/jsonrpc.ts';
import { LIMITS } from '../../domain/limits.ts';
import { META } from '../../domain/mcp.ts';
import { withoutMeta } from '../../domain/meta.ts';
import { isAboutOneOf } from '../../domain/resource-uris.ts';
import { backOffMs } from '../instances/instance-statistics.ts';

/** What it needs of an instance. */
export interface ListeningHost {
  /** Opens a subscription; its events are those of an exchange. */
  listen(request: ExchangeRequest): Observable<ExchangeEvent>;
}

/** Wait for an acknowledgement, in ms; a subscription without one counts as acknowledged then. */
const ACKNOWLEDGED_MS = 5_000;
/** Resources of one instance that it is asked for at a time; while more are wanted, each client gets its part of them. */
const MOST_RESOURCES = 10_000;
/** Subscriptions of one instance need no jitter. */
const MIDDLE = 0.5;

export class SharedListening {
  readonly #boards = new Map<ListeningHost, Board>();

  /** How many instances are listened to. */
  get size(): number {
    return this.#boards.size;
  }

  /**
   * Cold: the updates of these resources while the instance has the session that it has now. Subscribed to again, with a
   * back-off, whenever the backend ends it. Never errors, never completes. Source: MCP 2026-07-28
   * basic/patterns/subscriptions.
   */
  updates(host: ListeningHost, uris: ReadonlySet<string>): Observable<ServerNotification> {
    return new Observable((subscriber) => {
      const board = this.#boards.get(host) ?? this.#open(host);
      subscriber.add(
        board.updates$.pipe(filter(({ params }) => isAboutOneOf(params.uri, uris))).subscribe(subscriber),
      );
      const forget = board.want(uris);
      return () => {
        forget();
        if (board.isEmpty) this.#boards.delete(host);
      };
    });
  }

  #open(host: ListeningHost): Board {
    const board = new Board(host);
    this.#boards.set(host, board);
    return board;
  }
}

/** One subscription at the backend. */
interface Listening {
  readonly uris: ReadonlySet<string>;
  readonly subscription: Subscription;
}

/** What is wanted of one instance, and what it was asked for. */
class Board {
  readonly updates$ = new Subject<ServerNotification>();
  readonly #host: ListeningHost;
  /** How many want each resource, those that it is not asked for included. */
  readonly #wanted = new Map<string, number>();
  /** What each client wants. */
  readonly #clients = new Set<{ readonly uris: ReadonlySet<string> }>();
  #active: Listening | undefined;
  /** Asked for, and not acknowledged yet. */
  #next: Listening | undefined;
  #wait: Subscription | undefined;
  #failures = 0;
  #isRefused = false;

  constructor(host: ListeningHost) {
    this.#host = host;
  }

  get isEmpty(): boolean {
    return this.#clients.size === 0;
  }

  /** Until the returned function is called, once. */
  want(uris: ReadonlySet<string>): () => void {
    const client = { uris };
    this.#clients.add(client);
    for (const uri of uris) this.#wanted.set(uri, (this.#wanted.get(uri) ?? 0) + 1);
    this.#settle();
    return () => {
      if (this.#clients.delete(client)) this.#forget(uris);
    };
  }

  #forget(uris: ReadonlySet<string>): void {
    for (const uri of uris) {
      const count = this.#wanted.get(uri) ?? 0;
      if (count > 1) this.#wanted.set(uri, count - 1);
      else this.#wanted.delete(uri);
    }
    if (this.isEmpty) this.#close();
    else this.#settle(); // others may have waited for the room
  }

  /** Asks for what is wanted and not subscribed to; what nobody wants any more goes with the next time. */
  #settle(): void {
    if (this.#wanted.size === 0 || this.#next !== undefined || this.#wait !== undefined || this.#isRefused)
      return;
    const { uris } = this.#active ?? { uris: new Set() };
    const chosen = this.#chosen();
    if (![...chosen].every((uri) => uris.has(uri))) this.#listen(chosen);
  }

  /** What it is to be asked for: everything, or, where that is too much, one resource of each client in turn. */
  #chosen(): ReadonlySet<string> {
    if (this.#wanted.size <= MOST_RESOURCES) return new Set(this.#wanted.keys());
    const chosen = new Set<string>();
    for (let left = [...this.#clients].map(({ uris }) => uris.values()); ; ) {
      const more = left.filter((uris) => {
        const { done, value } = uris.next();
        if (done !== true && chosen.size < MOST_RESOURCES) chosen.add(value);
        return done !== true;
      });
      if (more.length === 0 || chosen.size === MOST_RESOURCES) return chosen;
      left = more;
    }
  }

  #listen(uris: ReadonlySet<string>): void {
    const listening: Listening = { uris, subscription: new Subscription() };
    this.#next = listening; // before subscribing: it may be answered in there
    const params = { notifications: { resourceSubscriptions: [...uris] } };
    const { subscription } = listening;
    subscription.add(timer(ACKNOWLEDGED_MS).subscribe(() => this.#acknowledged(listening)));
    subscription.add(
      this.#host.listen({ method: 'subscriptions/listen', params }).subscribe({
        next: (event) => this.#hear(listening, event),
        error: () => this.#ended(listening), // it is tried again; calls tell what is wrong with the instance
        complete: () => this.#ended(listening),
      }),
    );
  }

  #hear(listening: Listening, event: ExchangeEvent): void {
    if (event.kind === 'error' && event.error.code === RPC.methodNotFound) this.#isRefused = true;
    if (event.kind !== 'notification') return;
    this.#acknowledged(listening);
    if (event.method === 'notifications/resources/updated') this.updates$.next(withoutSubscription(event));
  }

  #acknowledged(listening: Listening): void {
    if (listening !== this.#next) return;
    this.#next = undefined;
    this.#active?.subscription.unsubscribe();
    this.#active = listening;
    this.#failures = 0;
    this.#settle();
  }

  #ended(listening: Listening): void {
    if (listening === this.#active) this.#active = undefined;
    else if (listening === this.#next) this.#next = undefined;
    else return;
    listening.subscription.unsubscribe();
    this.#failures += 1;
    this.#wait?.unsubscribe();
    this.#wait = timer(backOffMs(this.#failures, LIMITS.restartLongestMs, MIDDLE)).subscribe(() => {
      this.#wait = undefined;
      this.#settle();
    });
  }

  #close(): void {
    for (const one of [this.#active, this.#next]) one?.subscription.unsubscribe();
    this.#wait?.unsubscribe();
    this.#active = undefined;
    this.#next = undefined;
    this.#wait = undefined;
  }
}

/** The id is that of the gateway's own subscription. */
function withoutSubscription(notification: ServerNotification): ServerNotification {
  return { ...notification, params: withoutMeta(notification.params, [META.subscriptionId]) };
}
