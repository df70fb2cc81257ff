// Backends whose lists come from memory while they are fresh. A session with a conversation of its own always asks its
// backend, because what a server lists may depend on what was said there before.

import type { Observable, Subscription } from 'rxjs';
import { type ClientProfile, capabilitiesKey } from '../domain/client.ts';
import type { Answer, ExchangeRequest } from '../domain/exchange.ts';
import type { JsonObject } from '../domain/json.ts';
import type { ListField } from '../domain/mcp.ts';
import { shortKey } from './client-bounds.ts';
import { ListCache, type ListKey } from './list-cache.ts';
import type { ListMemory } from './list-memory.ts';
import { listOf } from './list-methods.ts';
import type { Backends, Owner, Session, SessionlessOptions, Stay, WantedChanges } from './ports.ts';

/** Other backends, with a memory for lists in front. Whoever makes it closes it. */
export class CachedBackends implements Backends {
  readonly #inner: Backends;
  readonly #cache: ListCache;
  readonly #subscription: Subscription;
  readonly #sessions = new WeakMap<Session, CachedSession>();

  /** `now` is a monotonic clock in ms; `memory` is the room for lists, which several may share. */
  constructor(inner: Backends, now: () => number, memory?: ListMemory) {
    this.#inner = inner;
    this.#cache = new ListCache(now, memory);
    this.#subscription = inner.listChanged$.subscribe((list) => this.#change(list));
  }

  get listChanged$() {
    return this.#inner.listChanged$;
  }

  peers(owner: Owner) {
    return this.#inner.peers(owner);
  }

  tool(name: string, owner?: Owner) {
    return this.#inner.tool(name, owner);
  }

  changes(owner: Owner, profile: ClientProfile, wanted: WantedChanges) {
    return this.#inner.changes(owner, profile, wanted);
  }

  async openSession(owner: Owner, profile: ClientProfile, signal?: AbortSignal): Promise<Session> {
    return this.#cached(await this.#inner.openSession(owner, profile, signal));
  }

  session(id: string, owner: Owner): Session | undefined {
    const session = this.#inner.session(id, owner);
    return session === undefined ? undefined : this.#cached(session);
  }

  exchange(request: ExchangeRequest, options: SessionlessOptions): Observable<Answer> {
    const { profile, owner, instanceId } = options;
    const load = () => this.#inner.exchange(request, options);
    const key = keyOf(request, `owner ${owner.id} at ${instanceId ?? ''}`, profile);
    return key === undefined ? load() : this.#cache.serve(key, load);
  }

  /** Lets go of the backends. */
  close(): void {
    this.#subscription.unsubscribe();
  }

  /** Backends have one notice for resources and for their templates. */
  #change(list: ListField): void {
    this.#cache.change(list);
    if (list === 'resources') this.#cache.change('resourceTemplates');
  }

  #cached(session: Session): Session {
    const known = this.#sessions.get(session);
    if (known !== undefined) return known;
    const cached = new CachedSession(session, this.#cache);
    this.#sessions.set(session, cached);
    return cached;
  }
}

/** A session that shares its conversation, and therefore also what is listed there. */
class CachedSession implements Session {
  readonly #inner: Session;
  readonly #cache: ListCache;

  constructor(inner: Session, cache: ListCache) {
    this.#inner = inner;
    this.#cache = cache;
  }

  get id() {
    return this.#inner.id;
  }
  get ownerId() {
    return this.#inner.ownerId;
  }
  get profile() {
    return this.#inner.profile;
  }
  get peer() {
    return this.#inner.peer;
  }
  get isShared() {
    return this.#inner.isShared;
  }
  get logLevel() {
    return this.#inner.logLevel;
  }
  get messages$() {
    return this.#inner.messages$;
  }
  get opening() {
    return this.#inner.opening;
  }
  get ended$() {
    return this.#inner.ended$;
  }

  exchange(request: ExchangeRequest): Observable<Answer> {
    if (listOf(request.method) === undefined || !this.#inner.isShared) return this.#inner.exchange(request);
    const { profile, ownerId } = this.#inner;
    const key = keyOf(request, `session of ${ownerId}`, profile);
    const load = () => this.#inner.exchange(request);
    return key === undefined ? load() : this.#cache.serve(key, load);
  }

  stay(instanceId: string): Stay {
    return this.#inner.stay(instanceId);
  }

  notify(method: string, params: JsonObject): void {
    this.#inner.notify(method, params);
  }

  hold(): () => void {
    return this.#inner.hold();
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}

/** Undefined for what is no list, and for a list request with parameters nobody here knows. */
function keyOf(request: ExchangeRequest, whose: string, profile: ClientProfile): ListKey | undefined {
  const list = listOf(request.method);
  if (list === undefined) return undefined;
  const { cursor = null, _meta, ...others } = request.params ?? {};
  if (Object.keys(others).length > 0) return undefined;
  const what = `${list} ${shortKey(JSON.stringify(cursor), capabilitiesKey(profile.capabilities))}`;
  return { list, everybody: `everybody ${what}`, own: `${whose} ${what}` };
}
