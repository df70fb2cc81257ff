// The binding of a session to its instance: a conversation that is leased for the session (dedicated), or that of the instance,
// which sessions share. binder.ts chooses.

import type { Subscription } from 'rxjs';
import type { ServerMessage } from '../../domain/client.ts';
import { RPC } from '../../domain/jsonrpc.ts';
import type { Peer } from '../../domain/mcp.ts';
import type { Upstream } from '../../transports/transport.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import { MessageBuffer } from '../message-buffer.ts';
import { Feed, type FeedClient } from '../sharing/feed.ts';
import { isNetworked } from '../stateless/stateless-routing.ts';

/** A session whose client listens: receives the messages of the backend outside of exchanges. */
export interface SessionSubscriber extends Pick<FeedClient, 'uris'> {
  deliver(message: ServerMessage): void;
}

/** A conversation that is leased for one session: a session of an HTTP backend, or a process. */
export interface DedicatedLease {
  readonly upstream: Upstream;
  /** Ends the lease, and so the conversation. Idempotent. Resolves when nothing is left; never rejects. */
  readonly close: () => Promise<void>;
}

/**
 * Shares the conversation of the instance during one session of the instance; or has a lease, which ends with the session, or with
 * the last call after the session moved to another instance.
 */
export class Binding {
  readonly ref: InstanceRef;
  readonly peer: Peer;
  /** The dedicated conversation; undefined while the session shares that of the instance. */
  readonly upstream: Upstream | undefined;
  /** The messages and subscriptions of a shared conversation, or of a modern one; undefined for other dedicated ones. */
  readonly feed: Feed | undefined;
  readonly #close: (() => Promise<void>) | undefined;
  readonly #buffer: MessageBuffer<ServerMessage> | undefined;
  #listener: SessionSubscriber | undefined;
  #calls = 0;
  #isOver = false;
  #isRetired = false;

  constructor(ref: InstanceRef, peer: Peer, lease?: DedicatedLease) {
    this.ref = ref;
    this.peer = peer;
    this.upstream = lease?.upstream;
    this.#close = lease?.close;
    if (lease === undefined) this.feed = ref.feed;
    else {
      lease.upstream.closed$.subscribe(() => {
        this.#isOver = true;
      });
      if (peer.era === 'modern') this.feed = new Feed(lease.upstream);
      else if (!isNetworked(ref.definition)) {
        // A legacy process sends messages at any time; the stream of an HTTP backend is open only for a listener.
        this.#buffer = new MessageBuffer(refuseQuestion);
        this.#receive(lease.upstream);
      }
    }
  }

  /** False once the conversation is over: the backend's state of the session is lost. */
  get isIntact(): boolean {
    return this.upstream === undefined ? this.ref.peer === this.peer : !this.#isOver;
  }

  /** Delivers until the returned function is called. */
  listen(listener: SessionSubscriber): () => void {
    if (this.feed !== undefined) return this.feed.add(listener);
    this.#listener = listener;
    const received = this.#buffer === undefined ? this.#receive(this.upstream) : undefined;
    for (const message of this.#buffer?.takeAll() ?? []) listener.deliver(message);
    return () => {
      received?.unsubscribe();
      this.#listener = undefined;
    };
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
  take(): void {
    this.#calls += 1;
  }

  release(): void {
    this.#calls -= 1;
    if (this.#isRetired && this.#calls === 0) void this.close();
  }

  /** The session has moved: a dedicated conversation is closed when its last call has ended. */
  retire(): void {
    this.#isRetired = true;
    if (this.#calls === 0) void this.close();
  }

  /** The session is over: a dedicated conversation is closed now. Resolves when nothing is left; never rejects. */
  async close(): Promise<void> {
    this.#isOver = true;
    await this.#close?.();
  }

  #receive(upstream: Upstream | undefined): Subscription | undefined {
    return upstream?.messages$.subscribe((message) => {
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
