// The binding of a session at its instance: a conversation that is leased for it alone (dedicated), or a part in the instance's
// own (shared). The binder chooses (binder.ts).

import { Subscription } from 'rxjs';
import type { ServerMessage } from '../../domain/client.ts';
import { RPC } from '../../domain/jsonrpc.ts';
import { changedList, type Peer } from '../../domain/mcp.ts';
import { wholesOf } from '../../domain/resource-uris.ts';
import type { Upstream } from '../../transports/transport.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import { MessageBuffer } from '../message-buffer.ts';
import { Listening } from './client-session-listening.ts';
import type { Binding, SessionDeps, SessionSubscriber } from './client-session-types.ts';

/** The buffer for a client that does not listen. */
interface Kept {
  readonly messages: MessageBuffer<ServerMessage>;
  readonly subscription: Subscription;
}

export interface DedicatedBindingOptions {
  /** Ends the conversation. Called once; never rejects. */
  readonly close: () => Promise<void>;
  /**
   * Messages of the backend without a listener are buffered, as far as MessageBuffer has room. A process sends messages with
   * or without a listener; the stream of an HTTP backend is only open for a listener, and a modern backend is asked.
   */
  readonly keeps: boolean;
  readonly alarm: SessionDeps['alarm'];
}

/**
 * A conversation that is leased for one session: a session of an HTTP backend, or a process. The lease ends with the session, or
 * when its last call has ended after the session went elsewhere. A process of the modern era is asked for changes like an
 * instance that sessions share.
 */
export class DedicatedBinding implements Binding {
  readonly ref: InstanceRef;
  readonly upstream: Upstream;
  #calls = 0;
  #isOver = false;
  #isRetired = false;
  #listener: SessionSubscriber | undefined;
  readonly #close: () => Promise<void>;
  readonly #alarm: SessionDeps['alarm'];
  #kept: Kept | undefined;
  #listening: Listening | undefined;
  #closing: Promise<void> | undefined;

  constructor(ref: InstanceRef, upstream: Upstream, { close, keeps, alarm }: DedicatedBindingOptions) {
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

  listen(listener: SessionSubscriber): () => void {
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

  #hear(listener: SessionSubscriber): () => void {
    const subscription = this.upstream.messages$.subscribe({
      next: (message) => listener.deliver(message),
      complete: () => this.#lose(listener),
      error: () => this.#lose(listener),
    });
    return () => subscription.unsubscribe();
  }

  #ask(listener: SessionSubscriber): () => void {
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

  #lose(listener: SessionSubscriber): void {
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

/** A question of the backend gets an answer in any case. */
function drop(message: ServerMessage): void {
  if (message.kind !== 'request') return;
  message.answer({ error: { code: RPC.internalError, message: 'The client does not listen.' } });
}

/** One for each conversation that sessions share, while they do. */
export class SharedBindings {
  readonly #alarm: SessionDeps['alarm'];
  readonly #bindings = new Map<InstanceRef, SharedBinding>();

  constructor(alarm: SessionDeps['alarm']) {
    this.#alarm = alarm;
  }

  /** How many conversations are shared now; for specs that look for leaks. */
  get size(): number {
    return this.#bindings.size;
  }

  /** A part for one more session, until it retires. `peer` is what the instance shows now. */
  join(ref: InstanceRef, peer: Peer): SharedBinding {
    const known = this.#bindings.get(ref);
    const binding = known?.peer === peer ? known : this.#open(ref, peer);
    binding.join();
    return binding;
  }

  #open(ref: InstanceRef, peer: Peer): SharedBinding {
    const binding = new SharedBinding(ref, peer, this.#alarm, () => {
      if (this.#bindings.get(ref) === binding) this.#bindings.delete(ref);
    });
    this.#bindings.set(ref, binding);
    return binding;
  }
}

/**
 * The part that sessions have in an instance's own conversation, which carries all of them. The backend's messages there name no
 * client: an update of a resource goes to its subscribers, a change of a list to all sessions, any other message to none.
 */
class SharedBinding implements Binding {
  readonly ref: InstanceRef;
  readonly peer: Peer;
  readonly upstream = undefined;
  readonly #alarm: SessionDeps['alarm'];
  readonly #emptied: () => void;
  #sessions = 0;
  readonly #listeners = new Set<SessionSubscriber>();
  /** How many listeners subscribed to each resource. */
  readonly #wanted = new Map<string, number>();
  #hearing: Subscription | undefined;
  #listening: Listening | undefined;

  constructor(ref: InstanceRef, peer: Peer, alarm: SessionDeps['alarm'], emptied: () => void) {
    this.ref = ref;
    this.peer = peer;
    this.#alarm = alarm;
    this.#emptied = emptied;
  }

  get isIntact(): boolean {
    return this.ref.peer === this.peer;
  }

  join(): void {
    this.#sessions += 1;
  }

  listen(listener: SessionSubscriber): () => void {
    this.#listeners.add(listener);
    for (const uri of listener.uris.keys()) this.#count(uri, 1);
    if (this.#hearing === undefined) this.#hear();
    this.#listening?.refresh();
    return () => {
      if (!this.#listeners.delete(listener)) return;
      for (const uri of listener.uris.keys()) this.#count(uri, -1);
      if (this.#listeners.size === 0) this.#hush();
      else this.#listening?.refresh();
    };
  }

  get opening(): Promise<void> | undefined {
    return this.#listening?.agreed;
  }

  wants(uri: string, isWanted: boolean): Promise<void> | undefined {
    this.#count(uri, isWanted ? 1 : -1);
    this.#listening?.refresh();
    return this.#listening?.agreed;
  }

  /** The conversation is not the session's: it ends with the instance's. */
  take(): void {}
  release(): void {}

  retire(): void {
    this.#sessions -= 1;
    if (this.#sessions === 0) this.#emptied();
  }

  async close(): Promise<void> {
    this.retire();
  }

  #count(uri: string, difference: 1 | -1): void {
    const count = (this.#wanted.get(uri) ?? 0) + difference;
    if (count > 0) this.#wanted.set(uri, count);
    else this.#wanted.delete(uri);
  }

  /** A modern backend only sends what it is asked for; the others send everything. */
  #hear(): void {
    const hearing = new Subscription();
    this.#hearing = hearing;
    if (this.peer.era === 'modern') {
      const { ref, peer } = this;
      const deliver = (message: ServerMessage): void => this.#deliver(message);
      const listening = new Listening({ ref, peer, alarm: this.#alarm, uris: this.#wanted, deliver });
      this.#listening = listening;
      hearing.add(() => listening.close());
    } else {
      const ignored = () => undefined; // its sessions see that it is over by the instance's state
      hearing.add(this.ref.messages$.subscribe({ next: (said) => this.#deliver(said), error: ignored }));
    }
  }

  #hush(): void {
    this.#hearing?.unsubscribe();
    this.#hearing = undefined;
    this.#listening = undefined;
  }

  #deliver(message: ServerMessage): void {
    if (message.kind === 'request') return;
    if (changedList(message.method) !== undefined) {
      for (const listener of [...this.#listeners]) listener.deliver(message);
    } else if (message.method === 'notifications/resources/updated') {
      this.#deliverUpdate(message, message.params.uri);
    }
  }

  #deliverUpdate(message: ServerMessage, uri: unknown): void {
    if (typeof uri !== 'string') return;
    const meant = wholesOf(uri).filter((whole) => this.#wanted.has(whole));
    if (meant.length === 0) return;
    for (const listener of [...this.#listeners]) {
      if (meant.some((whole) => listener.uris.has(whole))) listener.deliver(message);
    }
  }
}
