// The binding of a session to its instance: a conversation that is leased for the session (dedicated), or that of the instance,
// which sessions share. binder.ts chooses.

import { Subscription } from 'rxjs';
import type { ServerMessage } from '../../domain/client.ts';
import { RPC } from '../../domain/jsonrpc.ts';
import { LIMITS } from '../../domain/limits.ts';
import { changedList, type Peer } from '../../domain/mcp.ts';
import { enclosingUris } from '../../domain/resource-uris.ts';
import type { Upstream } from '../../transports/transport.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import { MessageBuffer } from '../message-buffer.ts';
import { ListenClient, listNotifications } from '../sharing/listen-client.ts';
import type { Binding, ResourceUris, SessionDeps, SessionSubscriber } from './client-session-types.ts';

export interface DedicatedBindingOptions {
  /** Ends the conversation. Called once; never rejects. */
  readonly close: () => Promise<void>;
  /**
   * Messages are buffered while there is no listener. A legacy process sends messages at any time; the stream of an HTTP backend
   * is open only for a listener, and a modern backend sends only what it is asked for.
   */
  readonly buffersMessages: boolean;
  readonly alarm: SessionDeps['alarm'];
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
  readonly #alarm: SessionDeps['alarm'];
  #buffer: MessageBuffer<ServerMessage> | undefined;
  #buffering: Subscription | undefined;
  #listening: Listening | undefined;
  #closing: Promise<void> | undefined;

  constructor(
    ref: InstanceRef,
    upstream: Upstream,
    { close, buffersMessages, alarm }: DedicatedBindingOptions,
  ) {
    this.ref = ref;
    this.upstream = upstream;
    this.#close = close;
    this.#alarm = alarm;
    const end = () => this.#end();
    upstream.closed$.subscribe({ next: end, complete: end, error: end });
    if (buffersMessages && this.peer.era !== 'modern') this.#startBuffering();
  }

  get peer(): Peer {
    return this.upstream.peer;
  }

  get isIntact(): boolean {
    return !this.#isOver;
  }

  listen(listener: SessionSubscriber): () => void {
    if (this.peer.era === 'modern') return this.#listenModern(listener);
    if (this.#buffer === undefined) return this.#listenUnbuffered(listener);
    this.#listener = listener;
    for (const message of this.#buffer.takeAll()) listener.deliver(message);
    return () => {
      if (this.#listener === listener) this.#listener = undefined;
    };
  }

  get opening(): Promise<void> | undefined {
    return this.#listening?.acknowledged ?? this.upstream.opening;
  }

  /** A legacy backend gets the request itself; see client-state.ts. */
  setSubscribed(): Promise<void> | undefined {
    this.#listening?.refresh();
    return this.#listening?.acknowledged;
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

  #listenModern(listener: SessionSubscriber): () => void {
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
    this.#listening?.close();
    this.#listening = undefined;
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

/** The bindings to the shared conversations of instances, one per conversation while sessions use it. */
export class SharedBindings {
  readonly #alarm: SessionDeps['alarm'];
  readonly #bindings = new Map<InstanceRef, SharedBinding>();

  constructor(alarm: SessionDeps['alarm']) {
    this.#alarm = alarm;
  }

  /** How many conversations are shared; for specs that check for leaks. */
  get size(): number {
    return this.#bindings.size;
  }

  /** The binding for one more session, until that retires. `peer`: the present peer of the instance. */
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
 * The binding of all sessions that share the conversation of an instance. Messages of the backend name no client there: an update
 * of a resource goes to its subscribers, a change of a list to all sessions, any other message to none.
 */
class SharedBinding implements Binding {
  readonly ref: InstanceRef;
  readonly peer: Peer;
  readonly upstream = undefined;
  readonly #alarm: SessionDeps['alarm'];
  readonly #onEmpty: () => void;
  #sessions = 0;
  readonly #listeners = new Set<SessionSubscriber>();
  /** The number of listeners that subscribed to each resource. */
  readonly #subscribers = new Map<string, number>();
  #subscription: Subscription | undefined;
  #listening: Listening | undefined;

  constructor(ref: InstanceRef, peer: Peer, alarm: SessionDeps['alarm'], onEmpty: () => void) {
    this.ref = ref;
    this.peer = peer;
    this.#alarm = alarm;
    this.#onEmpty = onEmpty;
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
    if (this.#subscription === undefined) this.#startListening();
    this.#listening?.refresh();
    return () => {
      if (!this.#listeners.delete(listener)) return;
      for (const uri of listener.uris.keys()) this.#count(uri, -1);
      if (this.#listeners.size === 0) this.#stopListening();
      else this.#listening?.refresh();
    };
  }

  get opening(): Promise<void> | undefined {
    return this.#listening?.acknowledged;
  }

  setSubscribed(uri: string, isSubscribed: boolean): Promise<void> | undefined {
    this.#count(uri, isSubscribed ? 1 : -1);
    this.#listening?.refresh();
    return this.#listening?.acknowledged;
  }

  /** The conversation ends with the session of the instance. */
  take(): void {}
  release(): void {}

  retire(): void {
    this.#sessions -= 1;
    if (this.#sessions === 0) this.#onEmpty();
  }

  async close(): Promise<void> {
    this.retire();
  }

  #count(uri: string, difference: 1 | -1): void {
    const count = (this.#subscribers.get(uri) ?? 0) + difference;
    if (count > 0) this.#subscribers.set(uri, count);
    else this.#subscribers.delete(uri);
  }

  /** A modern backend sends only what it is asked for; the others send everything. */
  #startListening(): void {
    const subscription = new Subscription();
    this.#subscription = subscription;
    if (this.peer.era === 'modern') {
      const { ref, peer } = this;
      const deliver = (message: ServerMessage): void => this.#deliver(message);
      const listening = new Listening({ ref, peer, alarm: this.#alarm, uris: this.#subscribers, deliver });
      this.#listening = listening;
      subscription.add(() => listening.close());
    } else {
      const ignored = () => undefined; // the state of the instance shows the end to its sessions
      subscription.add(
        this.ref.messages$.subscribe({ next: (message) => this.#deliver(message), error: ignored }),
      );
    }
  }

  #stopListening(): void {
    this.#subscription?.unsubscribe();
    this.#subscription = undefined;
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
    const subscribed = enclosingUris(uri).filter((candidate) => this.#subscribers.has(candidate));
    if (subscribed.length === 0) return;
    for (const listener of [...this.#listeners]) {
      if (subscribed.some((candidate) => listener.uris.has(candidate))) listener.deliver(message);
    }
  }
}

export interface ListeningOptions {
  readonly ref: Pick<InstanceRef, 'listen'>;
  readonly peer: Pick<Peer, 'capabilities'>;
  readonly alarm: SessionDeps['alarm'];
  /** The subscribed resources; read at each request. */
  readonly uris: Pick<ResourceUris, 'keys'>;
  readonly deliver: (message: ServerMessage) => void;
}

/**
 * The subscription at a modern backend for the sessions in one conversation: the lists that the backend announces, and the
 * resources that the sessions subscribed to. Subscribes in the microtask after a change, so that simultaneous changes make one subscription.
 */
export class Listening {
  readonly #options: ListeningOptions;
  readonly #client: ListenClient;
  #isScheduled = false;
  #isClosed = false;
  /** Resolves when the backend has acknowledged the latest subscription. */
  #acknowledgement: { readonly promise: Promise<void>; readonly end: () => void } | undefined;

  constructor(options: ListeningOptions) {
    this.#options = options;
    this.#client = new ListenClient({
      listen: (request) => options.ref.listen(request),
      deliver: options.deliver,
      acknowledged: () => this.#settled(),
      ended: () => this.#settled(),
      retry: () => this.#ask(),
    });
    this.refresh();
  }

  /** The subscribed resources may have changed. */
  refresh(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      if (!this.#isClosed) this.#ask();
    });
  }

  /** Resolves when the backend has acknowledged the latest subscription, or will not, at the latest after LIMITS.backgroundMs. */
  get acknowledged(): Promise<void> | undefined {
    if (this.#isClosed || (!this.#isScheduled && !this.#client.isPending)) return undefined;
    this.#acknowledgement ??= this.#newAcknowledgement();
    return this.#acknowledgement.promise;
  }

  close(): void {
    this.#isClosed = true;
    this.#acknowledgement?.end();
    this.#client.stop();
  }

  #ask(): void {
    const { peer, uris } = this.#options;
    const lists = listNotifications(peer);
    const resources = [...uris.keys()];
    const notifications = resources.length === 0 ? lists : { ...lists, resourceSubscriptions: resources };
    if (Object.keys(notifications).length > 0) {
      this.#client.ask(notifications);
      return;
    }
    this.#client.stop();
    this.#acknowledgement?.end();
  }

  /** The latest subscription may still be pending when the one before it ends. */
  #settled(): void {
    if (!this.#isScheduled && !this.#client.isPending) this.#acknowledgement?.end();
  }

  #newAcknowledgement() {
    const { promise, resolve } = Promise.withResolvers<void>();
    const end = (): void => {
      this.#acknowledgement = undefined;
      disarm();
      resolve();
    };
    const disarm = this.#options.alarm(LIMITS.backgroundMs, end);
    return { promise, end };
  }
}
