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
import { canonicalText } from '../../domain/json.ts';
import {
  announcesChanges,
  changedList,
  LIST_NOTICES,
  type ListField,
  listOf,
  type Peer,
} from '../../domain/mcp.ts';
import { shortKey } from '../client-bounds.ts';
import type { McpSession, SessionlessOptions } from '../ports.ts';
import { ListCache, type ListCacheOptions, type ListKey } from './list-cache.ts';

export interface CachedListsOptions extends ListCacheOptions {
  /** Changes of the lists; `resources` includes resource templates. */
  readonly listChanged$: Observable<ListField>;
  /** False when no instance is or was connected: then no stale list may be served. Default: always true. */
  readonly hasPeers?: () => boolean;
}

/** The lists of one template. The caller closes it. */
export class CachedLists {
  readonly #cache: ListCache;
  readonly #hasPeers: () => boolean;
  readonly #subscription: Subscription;
  /** Like `listChanged$`, but with one subscription for all sessions: there may be many. */
  readonly #changes = new Subject<ListField>();
  /** A different number for each conversation. */
  readonly #numbers = new WeakMap<Peer, number>();
  #lastNumber = 0;

  constructor({ listChanged$, hasPeers = () => true, ...options }: CachedListsOptions) {
    const cache = new ListCache(options);
    this.#cache = cache;
    this.#hasPeers = hasPeers;
    this.#subscription = listChanged$.subscribe((list) => {
      cache.change(list);
      if (list === 'resources') cache.change('resourceTemplates');
      this.#changes.next(list);
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

  /** One list request in a session. The cache is per conversation: a session could not call the tools that only other instances list. */
  exchangeIn(
    { profile, ownerId, peer, isShared }: Pick<McpSession, 'profile' | 'ownerId' | 'peer' | 'isShared'>,
    request: ExchangeRequest,
    load: () => Observable<Answer>,
  ): Observable<Answer> {
    if (!isShared) return load();
    const key = keyOf(request, `session of ${ownerId}`, profile, ` of ${this.#numberOf(peer)}`);
    return key === undefined ? load() : this.#cache.serve(key, load);
  }

  /** The messages of a session, with notices of changed lists as far as its backend announced them in the handshake. */
  withNotices(messages$: Observable<ServerMessage>, { capabilities }: Peer): Observable<ServerMessage> {
    const changes$ = this.#changes.pipe(filter((list) => announcesChanges(capabilities, list)));
    return withListNotices(messages$, changes$);
  }

  /** Unsubscribes from the changes. */
  close(): void {
    this.#subscription.unsubscribe();
  }

  #numberOf(peer: Peer): number {
    const known = this.#numbers.get(peer);
    if (known !== undefined) return known;
    this.#lastNumber += 1;
    this.#numbers.set(peer, this.#lastNumber);
    return this.#lastNumber;
  }
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
