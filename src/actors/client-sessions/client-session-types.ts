// Interfaces of the sessions of legacy MCP clients: to the rest of the gateway, and between their own parts.
// Types only. Ownership: a table owns the sessions (client-sessions.ts), a session owns its binding, a dedicated binding
// owns its conversation, and with it a session or a process of the backend.

import type { ServerMessage } from '../../domain/client.ts';
import type { Clock } from '../../domain/clock.ts';
import type { GatewayError } from '../../domain/errors.ts';
import type { GatewayEvent } from '../../domain/events.ts';
import type { Peer } from '../../domain/mcp.ts';
import type { TaskScheduler } from '../../domain/task-scheduler.ts';
import type { Upstream } from '../../transports/transport.ts';
import type { Dispatcher } from '../calls/dispatcher.ts';
import type { Fleet } from '../fleet.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import type { SharedSubscriptions } from '../sharing/shared-subscriptions.ts';

/** Dependencies of sessions. */
export interface SessionDeps extends Clock {
  readonly fleet: Pick<Fleet, 'group' | 'members' | 'root'>;
  readonly dispatcher: Pick<Dispatcher, 'carry'>;
  readonly subscriptions: Pick<SharedSubscriptions, 'subscribe'>;
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
  readonly ref: InstanceRef;
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
