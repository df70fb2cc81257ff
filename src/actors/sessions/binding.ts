// The binding of a session to its instance: a conversation that is leased for the session (dedicated), or one that
// sessions share: that of the instance, or of a process for clients with equal extensions. binder.ts opens it.

import type { Subscription } from 'rxjs';
import { isNetworked, TRANSPORT_TRAITS } from '../../domain/instances/transport-kinds.ts';
import type { JsonObject } from '../../domain/json/json.ts';
import type { ServerMessage } from '../../domain/mcp/client.ts';
import { RPC } from '../../domain/mcp/jsonrpc.ts';
import { type Handshake, isCustomNotice } from '../../domain/mcp/mcp.ts';
import { greetedOf, type SessionValue } from '../../domain/sessions/session-value.ts';
import type { Conversation } from '../../transports/transport.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import type { Lease } from '../instances/leases.ts';
import { MessageBuffer } from '../message-buffer.ts';
import type { Feed, FeedClient, ResourceUris } from '../subscriptions/feed.ts';

/**
 * A session's use of one instance; sessions that share the conversation of the instance share the binding. A
 * dedicated conversation ends with the session, or with the last call after the session moved to another instance.
 */
export class Binding {
  readonly ref: InstanceRef;
  readonly handshake: Handshake;
  /** The leased conversation; undefined while the session shares that of the instance. */
  readonly conversation: Conversation | undefined;
  /** Other sessions use the same conversation. */
  readonly isShared: boolean;
  /** The messages and subscriptions of a shared conversation, or of a modern one; undefined for other dedicated ones. */
  readonly feed: Feed | undefined;
  /** What the value of a session keeps of the binding, and of the first backend. */
  readonly place: NonNullable<SessionValue['binding']>;
  readonly greeted: NonNullable<SessionValue['greeted']>;
  readonly #lease: Lease | undefined;
  readonly #buffer: MessageBuffer<ServerMessage> | undefined;
  #listener: FeedClient<ServerMessage> | undefined;

  /** `lease`: of an open conversation. */
  constructor(ref: InstanceRef, handshake: Handshake, lease?: Lease) {
    this.ref = ref;
    this.handshake = handshake;
    this.#lease = lease;
    this.conversation = lease?.conversation.inner;
    this.isShared = lease?.conversation.isShared ?? true;
    this.place = { instanceId: ref.id, serverId: ref.serverId, isShared: this.isShared };
    this.greeted = greetedOf(handshake);
    if (lease === undefined) this.feed = ref.feed;
    else if (handshake.era === 'modern' || this.isShared) this.feed = lease.conversation.feed;
    else if (!isNetworked(ref.definition)) {
      // A legacy process sends messages at any time; the stream of an HTTP backend is open only for a listener.
      this.#buffer = new MessageBuffer(refuseQuestion);
      this.#receive();
    }
  }

  /** True when its process ended for clients with other extensions: the session needs another one only for its next request. */
  get isReplaced(): boolean {
    return this.#lease?.conversation.isReplaced === true;
  }

  /** False once the conversation is over: the backend's state of the session is lost. */
  get isIntact(): boolean {
    if (this.#lease !== undefined) return !this.#lease.conversation.isOver;
    return this.ref.handshake === this.handshake && this.ref.feed === this.feed;
  }

  /** Only the way to the node of the instance was lost: the backend may have the state of the session still. Source: ADR 200. */
  get mayContinue(): boolean {
    const { ref, handshake } = this;
    return this.#lease === undefined && ref.isElsewhere && (ref.handshake ?? ref.lastHandshake) === handshake;
  }

  /** Delivers until the returned function is called. */
  listen(listener: FeedClient<ServerMessage>): () => void {
    if (this.feed !== undefined) return this.feed.add(listener);
    this.#listener = listener;
    const received = this.#buffer === undefined ? this.#receive() : undefined;
    const resumed = this.conversation?.resumed$?.subscribe(() => listener.resumed?.());
    for (const message of this.#buffer?.takeAll() ?? []) listener.deliver(message);
    return () => {
      received?.unsubscribe();
      resumed?.unsubscribe();
      this.#listener = undefined;
    };
  }

  /**
   * Resolves when the streams of its listeners are open at the backend, or cannot be; undefined when there is no
   * need to wait.
   */
  get untilListening(): Promise<void> | undefined {
    return this.feed?.acknowledged ?? this.conversation?.untilListening;
  }

  /** Resolves when the backend has subscribed its listeners, or will not; undefined when there is no need to wait. */
  get untilSubscribed(): Promise<void> | undefined {
    return this.feed?.settled ?? this.conversation?.untilListening;
  }

  /**
   * A listener wants these resources from now on; undefined: fewer than before. Resolves when the backend knows;
   * undefined when there is no need to wait.
   */
  refresh(uris?: ResourceUris): Promise<void> | undefined {
    this.feed?.refresh(uris);
    return this.feed?.acknowledged;
  }

  /**
   * Passes a notification of a client on. In a shared program only one that the protocol does not define, and only
   * while the one call of the client (`isOnlyCall`) is the only one there, so that the program cannot attribute it
   * to another client. Messages of the program follow the same rule (transports/channel.ts). Dropped otherwise,
   * and after the end of the conversation.
   */
  notify(method: string, params: JsonObject, ownerId: string, isOnlyCall: boolean): void {
    if (!this.isIntact) return;
    const { ref, conversation } = this;
    if (conversation !== undefined && !this.isShared) forwardNotification(conversation, method, params);
    else if (isOnlyCall && isCustomNotice(method) && hasProcesses(ref) && ref.activeCalls === 1)
      (conversation ?? ref).notify(method, params, ownerId);
  }

  /** A call begins here; it ends with `release`. */
  acquire(): void {
    this.#lease?.conversation.acquire();
  }

  release(): void {
    this.#lease?.conversation.release();
  }

  /** The session has moved: a dedicated conversation is closed when its last call has ended. */
  retire(): void {
    this.#lease?.release();
  }

  /** The session is over: a dedicated conversation is closed now. Resolves when nothing is left; never rejects. */
  async close(): Promise<void> {
    if (this.isShared) this.#lease?.release();
    else await this.#lease?.conversation.close();
  }

  #receive(): Subscription | undefined {
    return this.conversation?.messages$.subscribe((message) => {
      if (this.#listener === undefined) this.#buffer?.put(message, message.params);
      else this.#listener.deliver(message);
    });
  }
}

/** A question of the backend is always answered. */
function refuseQuestion(message: ServerMessage): void {
  if (message.kind !== 'request') return;
  message.answer({ error: { code: RPC.internalError, message: 'The client does not listen.' } });
}

function hasProcesses({ definition: { transport } }: InstanceRef): boolean {
  return TRANSPORT_TRAITS[transport].hasProcesses;
}

/** Notifications that a modern backend does not need. */
const LEGACY_ONLY: ReadonlySet<string> = new Set([
  'notifications/roots/list_changed',
  'notifications/progress',
]);

/** Sends a notification of a client in a conversation of that client. */
export function forwardNotification(conversation: Conversation, method: string, params: JsonObject): void {
  if (conversation.handshake.era !== 'modern' || !LEGACY_ONLY.has(method))
    conversation.notify(method, params);
}
