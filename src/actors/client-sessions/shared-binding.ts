// The part that sessions have in an instance's own conversation, which carries all of them. What the backend says there
// names no client: news of a resource reaches those who subscribed to it, news of a list everybody, the rest nobody.

import { Subscription } from 'rxjs';
import type { ServerMessage } from '../../domain/client.ts';
import type { Peer } from '../../domain/mcp.ts';
import { changedList } from '../../domain/notices.ts';
import { wholesOf } from '../../domain/resource-uris.ts';
import { Listening } from './client-session-listening.ts';
import type { Binding, Listener, SessionDeps, SessionInstance } from './client-session-types.ts';

/** One for each conversation that sessions share, while they do. */
export class SharedBindings {
  readonly #alarm: SessionDeps['alarm'];
  readonly #bindings = new Map<SessionInstance, SharedBinding>();

  constructor(alarm: SessionDeps['alarm']) {
    this.#alarm = alarm;
  }

  /** How many conversations are shared now; for specs that look for leaks. */
  get size(): number {
    return this.#bindings.size;
  }

  /** A part for one more session, until it retires. `peer` is what the instance shows now. */
  join(ref: SessionInstance, peer: Peer): SharedBinding {
    const known = this.#bindings.get(ref);
    const binding = known?.peer === peer ? known : this.#open(ref, peer);
    binding.join();
    return binding;
  }

  #open(ref: SessionInstance, peer: Peer): SharedBinding {
    const binding = new SharedBinding(ref, peer, this.#alarm, () => {
      if (this.#bindings.get(ref) === binding) this.#bindings.delete(ref);
    });
    this.#bindings.set(ref, binding);
    return binding;
  }
}

export class SharedBinding implements Binding {
  readonly ref: SessionInstance;
  readonly peer: Peer;
  readonly upstream = undefined;
  readonly #alarm: SessionDeps['alarm'];
  readonly #emptied: () => void;
  #sessions = 0;
  readonly #listeners = new Set<Listener>();
  /** How many listeners subscribed to each resource. */
  readonly #wanted = new Map<string, number>();
  #hearing: Subscription | undefined;
  #listening: Listening | undefined;

  constructor(ref: SessionInstance, peer: Peer, alarm: SessionDeps['alarm'], emptied: () => void) {
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

  listen(listener: Listener): () => void {
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

  /** A modern backend only says what it is asked for; the others say everything there is. */
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
