// The subscription of a feed at a modern backend, for all clients together (ADR 70): to the lists of which the backend
// announces changes, and to the resources that clients want. A new subscription is opened before the previous one ends,
// so that no message is missed; one that ended is renewed with a back-off. Source: MCP 2026-07-28
// basic/patterns/subscriptions.

import { firstValueFrom, merge, Subject, Subscription, tap } from 'rxjs';
import type { ExchangeEvent } from '../../domain/calls/exchange-event.ts';
import type { JsonObject } from '../../domain/json/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import { listNotice, type Notification } from '../../domain/mcp/client.ts';
import { RPC } from '../../domain/mcp/jsonrpc.ts';
import {
  announcesChanges,
  LISTEN,
  type ListField,
  META,
  NOTICED_LISTS,
  withoutMeta,
} from '../../domain/mcp/mcp.ts';
import { backOffMs } from '../../domain/time/back-off.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { timer$ } from '../../domain/time/clock-streams.ts';
import type { Conversation } from '../../transports/transport.ts';

/** The longest wait for an acknowledgement, in ms; afterwards the subscription counts as acknowledged. */
const ACKNOWLEDGED_MS = 5_000;
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
/** A subscription that was open for this long resets the back-off, in ms. */
export const BACK_OFF_FORGIVEN_MS = 30_000;

/** One subscription at the backend. `ending`: ends it. */
interface Listening {
  readonly uris: ReadonlySet<string>;
  readonly ending: Subscription;
  /** True once the backend has sent something in this subscription. */
  isAnswered: boolean;
}

/**
 * What is under way towards the next subscription: nothing, a wait before it, or its opening. `refused`: the backend does
 * not know the method, and is not asked again.
 */
type Renewal =
  | { readonly kind: 'none' | 'refused' }
  | { readonly kind: 'waiting'; readonly timer: Subscription }
  | { readonly kind: 'opening'; readonly listening: Listening };
const NONE: Renewal = { kind: 'none' };

interface BackendSubscriptionOptions {
  /** The resources to subscribe to; undefined without clients. */
  readonly wanted: () => ReadonlySet<string> | undefined;
  /** Gets messages without the subscription id. */
  readonly deliver: (notification: Notification) => void;
  /** Called when the backend is subscribed to resources again, after updates may have been missed. */
  readonly missed: () => void;
  readonly clock: Clock;
}

/** Subscribes to the changes of a modern backend with `subscriptions/listen`. Its owner must stop it. */
export class BackendSubscription {
  readonly #clock: Clock;
  readonly #exchange: Conversation['exchange'];
  readonly #lists: readonly ListField[];
  readonly #wanted: () => ReadonlySet<string> | undefined;
  readonly #deliver: (notification: Notification) => void;
  readonly #missed: () => void;
  /** The acknowledged subscription. It ends when the next one is acknowledged. */
  #current: Listening | undefined;
  #renewal = NONE;
  #failures = 0;
  /** True when the backend has refused resources: a lost subscription is then renewed for the lists first. */
  #isSelective = false;
  /** True after a time without any subscription, in which lists may have changed. */
  #hasMissedLists = false;
  /** True after a time without a subscription to wanted resources, of which updates may have been missed. */
  #hasMissedUpdates = false;
  #isScheduled = false;
  readonly #settled = new Subject<void>();

  constructor(
    conversation: Pick<Conversation, 'handshake' | 'exchange'>,
    { wanted, deliver, missed, clock }: BackendSubscriptionOptions,
  ) {
    this.#clock = clock;
    const { capabilities } = conversation.handshake;
    this.#exchange = (request) => conversation.exchange(request);
    this.#lists = NOTICED_LISTS.filter((list) => announcesChanges(capabilities, list));
    this.#wanted = wanted;
    this.#deliver = deliver;
    this.#missed = missed;
  }

  /**
   * Reports that the wanted resources may have changed. Subscribes in the next microtask, so that simultaneous
   * changes make one subscription.
   */
  refresh(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      this.#update();
    });
  }

  /**
   * True when the backend is or will be subscribed to all of these resources, or there is nothing to
   * subscribe to.
   */
  covers(uris: Iterable<string>): boolean {
    const wanted = [...uris];
    const known = (this.#next ?? this.#current)?.uris;
    if (known === undefined) return wanted.length === 0 && this.#lists.length === 0;
    return wanted.every((uri) => known.has(uri));
  }

  /**
   * Resolves when the backend has acknowledged all changes, or will not; undefined when none waits for that. After
   * `withinMs` it resolves in any case: updates until then count as missed.
   */
  untilSettled(withinMs?: number): Promise<void> | undefined {
    if (this.#isSettled) return undefined;
    if (withinMs === undefined) return firstValueFrom(this.#settled);
    const late$ = timer$(this.#clock, withinMs).pipe(tap(() => (this.#hasMissedUpdates = true)));
    return firstValueFrom(merge(this.#settled, late$));
  }

  /** Ends all subscriptions until the next `refresh`. */
  stop(): void {
    this.#current?.ending.unsubscribe();
    this.#current = undefined;
    if (this.#renewal.kind !== 'refused') this.#renew(NONE);
    this.#settle();
  }

  /**
   * Subscribes if something is missing. Resources that are no longer wanted are dropped with the next subscription,
   * or when none is wanted any more.
   */
  #update(): void {
    const uris = this.#renewal.kind === 'none' ? this.#wanted() : undefined;
    const isForLists = this.#isSelective && this.#current === undefined && this.#lists.length > 0;
    if (uris !== undefined) this.#subscribeTo(isForLists ? new Set() : uris);
    this.#settle();
  }

  #subscribeTo(uris: ReadonlySet<string>): void {
    const known = this.#current?.uris;
    const isEmpty = uris.size === 0;
    if (isEmpty && this.#lists.length === 0) this.stop();
    else if (known === undefined || (isEmpty && known.size > 0) || [...uris].some((uri) => !known.has(uri)))
      this.#listen(uris);
  }

  #listen(uris: ReadonlySet<string>): void {
    const notifications: JsonObject = {
      ...Object.fromEntries(this.#lists.map((list) => [`${list}ListChanged`, true])),
      ...(uris.size > 0 && { resourceSubscriptions: [...uris] }),
    };
    const listening = { uris, ending: new Subscription(), isAnswered: false };
    this.#renewal = { kind: 'opening', listening }; // before subscribing: the answer may come synchronously
    listening.ending.add(timer$(this.#clock, ACKNOWLEDGED_MS).subscribe(() => this.#acknowledge(listening)));
    listening.ending.add(
      this.#exchange({ method: LISTEN, params: { notifications } }).subscribe({
        next: (event) => this.#take(listening, event),
        error: () => this.#end(listening), // calls report what is wrong with the instance
        complete: () => this.#end(listening),
      }),
    );
  }

  #take(listening: Listening, event: ExchangeEvent): void {
    if (event.kind === 'error') {
      this.#isSelective ||= listening.uris.size > 0;
      this.#end(listening, event.error.code === RPC.methodNotFound);
    }
    if (event.kind !== 'notification') return;
    this.#acknowledge(listening);
    if (!listening.isAnswered) this.#reportMissed(listening);
    listening.isAnswered = true;
    // The id belongs to the subscription of the gateway.
    if (event.method !== ACKNOWLEDGED)
      this.#deliver({ ...event, params: withoutMeta(event.params, [META.subscriptionId]) });
  }

  #acknowledge(listening: Listening): void {
    if (listening !== this.#next) return;
    this.#renewal = NONE;
    this.#current?.ending.unsubscribe();
    this.#current = listening;
    listening.ending.add(
      timer$(this.#clock, BACK_OFF_FORGIVEN_MS).subscribe(() => {
        this.#failures = 0;
      }),
    );
    if (this.#hasMissedLists) for (const list of this.#lists) this.#deliver(listNotice(list));
    this.#hasMissedLists = false;
    this.#update();
  }

  /**
   * Reports missed updates after a real message of the backend, not after ACKNOWLEDGED_MS: a backend that refuses
   * late would otherwise cause an update of each resource with each attempt.
   */
  #reportMissed(listening: Listening): void {
    const isLast = listening === this.#current && this.#next === undefined;
    if (!isLast || !this.#hasMissedUpdates || listening.uris.size === 0) return;
    this.#hasMissedUpdates = false;
    this.#missed();
  }

  #end(listening: Listening, isRefused = false): void {
    if (listening === this.#current) this.#current = undefined;
    else if (listening === this.#next) this.#renewal = NONE;
    else return;
    listening.ending.unsubscribe();
    this.#hasMissedLists ||= this.#current === undefined;
    this.#hasMissedUpdates ||= listening.uris.size > 0;
    this.#failures += 1;
    if (this.#next === undefined) this.#renew(isRefused ? { kind: 'refused' } : this.#waitToRetry());
    this.#settle();
  }

  #waitToRetry(): Renewal {
    const waitMs = backOffMs(this.#failures, LIMITS.restartLongestMs); // without jitter: one instance has few subscriptions
    const timer = timer$(this.#clock, waitMs).subscribe(() => {
      this.#renewal = NONE;
      this.#update();
    });
    return { kind: 'waiting', timer };
  }

  /** Ends what is under way for the next subscription, and puts `renewal` in its place. */
  #renew(renewal: Renewal): void {
    if (this.#renewal.kind === 'waiting') this.#renewal.timer.unsubscribe();
    if (this.#renewal.kind === 'opening') this.#renewal.listening.ending.unsubscribe();
    this.#renewal = renewal;
  }

  /** The subscription that replaces the current one once it is acknowledged. */
  get #next(): Listening | undefined {
    return this.#renewal.kind === 'opening' ? this.#renewal.listening : undefined;
  }

  get #isSettled(): boolean {
    return !this.#isScheduled && this.#next === undefined;
  }

  #settle(): void {
    if (this.#isSettled) this.#settled.next();
  }
}
