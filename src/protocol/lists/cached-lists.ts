// Answers requests for the lists of one template from a cache while they are fresh. A session with a dedicated conversation always asks its backend,
// because the lists of a server may depend on earlier requests there. Every session gets a notice when lists change because
// instances come or go: one notice for many changes, at a bounded rate.

import {
  auditTime,
  connect,
  endWith,
  filter,
  groupBy,
  ignoreElements,
  map,
  merge,
  mergeMap,
  type Observable,
  Subject,
  type Subscription,
  takeUntil,
  throttleTime,
} from 'rxjs';
import type { ClientProfile, ServerMessage, ServerNotification } from '../../domain/client.ts';
import type { Answer, ExchangeRequest } from '../../domain/exchange.ts';
import { canonicalText, type JsonObject } from '../../domain/json.ts';
import {
  announcesChanges,
  changedList,
  LIST_NOTICES,
  type ListField,
  listOf,
  type Peer,
} from '../../domain/mcp.ts';
import { shortKey } from '../client-bounds.ts';
import type { McpSession, Reservation, SessionlessOptions } from '../ports.ts';
import { ListCache, type ListCacheOptions, type ListKey } from './list-cache.ts';

export interface CachedListsOptions extends ListCacheOptions {
  /** Changes of the lists; `resources` includes resource templates. */
  readonly listChanged$: Observable<ListField>;
  /** False when no instance is or was connected: then no stale list may be served. Default: always true. */
  readonly hasPeers?: () => boolean;
}

/** Shared by all sessions of one template. */
interface CachedSessionDeps {
  readonly cache: ListCache;
  /** Like `listChanged$`, but with one subscription for all sessions: there may be many. */
  readonly changes$: Observable<ListField>;
  /** A different number for each conversation. */
  numberOf(peer: Peer): number;
}

/** The lists of one template. The caller closes it. */
export class CachedLists {
  readonly #cache: ListCache;
  readonly #hasPeers: () => boolean;
  readonly #subscription: Subscription;
  readonly #sessions = new WeakMap<McpSession, CachedSession>();
  readonly #deps: CachedSessionDeps;

  constructor({ listChanged$, hasPeers = () => true, ...options }: CachedListsOptions) {
    const cache = new ListCache(options);
    const changes$ = new Subject<ListField>();
    this.#cache = cache;
    this.#hasPeers = hasPeers;
    this.#deps = { cache, changes$, numberOf: numbering() };
    this.#subscription = listChanged$.subscribe((list) => {
      cache.change(list);
      if (list === 'resources') cache.change('resourceTemplates');
      changes$.next(list);
    });
  }

  /** One request of a client without a session, from the cache or by `load`. */
  exchange(
    request: ExchangeRequest,
    { profile, owner, instanceId }: SessionlessOptions,
    load: () => Observable<Answer>,
  ): Observable<Answer> {
    const key = keyOf(request, `owner ${owner.id} at ${instanceId ?? ''}`, profile);
    if (key === undefined) return load();
    if (!this.#hasPeers()) this.#cache.forget();
    return this.#cache.serve(key, load);
  }

  /** The session, with lists from the cache and with notices of their changes; always the same object for a session. */
  session(inner: McpSession): McpSession {
    const known = this.#sessions.get(inner);
    if (known !== undefined) return known;
    const session = new CachedSession(inner, this.#deps);
    this.#sessions.set(inner, session);
    return session;
  }

  /** Unsubscribes from the changes. */
  close(): void {
    this.#subscription.unsubscribe();
  }
}

/** A session whose lists are cached per conversation: it could not call the tools that only other instances list. */
class CachedSession implements McpSession {
  readonly id: string;
  readonly ownerId: string;
  readonly profile: ClientProfile;
  readonly #inner: McpSession;
  readonly #deps: CachedSessionDeps;
  /** The backend that the client knows from the handshake. */
  readonly #greeted: Peer;

  constructor(inner: McpSession, deps: CachedSessionDeps) {
    this.id = inner.id;
    this.ownerId = inner.ownerId;
    this.profile = inner.profile;
    this.#inner = inner;
    this.#deps = deps;
    this.#greeted = inner.peer;
  }

  get peer() {
    return this.#inner.peer;
  }
  get isShared() {
    return this.#inner.isShared;
  }
  get instanceId() {
    return this.#inner.instanceId;
  }
  get logLevel() {
    return this.#inner.logLevel;
  }
  get messages$() {
    const { capabilities } = this.#greeted;
    const changes$ = this.#deps.changes$.pipe(filter((list) => announcesChanges(capabilities, list)));
    return withListNotices(this.#inner.messages$, changes$);
  }
  get opening() {
    return this.#inner.opening;
  }
  get ended$() {
    return this.#inner.ended$;
  }

  at(instanceId: string): McpSession | undefined {
    return this.#inner.at(instanceId) === undefined ? undefined : this;
  }

  exchange(request: ExchangeRequest): Observable<Answer> {
    if (listOf(request.method) === undefined || !this.#inner.isShared) return this.#inner.exchange(request);
    const { profile, ownerId, peer } = this.#inner;
    const key = keyOf(request, `session of ${ownerId}`, profile, ` of ${this.#deps.numberOf(peer)}`);
    const load = () => this.#inner.exchange(request);
    return key === undefined ? load() : this.#deps.cache.serve(key, load);
  }

  reserve(...args: Parameters<McpSession['reserve']>): Reservation {
    return this.#inner.reserve(...args);
  }

  notify(method: string, params: JsonObject): void {
    this.#inner.notify(method, params);
  }

  hold(): () => void {
    return this.#inner.hold();
  }

  carry(): () => void {
    return this.#inner.carry();
  }

  setAway(isAway: boolean): void {
    this.#inner.setAway(isAway);
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}

/** Numbers conversations in their order. */
function numbering(): (peer: Peer) => number {
  const numbers = new WeakMap<Peer, number>();
  let last = 0;
  return (peer) => {
    const known = numbers.get(peer);
    if (known !== undefined) return known;
    last += 1;
    numbers.set(peer, last);
    return last;
  };
}

/**
 * Undefined for any other method, and for a list request with unknown parameters. `conversation`: of the list, when not every
 * instance may answer.
 */
function keyOf(
  request: ExchangeRequest,
  ownerKey: string,
  profile: ClientProfile,
  conversation = '',
): ListKey | undefined {
  const list = listOf(request.method);
  if (list === undefined) return undefined;
  const { cursor = null, _meta, ...others } = request.params ?? {};
  if (Object.keys(others).length > 0) return undefined;
  const listKey = `${list}${conversation} ${shortKey(JSON.stringify(cursor), canonicalText(profile.capabilities))}`;
  return { list, everyone: `everyone ${listKey}`, own: `${ownerKey} ${listKey}` };
}

/** Changes within this time are one notice. */
const AUDIT_MS = 50;
/** Shortest time between two notices of one kind. */
const THROTTLE_MS = 1_000;

/**
 * Notices of changed lists, at most one of each kind per THROTTLE_MS. The last change always leads to a notice, THROTTLE_MS and
 * AUDIT_MS after it at the latest.
 */
export function listNotices(changes$: Observable<ListField>): Observable<ServerNotification> {
  return changes$.pipe(
    map((list) => LIST_NOTICES[list]),
    groupBy((method) => method),
    mergeMap((same$) =>
      same$.pipe(
        auditTime(AUDIT_MS),
        throttleTime(THROTTLE_MS, undefined, { leading: true, trailing: true }),
      ),
    ),
    map((method) => ({ kind: 'notification', method, params: {} })),
  );
}

/**
 * The messages, whose notices of lists are merged with the changes as in `listNotices`. Completes with the messages, and drops
 * the pending notices.
 */
export function withListNotices<M extends ServerMessage>(
  messages$: Observable<M>,
  changes$: Observable<ListField>,
): Observable<M | ServerNotification> {
  return messages$.pipe(
    connect((shared$) => {
      const lists$ = shared$.pipe(
        map(({ method }) => changedList(method)),
        filter((list) => list !== undefined),
      );
      const others$ = shared$.pipe(filter(({ method }) => changedList(method) === undefined));
      const ended$ = shared$.pipe(ignoreElements(), endWith(true));
      return merge(listNotices(merge(changes$, lists$)).pipe(takeUntil(ended$)), others$);
    }),
  );
}
