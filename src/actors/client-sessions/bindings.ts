// The binding of a session to its instance: a conversation that is leased for the session (dedicated), or that of the instance,
// which sessions share. binder.ts chooses.

import type { Subscription } from 'rxjs';
import type { ServerMessage } from '../../domain/client.ts';
import { RPC } from '../../domain/jsonrpc.ts';
import type { Peer } from '../../domain/mcp.ts';
import type { Upstream } from '../../transports/transport.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import { MessageBuffer } from '../message-buffer.ts';
import { listNotifications } from '../sharing/listen-client.ts';
import { Feed, type SharedListening } from '../sharing/shared-listening.ts';
import type { Binding, SessionSubscriber } from './client-session-types.ts';

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
export class DedicatedBinding implements Binding {
  readonly ref: InstanceRef;
  readonly upstream: Upstream;
  #calls = 0;
  #isOver = false;
  #isRetired = false;
  #listener: SessionSubscriber | undefined;
  readonly #close: () => Promise<void>;
  #buffer: MessageBuffer<ServerMessage> | undefined;
  #buffering: Subscription | undefined;
  readonly #feed: Feed | undefined;
  #leaveFeed: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor(ref: InstanceRef, upstream: Upstream, { close, buffersMessages }: DedicatedBindingOptions) {
    this.ref = ref;
    this.upstream = upstream;
    this.#close = close;
    const end = () => this.#end();
    upstream.closed$.subscribe({ next: end, complete: end, error: end });
    if (this.peer.era === 'modern') {
      const lists = listNotifications(this.peer);
      this.#feed = new Feed(this.peer, (request) => upstream.exchange(request), lists);
    } else if (buffersMessages) this.#startBuffering();
  }

  get peer(): Peer {
    return this.upstream.peer;
  }

  get isIntact(): boolean {
    return !this.#isOver;
  }

  listen(listener: SessionSubscriber): () => void {
    if (this.#feed === undefined && this.#buffer === undefined) return this.#listenUnbuffered(listener);
    this.#listener = listener;
    const leave = this.#feed?.add(listener);
    this.#leaveFeed = leave;
    for (const message of this.#buffer?.takeAll() ?? []) listener.deliver(message);
    return () => {
      leave?.();
      if (this.#listener === listener) this.#listener = undefined;
    };
  }

  get opening(): Promise<void> | undefined {
    return this.#feed?.acknowledged ?? this.upstream.opening;
  }

  /** A legacy backend gets the request itself; see client-state.ts. */
  refresh(): Promise<void> | undefined {
    this.#feed?.refresh();
    return this.#feed?.acknowledged;
  }

  take(): void {
    this.#calls += 1;
  }

  release(): void {
    this.#calls -= 1;
    if (this.#isRetired && this.#calls === 0) void this.close();
  }

  retire(): void {
    this.#isRetired = true;
    if (this.#calls === 0) void this.close();
  }

  close(): Promise<void> {
    if (this.#closing === undefined) {
      this.#listener = undefined;
      this.#end();
      this.#closing = this.#close();
    }
    return this.#closing;
  }

  #listenUnbuffered(listener: SessionSubscriber): () => void {
    const subscription = this.upstream.messages$.subscribe({
      next: (message) => listener.deliver(message),
      complete: () => this.#lost(listener),
      error: () => this.#lost(listener),
    });
    return () => subscription.unsubscribe();
  }

  #startBuffering(): void {
    const buffer = new MessageBuffer<ServerMessage>(refuseQuestion);
    this.#buffer = buffer;
    this.#buffering = this.upstream.messages$.subscribe({
      next: (message) => {
        if (this.#listener === undefined) buffer.put(message, message.params);
        else this.#listener.deliver(message);
      },
      error: () => this.#end(), // closed$ says why
    });
  }

  #lost(listener: SessionSubscriber): void {
    this.#isOver = true;
    listener.lost();
  }

  #end(): void {
    this.#isOver = true;
    this.#buffering?.unsubscribe();
    this.#leaveFeed?.();
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

/** The shared conversation of an instance, during one session of it. */
export class SharedBinding implements Binding {
  readonly ref: InstanceRef;
  readonly peer: Peer;
  readonly upstream = undefined;
  readonly #listening: SharedListening;

  constructor(ref: InstanceRef, peer: Peer, listening: SharedListening) {
    this.ref = ref;
    this.peer = peer;
    this.#listening = listening;
  }

  get isIntact(): boolean {
    return this.ref.peer === this.peer;
  }

  listen(listener: SessionSubscriber): () => void {
    return this.#feed.add(listener);
  }

  get opening(): Promise<void> | undefined {
    return this.#feed.acknowledged;
  }

  refresh(): Promise<void> | undefined {
    this.#feed.refresh();
    return this.#feed.acknowledged;
  }

  /** The conversation ends with the session of the instance. */
  take(): void {}
  release(): void {}
  retire(): void {}
  async close(): Promise<void> {}

  get #feed(): Feed {
    return this.#listening.feed(this.ref, this.peer);
  }
}
