// Interfaces of the sessions of legacy MCP clients: to the rest of the gateway, and between their own parts.
// Types only. Ownership: a table owns the sessions (client-sessions.ts), a session owns its binding, a dedicated binding
// owns its conversation, and with it a session or a process of the backend.

import type { Observable } from 'rxjs';
import type { Candidate } from '../../balancing/strategy.ts';
import type { ServerMessage } from '../../domain/client.ts';
import type { Clock } from '../../domain/clock.ts';
import type { GatewayError } from '../../domain/errors.ts';
import type { GatewayEvent } from '../../domain/events.ts';
import type { Answer, ExchangeEvent, ExchangeRequest } from '../../domain/exchange.ts';
import type { InstanceDefinition, InstanceState } from '../../domain/instance.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { Peer } from '../../domain/mcp.ts';
import type { BalancerPolicy } from '../../domain/policy.ts';
import type { TaskScheduler } from '../../domain/task-scheduler.ts';
import type { Upstream } from '../../transports/transport.ts';
import type { RetryBudget } from '../calls/retry.ts';
import type { QueuedPlace, WaitQueue } from '../calls/wait-queue.ts';
import type { Lease, LeaseRequest } from '../instances/leases.ts';
import type { ToolCache } from '../instances/tool-cache.ts';
import type { SharedSubscriptions } from '../sharing/shared-subscriptions.ts';
import type { LifeClock } from './client-session.machine.ts';

/** An instance as sessions see it; InstanceRef is one. */
export interface SessionInstance extends Candidate, QueuedPlace {
  readonly serverId: string;
  readonly template: string;
  readonly definition: Pick<InstanceDefinition, 'transport'>;
  readonly state: InstanceState;
  /** True when it takes new calls in this conversation; undefined: its own. */
  takes(upstream: Upstream | undefined): boolean;
  /** Replays; ends with `stopped`. */
  readonly state$: Observable<InstanceState>;
  /** What its backend said of itself: another object after each restart, nothing while it has no conversation. */
  readonly peer: Peer | null | undefined;
  readonly tools: Pick<ToolCache, 'isRepeatable'> | undefined;
  /** Its messages in its own conversation, outside of exchanges. Hot; goes on after a restart. */
  readonly messages$: Observable<ServerMessage>;
  /** Leases a conversation on behalf of one owner; see InstanceRef.lease. QUEUE_FULL. */
  lease(request: LeaseRequest): Lease;
  /** One exchange in its own conversation, counted, without a deadline. */
  exchange(request: ExchangeRequest): Observable<ExchangeEvent>;
  /** Exchanges under way there, in whichever conversation. */
  readonly inFlight: number;
  /** In its own conversation. */
  notify(method: string, params: JsonObject): void;
  /** An exchange that stays open without being a call; it is not counted. */
  listen(request: ExchangeRequest): Observable<ExchangeEvent>;
  /** Keeps the place of a call between two rounds while subscribed; see InstanceRef.reserve. QUEUE_FULL. */
  reserve(ownerId: string, goesOn: boolean, upstream: Upstream | undefined): Observable<never>;
}

/** The instances of one template; Group is one. */
export interface SessionGroup {
  readonly policy: BalancerPolicy;
  readonly pool: {
    readonly candidates: readonly SessionInstance[];
    pick(excluding?: ReadonlySet<string>): SessionInstance | undefined;
    /** Set while it gets no calls, although it is healthy. */
    ejectionOf(candidate: SessionInstance): object | undefined;
  };
  readonly queue: Pick<WaitQueue, 'offer' | 'withdraw'>;
}

/** Dependencies of sessions. */
export interface SessionDeps extends Clock {
  readonly fleet: {
    /** TEMPLATE_NOT_FOUND. */
    group(template: string): SessionGroup;
    members(
      template: string,
    ): readonly { readonly id: string; readonly state: InstanceState; readonly reason: string | null }[];
  };
  readonly dispatcher: {
    /** One call at one instance, in the given conversation or in the instance's own. See Dispatcher.exchange. */
    within(
      ref: SessionInstance,
      upstream: Upstream | undefined,
      request: ExchangeRequest,
      options?: { readonly goesOn?: boolean; readonly slow?: (() => void) | undefined },
    ): Observable<Answer>;
  };
  readonly subscriptions: Pick<SharedSubscriptions, 'subscribe'>;
  readonly budget: Pick<RetryBudget, 'take'>;
  /** The clock, for actors. */
  readonly clock: LifeClock;
  /** For tasks that come due in thousands. */
  readonly scheduler: TaskScheduler;
  readonly emit: (event: GatewayEvent) => void;
  /** False while the gateway closes: no session is opened, and no call of one begins. */
  readonly isAccepting: () => boolean;
}

/** URIs of resources. */
export interface ResourceUris {
  has(uri: string): boolean;
  keys(): Iterable<string>;
}

/** Receives the messages of a backend outside of exchanges: one session whose client listens. */
export interface SessionSubscriber {
  /** What it subscribed to. */
  readonly uris: ResourceUris;
  deliver(message: ServerMessage): void;
  /** The conversation is over. */
  lost(): void;
}

/** The binding of a session to its instance: a conversation of its own, or a part in the instance's. */
export interface Binding {
  readonly ref: SessionInstance;
  readonly peer: Peer;
  /** Its own conversation; undefined while it has a part in the instance's. */
  readonly upstream: Upstream | undefined;
  /** False once the conversation is over: the state that its backend kept of the session is gone. */
  readonly isIntact: boolean;
  /** Delivers until the returned function is called. */
  listen(listener: SessionSubscriber): () => void;
  /** Resolves when its streams are open at the backend, or will not be; undefined without a need to wait. */
  readonly opening: Promise<void> | undefined;
  /** A listener starts or stops to listen to this resource. Resolves when its backend knows, where that takes time. */
  wants(uri: string, isWanted: boolean): Promise<void> | undefined;
  /** A call begins here; it ends with `release`. */
  take(): void;
  release(): void;
  /** The session goes elsewhere: a conversation of its own is closed when its last call has ended. */
  retire(): void;
  /** The session is over: a conversation of its own is closed now. Resolves when nothing is left; never rejects. */
  close(): Promise<void>;
}

/** A place that is kept for a call of several exchanges; see Session.reserve of protocol/ports.ts. */
export interface SessionReservation {
  exchange(request: ExchangeRequest): Observable<Answer>;
  leave(): void;
}

/** Waits until a session has a binding for its requests. Exactly one of the two methods is called, once. */
export interface Waiter {
  /** True when only a conversation of the session's own will do. */
  readonly needsOwn: boolean;
  bound(binding: Binding): void;
  refused(error: GatewayError): void;
}

/** The session of a binding, as session-binding.ts uses it. */
export interface BindingOwner {
  readonly isListened: boolean;
  /** True while calls are under way at its binding, or a client is about to go on with one. */
  readonly isCalling: boolean;
  /** The session has this binding from now on. It has left the previous one when this returns. */
  moved(binding: Binding): void;
  /** Resolves when the change has come to the backend, where that takes time. */
  changed(uri: string, isWanted: boolean): Promise<void> | undefined;
  /** The session has ended; its binding is closed when this returns. */
  ended(reason: string): void;
}
