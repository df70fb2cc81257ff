// The instances of this node for calls that other nodes run: which conversations they may have, and until when.
// The attempts count here like those of this node. src/cluster speaks with the other nodes. Source: ADR 170.

import { defer, map, NEVER, Observable, of, take } from 'rxjs';
import { hostedAttempt } from '../../actors/calls/hosted-attempt.ts';
import type { Fleet } from '../../actors/fleet.ts';
import { sharedBy } from '../../actors/instances/dedicated-conversation.ts';
import { InstanceRef } from '../../actors/instances/instance-ref.ts';
import type { OpenedTransport } from '../../actors/instances/opened-transport.ts';
import type { SharedSubscription } from '../../actors/subscriptions/resource-subscriptions.ts';
import type {
  InstanceHost,
  InstanceWay,
  WantedConversation,
} from '../../cluster/channel/instances/instance-host.ts';
import type { ExchangeRequest } from '../../domain/calls/exchange.ts';
import type { ExchangeEvent } from '../../domain/calls/exchange-event.ts';
import { backendUnavailable, openingCancelled } from '../../domain/errors/backend-errors.ts';
import { fieldValue, JsonText } from '../../domain/json/json.ts';
import type { ByteBudget } from '../../domain/memory/held-bytes.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { Closed, Conversation } from '../../transports/transport.ts';

/** Interval at which other nodes get the numbers of calls that have changed, in ms. */
const LOAD_MS = 100;

export interface HostedInstancesDeps {
  readonly clock: Clock;
  readonly fleet: Fleet;
  readonly requestBytes: ByteBudget;
}

export class HostedInstances implements InstanceHost {
  readonly requestBytes: ByteBudget;
  readonly #deps: HostedInstancesDeps;
  /** One function for each instance that other nodes use: reports its calls if they have changed. One timer calls all. */
  readonly #loads = new Set<() => void>();
  #stopLoads = (): void => {};

  constructor(deps: HostedInstancesDeps) {
    this.#deps = deps;
    this.requestBytes = deps.requestBytes;
  }

  has(template: string, id: string): boolean {
    return this.#deps.fleet.find(template, id) !== undefined;
  }

  /**
   * Opens a conversation once the instance is up. Undefined: the instance has no conversations of single clients.
   * Rejects when it does not start, or does not run here.
   */
  async open(wanted: WantedConversation, signal: AbortSignal) {
    const { template, id, ownerId, profile, isShared, way } = wanted;
    const ref = this.#deps.fleet.find(template, id);
    if (!(ref instanceof InstanceRef) || ref.isElsewhere) throw notUp('its node does not run it');
    await untilUp(ref, signal);
    if (profile === undefined) return this.#shared(ref, way);
    const shared = isShared ? sharedBy(profile.capabilities) : {};
    const use = ref.use({ owner: { id: ownerId }, profile, ...shared });
    const abort = (): void => use.end();
    signal.addEventListener('abort', abort);
    try {
      const conversation = await use.conversation.opening;
      if (conversation === undefined) return undefined;
      const nothing = { isDraining$: NEVER, otherCalls$: NEVER };
      return {
        ...this.#hosted(ref, conversation, way),
        ...nothing,
        closed$: conversation.closed$,
        release: use.end,
      };
    } catch (thrown) {
      use.end();
      throw thrown;
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  #shared(ref: InstanceRef, way: InstanceWay) {
    const { opened } = ref;
    if (opened === undefined) throw notUp(ref.reason ?? `it is ${ref.state}`);
    const state$ = new Observable<void>((subscriber) => ref.watch(() => subscriber.next()));
    const closed$ = new Observable<Closed>((subscriber) =>
      ref.watch(() => {
        if (ref.opened === opened && ref.state !== 'unhealthy') return;
        subscriber.next({ reason: ref.reason ?? 'it starts again', expected: false });
      }),
    );
    const hosted = this.#hosted(ref, opened.transport, way);
    const subscriptions = new Map<string, SharedSubscription>();
    return {
      ...hosted,
      exchange: (request: ExchangeRequest) =>
        subscriptionOf(request, opened, subscriptions) ?? hosted.exchange(request),
      isDraining$: state$.pipe(map(() => ref.state === 'draining')),
      otherCalls$: this.#changesOf(() => ref.calls.active - way.calls),
      closed$: closed$.pipe(take(1)),
      release: () => {
        for (const subscription of subscriptions.values()) subscription.release();
      },
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
        this.#stopLoads = this.#deps.clock.background.every(LOAD_MS, () => {
          for (const each of this.#loads) each();
        });
      this.#loads.add(look);
      return () => {
        this.#loads.delete(look);
        if (this.#loads.size === 0) this.#stopLoads();
      };
    });
  }

  #hosted(ref: InstanceRef, conversation: Conversation, way: InstanceWay) {
    const group = this.#deps.fleet.group(ref.template);
    const count = (change: 1 | -1): void => {
      way.calls += change;
    };
    // Requests of the gateway itself are not counted.
    const exchange = (request: ExchangeRequest): Observable<ExchangeEvent> =>
      request.caller === undefined
        ? conversation.exchange(request)
        : hostedAttempt(group, ref, conversation, request, count, this.#deps.clock);
    return { conversation, exchange };
  }
}

/**
 * A subscription of another node, for one of its owners, to a resource of a legacy backend is one of several in the
 * conversation that all share: it ends at the backend with the last one. Undefined for any other request.
 */
function subscriptionOf(
  { method, params, caller }: ExchangeRequest,
  { feed, handshake }: OpenedTransport,
  subscriptions: Map<string, SharedSubscription>,
): Observable<ExchangeEvent> | undefined {
  const isSubscribe = method === 'resources/subscribe';
  if (handshake.era === 'modern') return undefined;
  if (!isSubscribe && method !== 'resources/unsubscribe') return undefined;
  return defer(() => {
    const uri = String(fieldValue(params?.uri));
    const key = `${caller ?? ''}\n${uri}`;
    subscriptions.get(key)?.release();
    subscriptions.delete(key);
    if (!isSubscribe) return of({ kind: 'result' as const, result: JsonText.ofValue({}) });
    const subscription = feed.subscribe(uri, caller);
    subscriptions.set(key, subscription);
    // The other node tries again by itself: a refused one must not take a place later.
    subscription.answer.catch(() => {
      subscription.release();
      if (subscriptions.get(key) === subscription) subscriptions.delete(key);
    });
    return subscription.answer;
  });
}

/** Resolves when the instance is up; rejects once it is neither up nor starting. */
function untilUp(ref: InstanceRef, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    let stop = (): void => {};
    const settle = (finish: () => void): void => {
      signal.removeEventListener('abort', cancel);
      queueMicrotask(() => stop()); // `watch` may call at once
      finish();
    };
    const cancel = (): void => settle(() => reject(openingCancelled()));
    signal.addEventListener('abort', cancel);
    stop = ref.watch(() => {
      const { state, opened } = ref;
      if (opened !== undefined && (state === 'healthy' || state === 'draining')) settle(resolve);
      else if (!ref.isStarting) settle(() => reject(notUp(ref.reason ?? `it is ${state}`)));
    });
  });
}

function notUp(reason: string) {
  return backendUnavailable(reason, { delivered: 'no' });
}
