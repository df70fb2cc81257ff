// The binding of a session to its instance: a conversation that is leased for the session (dedicated), or that of the instance,
// which sessions share. binder.ts chooses.

import type { ServerMessage } from '../../domain/client.ts';
import { RPC } from '../../domain/jsonrpc.ts';
import type { Peer } from '../../domain/mcp.ts';
import type { Upstream } from '../../transports/transport.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import { MessageBuffer } from '../message-buffer.ts';
import { Feed, type FeedClient } from '../sharing/feed.ts';
import { listNotifications } from '../sharing/listen-client.ts';

/** A session whose client listens: receives the messages of the backend outside of exchanges. */
export interface SessionSubscriber extends Pick<FeedClient, 'uris'> {
  deliver(message: ServerMessage): void;
  /** The conversation is over. */
  lost(): void;
}

/** The binding to the conversation that sessions share at an instance, during one session of the instance. */
export class Binding {
  readonly ref: InstanceRef;
  readonly peer: Peer;
  /** The dedicated conversation; undefined while the session shares that of the instance. */
  readonly upstream: Upstream | undefined;
  /** The messages and subscriptions of a shared conversation, or of a modern one; undefined for other dedicated ones. */
  readonly feed: Feed | undefined;

  constructor(ref: InstanceRef, peer: Peer, feed: Feed | undefined, upstream?: Upstream) {
    this.ref = ref;
    this.peer = peer;
    this.feed = feed;
    this.upstream = upstream;
  }

  /** False once the conversation is over: the backend's state of the session is lost. */
  get isIntact(): boolean {
    return this.ref.peer === this.peer;
  }

  /** Delivers until the returned function is called. */
  listen(listener: SessionSubscriber): () => void {
    return this.feed?.add(listener) ?? (() => undefined);
  }

  /** Resolves when the streams of its listeners are open at the backend, or cannot be; undefined when there is no need to wait. */
  get opening(): Promise<void> | undefined {
    return this.feed?.acknowledged ?? this.upstream?.opening;
  }

  /** The resources of a listener have changed. Resolves when the backend knows; undefined when there is no need to wait. */
  refresh(): Promise<void> | undefined {
    this.feed?.refresh();
    return this.feed?.acknowledged;
  }

  /** A call begins here; it ends with `release`. */
  take(): void {}
  release(): void {}
  /** The session has moved: a dedicated conversation is closed when its last call has ended. */
  retire(): void {}
  /** The session is over: a dedicated conversation is closed now. Resolves when nothing is left; never rejects. */
  async close(): Promise<void> {}
}

export interface DedicatedBindingOptions {
  /** Ends the conversation. Called once; never rejects. */
  readonly close: () => Promise<void>;
  /**
   * Messages are buffered while there is no listener. A legacy process sends messages at any time; the stream of an HTTP backend
   * is open only for a listener, and a modern backend sends only what it is asked for.
   */
  readonly buffersMessages: boolean;
}

/**
 * A conversation that is leased for one session: a session of an HTTP backend, or a process. The lease ends with the session, or
 * with the last call after the session moved to another instance. A modern process is subscribed to like a shared instance.
 */
export class DedicatedBinding extends Binding {
  declare readonly upstream: Upstream;
  #calls = 0;
  #isOver = false;
  #isRetired = false;
  #listener: SessionSubscriber | undefined;
  /** Ends the subscription of the listener; undefined with a buffer, which remains subscribed. */
  #leave: (() => void) | undefined;
  readonly #close: () => Promise<void>;
  #buffer: MessageBuffer<ServerMessage> | undefined;
  #closing: Promise<void> | undefined;

  constructor(ref: InstanceRef, upstream: Upstream, { close, buffersMessages }: DedicatedBindingOptions) {
    const isModern = upstream.peer.era === 'modern';
    super(
      ref,
      upstream.peer,
      isModern ? new Feed(upstream, listNotifications(upstream.peer)) : undefined,
      upstream,
    );
    this.#close = close;
    upstream.closed$.subscribe(() => this.#end());
    if (isModern || !buffersMessages) return;
    this.#buffer = new MessageBuffer(refuseQuestion);
    this.#receive();
  }

  override get isIntact(): boolean {
    return !this.#isOver;
  }

  override listen(listener: SessionSubscriber): () => void {
    this.#listener = listener;
    if (this.#buffer === undefined) this.#leave = this.feed?.add(listener) ?? this.#receive();
    for (const message of this.#buffer?.takeAll() ?? []) listener.deliver(message);
    return () => {
      this.#leave?.();
      this.#listener = undefined;
    };
  }

  override take(): void {
    this.#calls += 1;
  }

  override release(): void {
    this.#calls -= 1;
    if (this.#isRetired && this.#calls === 0) void this.close();
  }

  override retire(): void {
    this.#isRetired = true;
    if (this.#calls === 0) void this.close();
  }

  override close(): Promise<void> {
    this.#end();
    this.#closing ??= this.#close();
    return this.#closing;
  }

  #receive(): () => void {
    const subscription = this.upstream.messages$.subscribe({
      next: (message) => {
        if (this.#listener === undefined) this.#buffer?.put(message, message.params);
        else this.#listener.deliver(message);
      },
      complete: () => this.#end(),
    });
    return () => subscription.unsubscribe();
  }

  #end(): void {
    this.#isOver = true;
    this.#leave?.();
    const listener = this.#listener;
    this.#listener = undefined;
    listener?.lost();
  }
}

/** A question of the backend is always answered. */
function refuseQuestion(message: ServerMessage): void {
  if (message.kind !== 'request') return;
  message.answer({ error: { code: RPC.internalError, message: 'The client does not listen.' } });
}
