// A conversation that is leased for one session: a session of an HTTP backend, or a process. The lease ends with the session, or
// when its last call has ended after the session went elsewhere. A process may speak the modern era: then it is asked for
// news like an instance that sessions share.

import type { Subscription } from 'rxjs';
import type { ServerMessage } from '../../domain/client.ts';
import { RPC } from '../../domain/jsonrpc.ts';
import type { Peer } from '../../domain/mcp.ts';
import type { Upstream } from '../../transports/transport.ts';
import { MessageBuffer } from '../message-buffer.ts';
import { Listening } from './client-session-listening.ts';
import type { Binding, Listener, SessionDeps, SessionInstance } from './client-session-types.ts';

/** What is kept for a client that does not listen. */
interface Kept {
  readonly messages: MessageBuffer<ServerMessage>;
  readonly subscription: Subscription;
}

export interface DedicatedBindingOptions {
  /** Ends the conversation. Called once; never rejects. */
  readonly close: () => Promise<void>;
  /**
   * What the backend says while nobody listens is kept, as far as KeptMessages has room; a process says things whether
   * somebody listens or not, an HTTP backend is only listened to while somebody does, and a modern one is asked.
   */
  readonly keeps: boolean;
  readonly alarm: SessionDeps['alarm'];
}

export class DedicatedBinding implements Binding {
  readonly ref: SessionInstance;
  readonly upstream: Upstream;
  #calls = 0;
  #isOver = false;
  #isRetired = false;
  #listener: Listener | undefined;
  readonly #close: () => Promise<void>;
  readonly #alarm: SessionDeps['alarm'];
  #kept: Kept | undefined;
  #listening: Listening | undefined;
  #closing: Promise<void> | undefined;

  constructor(ref: SessionInstance, upstream: Upstream, { close, keeps, alarm }: DedicatedBindingOptions) {
    this.ref = ref;
    this.upstream = upstream;
    this.#close = close;
    this.#alarm = alarm;
    const end = () => this.#end();
    upstream.closed$.subscribe({ next: end, complete: end, error: end });
    if (keeps && this.peer.era !== 'modern') this.#kept = this.#keep();
  }

  get peer(): Peer {
    return this.upstream.peer;
  }

  get isIntact(): boolean {
    return !this.#isOver;
  }

  listen(listener: Listener): () => void {
    const kept = this.#kept;
    if (this.peer.era === 'modern') return this.#ask(listener);
    if (kept === undefined) return this.#hear(listener);
    this.#listener = listener;
    for (const message of kept.messages.takeAll()) listener.deliver(message);
    return () => {
      if (this.#listener === listener) this.#listener = undefined;
    };
  }

  get opening(): Promise<void> | undefined {
    return this.#listening?.agreed ?? this.upstream.opening;
  }

  /** A legacy backend was asked itself; see client-state.ts. */
  wants(): Promise<void> | undefined {
    this.#listening?.refresh();
    return this.#listening?.agreed;
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

  #hear(listener: Listener): () => void {
    const subscription = this.upstream.messages$.subscribe({
      next: (message) => listener.deliver(message),
      complete: () => this.#lose(listener),
      error: () => this.#lose(listener),
    });
    return () => subscription.unsubscribe();
  }

  #ask(listener: Listener): () => void {
    const { upstream, peer } = this;
    const listening = new Listening({
      ref: { listen: (request) => upstream.exchange(request) },
      peer,
      alarm: this.#alarm,
      uris: { keys: () => listener.uris.keys() },
      deliver: (message) => listener.deliver(message),
    });
    this.#listener = listener;
    this.#listening = listening;
    return () => {
      listening.close();
      if (this.#listener !== listener) return;
      this.#listener = undefined;
      this.#listening = undefined;
    };
  }

  #keep(): Kept {
    const messages = new MessageBuffer<ServerMessage>(drop);
    const subscription = this.upstream.messages$.subscribe({
      next: (message) => {
        if (this.#listener === undefined) messages.put(message, message.params);
        else this.#listener.deliver(message);
      },
      error: () => this.#end(), // closed$ says why
    });
    return { messages, subscription };
  }

  #lose(listener: Listener): void {
    this.#isOver = true;
    listener.lost();
  }

  #end(): void {
    this.#isOver = true;
    this.#kept?.subscription.unsubscribe();
    this.#listening?.close();
    this.#listening = undefined;
    const listener = this.#listener;
    this.#listener = undefined;
    listener?.lost();
  }
}

/** A backend that asked is not left waiting. */
function drop(message: ServerMessage): void {
  if (message.kind !== 'request') return;
  message.answer({ error: { code: RPC.internalError, message: 'The client does not listen.' } });
}
