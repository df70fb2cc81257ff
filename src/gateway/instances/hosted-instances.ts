// The instances of this node for calls that other nodes run: which conversations they may have, and until when.
// The attempts count here like those of this node. src/cluster speaks with the other nodes. Source: ADR 170.

import { defer, firstValueFrom, fromEvent, map, NEVER, Observable, of, takeUntil } from 'rxjs';
import { hostedAttempt } from '../../actors/calls/hosted-attempt.ts';
import type { Fleet } from '../../actors/fleet/fleet.ts';
import { sharedBy } from '../../actors/instances/dedicated-conversation.ts';
import { InstanceRef } from '../../actors/instances/instance-ref.ts';
import type { Feed } from '../../actors/subscriptions/feed.ts';
import type { ClientSubscription } from '../../actors/subscriptions/resource-subscriptions.ts';
import type {
  InstanceHost,
  NodeLink,
  WantedConversation,
} from '../../cluster/channel/instances/instance-host.ts';
import type { ExchangeRequest } from '../../domain/calls/exchange.ts';
import type { ExchangeEvent } from '../../domain/calls/exchange-event.ts';
import { backendUnavailable, openingCancelled } from '../../domain/errors/backend-errors.ts';
import type { InstanceState } from '../../domain/instances/instance.ts';
import { fieldValue, JsonText } from '../../domain/json/json.ts';
import { SUBSCRIBE, UNSUBSCRIBE } from '../../domain/mcp/mcp.ts';
import type { UserShares } from '../../domain/memory/user-shares.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { Closed, Conversation } from '../../transports/transport.ts';

/** Interval at which other nodes get the numbers of calls that have changed, in ms. */
const LOAD_MS = 100;

/** Opens conversations for other nodes, and tells these how busy its instances are. */
export class HostedInstances implements InstanceHost {
  readonly requestBytes: UserShares;
  readonly #clock: Clock;
  readonly #fleet: Fleet;
  /** One function for each instance that other nodes use: reports its calls if they have changed. One timer calls all. */
  readonly #loads = new Set<() => void>();
  #stopLoads = (): void => {};

  constructor(clock: Clock, fleet: Fleet, requestBytes: UserShares) {
    this.#clock = clock;
    this.#fleet = fleet;
    this.requestBytes = requestBytes;
  }

  has(template: string, id: string): boolean {
    return this.#fleet.find(template, id) !== undefined;
  }

  /**
   * Opens a conversation once the instance is up. Undefined: the instance has no dedicated conversations.
   * Throws when it does not start, or does not run here.
   */
  async open(wanted: WantedConversation, signal: AbortSignal) {
    const { template, id, ownerId, profile, isShared, link } = wanted;
    const ref = this.#fleet.find(template, id);
    if (!(ref instanceof InstanceRef) || ref.isElsewhere) throw notUp('its node does not run it');
    await untilUp(ref, signal);
    if (profile === undefined) return this.#shared(ref, link);
    const shared = isShared ? sharedBy(profile.capabilities) : {};
    const use = ref.use({ ownerId, profile, ...shared });
    const abort = (): void => use.end();
    signal.addEventListener('abort', abort);
    try {
      const conversation = await use.conversation.opening;
      if (conversation === undefined) return undefined;
      const hosted = this.#hosted(ref, conversation, link);
      const subscriptions = new Subscriptions(isShared ? use.conversation.feed : undefined);
      return {
        ...hosted,
        exchange: subscriptions.exchange(hosted.exchange),
        duty$: NEVER,
        otherCalls$: NEVER,
        closed$: conversation.closed$,
        release: () => {
          subscriptions.release();
          use.end();
        },
      };
    } catch (thrown) {
      use.end();
      throw thrown;
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  #shared(ref: InstanceRef, link: NodeLink) {
    const { opened } = ref;
    if (opened === undefined) throw notUp(ref.reason ?? `it is ${ref.state}`);
    const state$ = new Observable<InstanceState>((subscriber) =>
      ref.watch((state) => subscriber.next(state)),
    );
    const over$ = ref.until$(() => ref.opened !== opened || ref.state === 'unhealthy');
    const hosted = this.#hosted(ref, opened.transport, link);
    const subscriptions = new Subscriptions(opened.feed);
    return {
      ...hosted,
      exchange: subscriptions.exchange(hosted.exchange),
      duty$: state$.pipe(map((state) => ({ isDraining: state === 'draining', isRenewing: ref.isRenewing }))),
      otherCalls$: this.#changesOf(() => ref.calls.active - link.calls),
      closed$: over$.pipe(
        map((): Closed => ({ reason: ref.reason ?? 'it starts again', isExpected: false })),
      ),
      release: () => subscriptions.release(),
    };
  }

  /** The number that `read` returns, whenever it has changed. Cold; 0 at first. */
  #changesOf(read: () => number): Observable<number> {
    return new Observable((subscriber) => {
      let last = 0;
      const look = (): void => {
        const now = read();
        if (now !== last) subscriber.next(now);
        last = now;
      };
      if (this.#loads.size === 0)
        this.#stopLoads = this.#clock.background.every(LOAD_MS, () => {
          for (const each of this.#loads) each();
        });
      this.#loads.add(look);
      return () => {
        this.#loads.delete(look);
        if (this.#loads.size === 0) this.#stopLoads();
      };
    });
  }

  #hosted(ref: InstanceRef, conversation: Conversation, link: NodeLink) {
    const group = this.#fleet.templates.group(ref.template);
    const count = (change: 1 | -1): void => {
      link.calls += change;
    };
    // Requests of the gateway itself are not counted. A call without a caller, of an embedding program, has a longest time.
    const exchange = (request: ExchangeRequest): Observable<ExchangeEvent> =>
      request.callerId === undefined && request.longestMs === undefined
        ? conversation.exchange(request)
        : hostedAttempt(group, ref, { request, conversation }, count, this.#clock);
    return { conversation, exchange };
  }
}

/**
 * The subscriptions of another node, for each of its owners, to resources of a legacy backend: each is one of several in
 * a conversation that all share, and ends at the backend with the last one.
 */
class Subscriptions {
  readonly #feed: Feed | undefined;
  readonly #subscriptions = new Map<string, ClientSubscription>();

  /** `feed`: of the shared conversation; undefined where the other node does not share it. */
  constructor(feed: Feed | undefined) {
    this.#feed = feed?.isOfLegacy ? feed : undefined;
  }

  /** Sends requests by `send`, except subscriptions. */
  exchange(send: Conversation['exchange']): Conversation['exchange'] {
    const feed = this.#feed;
    if (feed === undefined) return send;
    return (request) => {
      const { method } = request;
      if (method === SUBSCRIBE) return defer(() => this.#subscribe(feed, request));
      return method === UNSUBSCRIBE ? defer(() => this.#unsubscribe(request)) : send(request);
    };
  }

  release(): void {
    for (const subscription of this.#subscriptions.values()) subscription.release();
    this.#subscriptions.clear();
  }

  #subscribe(feed: Feed, request: ExchangeRequest): Promise<ExchangeEvent> {
    const key = this.#end(request);
    const subscription = feed.subscribe(uriOf(request), request.callerId);
    this.#subscriptions.set(key, subscription);
    // The other node tries again by itself, and does not end what was refused: that takes no place.
    const refused = (): void => {
      subscription.release();
      if (this.#subscriptions.get(key) === subscription) this.#subscriptions.delete(key);
    };
    subscription.answer.then(({ kind }) => kind === 'error' && refused(), refused);
    return subscription.answer;
  }

  #unsubscribe(request: ExchangeRequest): Observable<ExchangeEvent> {
    this.#end(request);
    return of({ kind: 'result' as const, result: JsonText.ofValue({}) });
  }

  /** Ends the subscription of its owner to the resource, if there is one; its key. */
  #end(request: ExchangeRequest): string {
    const key = `${request.callerId ?? ''}\n${uriOf(request)}`;
    this.#subscriptions.get(key)?.release();
    this.#subscriptions.delete(key);
    return key;
  }
}

function uriOf({ params }: ExchangeRequest): string {
  return String(fieldValue(params?.uri));
}

/** Resolves when the instance is up; rejects once it is neither up nor starting. */
async function untilUp(ref: InstanceRef, signal: AbortSignal): Promise<void> {
  const isUp = () => ref.opened !== undefined && (ref.state === 'healthy' || ref.state === 'draining');
  const known$ = ref.until$(() => isUp() || !ref.isStarting);
  const isKnown = await firstValueFrom(
    known$.pipe(
      map(() => true),
      takeUntil(fromEvent(signal, 'abort')),
    ),
    { defaultValue: false },
  );
  if (!isKnown) throw openingCancelled();
  if (!isUp()) throw notUp(ref.reason ?? `it is ${ref.state}`);
}

function notUp(reason: string) {
  return backendUnavailable(reason, { delivered: 'no' });
}
