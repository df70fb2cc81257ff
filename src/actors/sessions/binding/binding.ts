// The binding of a session to its instance: through the transport of the instance, which its clients share, or through a
// dedicated conversation, opened for this session or for clients with equal extensions. binder.ts opens bindings.

import type { Subscription } from 'rxjs';
import { hasProcesses, isNetworked } from '../../../domain/instances/transport-kinds.ts';
import type { JsonObject } from '../../../domain/json/json.ts';
import { LIMITS } from '../../../domain/limits.ts';
import { listNotice, QUESTION_REFUSALS, type ServerMessage } from '../../../domain/mcp/client.ts';
import {
  announcesChanges,
  type Handshake,
  isCustomNotice,
  NOTICED_LISTS,
  PROGRESS,
} from '../../../domain/mcp/mcp.ts';
import { MessageBuffer } from '../../../domain/memory/message-buffer.ts';
import {
  type StoredBinding,
  type StoredHandshake,
  storedHandshakeOf,
} from '../../../domain/sessions/session-value.ts';
import type { Conversation } from '../../../transports/transport.ts';
import type { ConversationUse } from '../../instances/dedicated-conversations.ts';
import type { InstanceRef } from '../../instances/instance-ref.ts';
import type { Feed, FeedClient } from '../../subscriptions/feed.ts';

/**
 * The use of one instance by a session. Sessions that share the transport of the instance share one binding. A
 * dedicated conversation ends with the session, or, after the session has moved, with its last call.
 */
export class Binding {
  readonly ref: InstanceRef;
  readonly handshake: Handshake;
  /** The dedicated conversation; undefined when the session uses the transport of the instance. */
  readonly conversation: Conversation | undefined;
  /** True when other sessions may use the same conversation. */
  readonly isShared: boolean;
  /**
   * The messages and subscriptions of a shared conversation, or of a modern one; undefined for other dedicated
   * conversations.
   */
  readonly feed: Feed | undefined;
  /** What the value of the session stores of it: the ids of the instance and of its registration, and `isShared`. */
  readonly storedBinding: StoredBinding;
  readonly storedHandshake: StoredHandshake;
  readonly #use: ConversationUse | undefined;
  readonly #buffer: MessageBuffer<ServerMessage> | undefined;
  #listener: FeedClient<ServerMessage> | undefined;

  /** `use`: of an open conversation; without one the binding uses the transport of the instance. */
  constructor(ref: InstanceRef, handshake: Handshake, use?: ConversationUse) {
    this.ref = ref;
    this.handshake = handshake;
    this.#use = use;
    this.conversation = use?.conversation.inner;
    this.isShared = use === undefined || use.conversation.sharing === 'equalExtensions';
    this.storedBinding = { instanceId: ref.id, serverId: ref.serverId, isShared: this.isShared };
    this.storedHandshake = storedHandshakeOf(handshake);
    if (use === undefined) this.feed = ref.feed;
    else if (handshake.era === 'modern' || this.isShared) this.feed = use.conversation.feed;
    else if (!isNetworked(ref.definition)) {
      // A legacy process sends messages at any time; the stream of an HTTP backend is open only for a listener.
      this.#buffer = new MessageBuffer(refuseQuestion);
      this.#receive();
    }
  }

  /**
   * True when the conversation's process ended to serve clients with other extensions. The session then needs another
   * conversation only for its next request.
   */
  get isReplaced(): boolean {
    return this.#use?.conversation.isReplaced === true;
  }

  /** False once the conversation is over: the backend has lost the state of the session. */
  get isIntact(): boolean {
    if (this.#use !== undefined) return !this.#use.conversation.isOver;
    return this.ref.handshake === this.handshake && this.ref.feed === this.feed;
  }

  /**
   * True when only the connection to the node of the instance was lost: the backend may still have the state of the
   * session. Source: ADR 295.
   */
  get isOnlyUnreachable(): boolean {
    const { ref, handshake } = this;
    return this.#use === undefined && ref.isElsewhere && (ref.handshake ?? ref.lastHandshake) === handshake;
  }

  /** Delivers the messages of the backend to `listener` until the returned function is called. */
  listen(listener: FeedClient<ServerMessage>): () => void {
    if (this.feed !== undefined) return this.feed.add(listener);
    this.#listener = listener;
    const received = this.#buffer === undefined ? this.#receive() : undefined;
    const resumed = this.conversation?.resumed$?.subscribe(() => {
      for (const list of NOTICED_LISTS)
        if (announcesChanges(this.handshake.capabilities, list)) listener.deliver(listNotice(list));
      listener.missed?.();
    });
    for (const message of this.#buffer?.takeAll() ?? []) listener.deliver(message);
    return () => {
      received?.unsubscribe();
      resumed?.unsubscribe();
      this.#listener = undefined;
    };
  }

  /**
   * Resolves when the message streams of the listeners are open at the backend, or cannot be opened, after
   * LIMITS.backgroundMs in any case; undefined when there is no need to wait.
   */
  get untilListening(): Promise<void> | undefined {
    return this.feed?.untilSettled(LIMITS.backgroundMs) ?? this.conversation?.untilListening;
  }

  /** Resolves when the backend has subscribed the listeners, or will not; undefined when there is no need to wait. */
  get untilSubscribed(): Promise<void> | undefined {
    return this.feed?.untilSettled() ?? this.conversation?.untilListening;
  }

  /**
   * Reports that a listener wants these resources from now on, or, when undefined, fewer than before. Resolves when
   * the backend knows; undefined when there is no need to wait.
   */
  refresh(uris?: ReadonlySet<string>): Promise<void> | undefined {
    this.feed?.refresh(uris);
    return this.feed?.untilSettled(LIMITS.backgroundMs);
  }

  /**
   * Passes a notification of a client to the backend. A shared program gets only custom notifications, and only during the
   * only call there (`isOnlyCall`: the client has no other), so it cannot take them for another client's. Its messages follow
   * the same rule (transports/channel.ts). All others, and those after the end of the conversation, are dropped.
   */
  notify(method: string, params: JsonObject, ownerId: string, isOnlyCall: boolean): void {
    if (!this.isIntact) return;
    const { ref, conversation } = this;
    if (conversation !== undefined && !this.isShared) forwardNotification(conversation, method, params);
    else if (isOnlyCall && isCustomNotice(method) && hasProcesses(ref.definition) && ref.activeCalls === 1)
      (conversation ?? ref).notify(method, params, ownerId);
  }

  /** A call begins in this binding, which keeps the conversation open until `endCall`. */
  beginCall(): void {
    this.#use?.conversation.beginCall();
  }

  endCall(): void {
    this.#use?.conversation.endCall();
  }

  /** The session has moved: a dedicated conversation is closed after its last call. */
  endAfterCalls(): void {
    this.#use?.end();
  }

  /**
   * Called when the session is over: closes a dedicated conversation at once. Resolves when it is closed; never
   * rejects.
   */
  async close(): Promise<void> {
    if (this.isShared) this.#use?.end();
    else await this.#use?.conversation.close();
  }

  #receive(): Subscription | undefined {
    return this.conversation?.messages$.subscribe((message) => {
      if (this.#listener === undefined) this.#buffer?.put(message, message.params);
      else this.#listener.deliver(message);
    });
  }
}

/** Answers a question of the backend that did not reach the client; every question gets an answer. */
function refuseQuestion(message: ServerMessage): void {
  if (message.kind !== 'request') return;
  message.answer(QUESTION_REFUSALS.notListening);
}

/** Notifications that only legacy backends need. */
const LEGACY_ONLY: ReadonlySet<string> = new Set(['notifications/roots/list_changed', PROGRESS]);

/** Sends a notification of a client through a conversation of that client. */
function forwardNotification(conversation: Conversation, method: string, params: JsonObject): void {
  if (conversation.handshake.era !== 'modern' || !LEGACY_ONLY.has(method))
    conversation.notify(method, params);
}
