// Answers list requests for one template from a cache. Concurrent requests share one listing; its result is served while
// it is fresh and its instance is connected, and also when stale if no instance can answer. A session with a dedicated
// conversation always asks its backend, because its lists may depend on earlier requests there. Every session gets a
// notice when lists change because instances come or go (list-notices.ts). Source: ADR 28.

import { randomUUID } from 'node:crypto';
import {
  catchError,
  defer,
  filter,
  mergeMap,
  type Observable,
  of,
  Subject,
  type Subscription,
  shareReplay,
  tap,
} from 'rxjs';
import type { ExchangeRequest, SourcedEvent } from '../domain/calls/exchange.ts';
import { isFinal } from '../domain/calls/exchange-event.ts';
import { GatewayError, hasCode } from '../domain/errors/errors.ts';
import { canonicalText, type JsonText } from '../domain/json/json.ts';
import { memberBytes, memberText } from '../domain/json/json-scanner.ts';
import type { ClientProfile, Notification, ServerMessage, StatelessOptions } from '../domain/mcp/client.ts';
import { announcesChanges, type Handshake, type ListField, listReturnedBy } from '../domain/mcp/mcp.ts';
import type { FairLruMap } from '../domain/memory/fair-lru-map.ts';
import type { McpSession } from '../domain/sessions/mcp-session.ts';
import type { AnySessionValue } from '../domain/sessions/session-value.ts';
import { HOUR_MS } from '../domain/time/clock.ts';
import type { Timing } from '../domain/time/task-scheduler.ts';
import { shortKey } from './client-bounds.ts';
import { withListNotices } from './list-notices.ts';

/** The most bytes of the stored lists of all templates, and of one stored list, as JSON. Parsed values come on top. */
export const CACHE_BYTES = 32 * 1024 * 1024;
const MAX_LIST_BYTES = 1024 * 1024;
/** The time for which a list without `ttlMs` stays fresh, in ms. Servers of the legacy era send a notice when it changes. */
const DEFAULT_FRESH_MS = 30_000;
const MAX_FRESH_MS = HOUR_MS;
/** The time after its storing in which a list may be served while no instance answers, in ms. */
const MAX_STALE_MS = 10 * 60_000;

interface StoredAnswer {
  readonly answer: SourcedEvent;
  readonly bytes: number;
  readonly freshUntilMs: number;
  readonly storedAtMs: number;
  readonly storedUntilMs: number;
  /** The number of changes of the list before this answer; after a further change the answer is stale. */
  readonly changes: number;
}

interface ListKeyOptions {
  readonly request: ExchangeRequest;
  readonly profile: ClientProfile;
  readonly ownerId: string;
  /** The only instance that may answer. Default: any may. */
  readonly instanceId?: string | undefined;
  /** The id of the handshake of a session: only its conversation may answer. Default: there is no session. */
  readonly handshakeId?: string;
}

/** The keys of an answer: one for all callers, and one for this caller. */
interface ListKey {
  readonly list: ListField;
  readonly ownerId: string;
  readonly everyone: string;
  readonly own: string;
}

export interface TemplateListsDeps extends Timing {
  /** Emits lists that changed; `resources` includes resource templates. Completes with the gateway. */
  readonly listChanged$: Observable<ListField>;
  /** The notices for this owner alone; undefined when there are none. Hot. */
  readonly noticesFor?: ((ownerId: string) => Observable<Notification> | undefined) | undefined;
  /** False when no instance is or was connected: no stale list may be served then. */
  readonly hasHandshakes: () => boolean;
  /** False when the instance is gone, so that its next pages cannot be read. */
  readonly isThere: (instanceId: string) => boolean;
  /** The lists of all templates, within CACHE_BYTES. The owner is the caller for which a list was read. */
  readonly cache: FairLruMap<StoredAnswer>;
}

/** The cached lists of one template, until `close`. */
export class TemplateLists {
  readonly #deps: TemplateListsDeps;
  /** A part of every key. Not the name of the template, which another template may get later. */
  readonly #id = randomUUID();
  readonly #watch: Subscription;
  /** Emits like `listChanged$`, but with one subscription to it for all sessions, of which there may be many. */
  readonly #changed = new Subject<ListField>();
  readonly #loading = new Map<string, Observable<SourcedEvent>>();
  readonly #changes = new Map<ListField, number>();
  readonly #handshakeIds = new WeakMap<Handshake, string>();
  /** A part of every key: after a time without handshakes, lists from before are not found. */
  #timesWithoutHandshakes = 0;

  constructor(deps: TemplateListsDeps) {
    this.#deps = deps;
    this.#watch = deps.listChanged$.subscribe((list) => {
      if (!deps.hasHandshakes()) this.#timesWithoutHandshakes += 1; // the next server may be another one
      this.noteChange(list);
      this.#changed.next(list);
    });
  }

  close(): void {
    this.#watch.unsubscribe();
    this.#changed.complete();
  }

  /** Makes stored lists of this kind stale. */
  noteChange(list: ListField | undefined): void {
    if (list !== undefined) this.#changes.set(list, this.#changesOf(list) + 1);
  }

  /** Answers one list request of a client without a session, from the cache or by `load`. */
  exchange(
    request: ExchangeRequest,
    { profile, owner, instanceId }: StatelessOptions,
    load: () => Observable<SourcedEvent>,
  ): Observable<SourcedEvent> {
    const key = this.#listKeyOf({ request, profile, ownerId: owner.id, instanceId });
    return key === undefined ? load() : this.#serve(key, load);
  }

  /**
   * Answers one list request of a session that shares the conversation of its instance. The cache is per
   * conversation, since a session could not call tools that only other instances list. A load that began in another
   * session may end with that session: this session then loads the list itself.
   */
  exchangeIn(
    { value: { profile, ownerId }, handshake }: Pick<McpSession, 'value' | 'handshake'>,
    request: ExchangeRequest,
    load: () => Observable<SourcedEvent>,
  ): Observable<SourcedEvent> {
    const handshakeId = this.#handshakeIds.get(handshake) ?? randomUUID();
    this.#handshakeIds.set(handshake, handshakeId);
    const key = this.#listKeyOf({ request, profile, ownerId, handshakeId });
    if (key === undefined) return load();
    return this.#serve(key, load).pipe(
      catchError((thrown) => {
        if (!hasCode(thrown, 'SESSION_NOT_FOUND')) throw thrown;
        return load();
      }),
    );
  }

  /**
   * The messages of a session, with notices of changed lists as far as its backend announced them in the
   * handshake, and with notices for its owner.
   */
  withNotices(
    messages$: Observable<ServerMessage>,
    { capabilities, ownerId }: Pick<Handshake, 'capabilities'> & Pick<AnySessionValue, 'ownerId'>,
  ): Observable<ServerMessage> {
    const changes$ = this.#changed.pipe(filter((list) => announcesChanges(capabilities, list)));
    const own$ = this.#deps.noticesFor?.(ownerId);
    return withListNotices(messages$, changes$, this.#deps, own$);
  }

  /** The keys of a request; undefined for any other method, and for unknown parameters. */
  #listKeyOf(options: ListKeyOptions): ListKey | undefined {
    const { request, profile, ownerId, instanceId = '', handshakeId = '' } = options;
    const list = listReturnedBy(request.method);
    if (list === undefined) return undefined;
    const { cursor = null, _meta, ...others } = request.params ?? {};
    if (Object.keys(others).length > 0) return undefined;
    const page = shortKey(JSON.stringify(cursor), canonicalText(profile.capabilities));
    const listKey = `${this.#id} ${this.#timesWithoutHandshakes} ${list} ${handshakeId} ${page}`;
    return {
      list,
      ownerId,
      everyone: `everyone ${listKey}`,
      own: `owner ${ownerId} at ${instanceId} ${listKey}`,
    };
  }

  /**
   * Emits the answer of the key: a stored one, one under way, or that of `load`. Errors like `load` if there is no
   * stale answer either.
   */
  #serve(key: ListKey, load: () => Observable<SourcedEvent>): Observable<SourcedEvent> {
    const { clock, isThere } = this.#deps;
    return defer(() => {
      const stored = this.#find(key);
      const isFresh =
        stored !== undefined &&
        stored.freshUntilMs > clock.now() &&
        stored.changes === this.#changesOf(key.list);
      if (isFresh && isThere(stored.answer.instanceId)) return of(stored.answer);
      return this.#load(key, load).pipe(catchError((thrown) => of(this.#staleAnswer(key, thrown))));
    });
  }

  /** Loads a list. Requests after a change do not share a load that began before it. */
  #load(key: ListKey, load: () => Observable<SourcedEvent>): Observable<SourcedEvent> {
    const changes = this.#changesOf(key.list);
    const loadKey = `${changes} ${key.own}`;
    const loading = this.#loading.get(loadKey);
    // A large answer is not shared: a copy for each of many clients at once would take too much memory.
    if (loading !== undefined)
      return loading.pipe(mergeMap((answer) => (isLarge(answer) ? finalOf(load) : of(answer))));
    const answer$ = finalOf(load).pipe(
      tap({
        next: (answer) => {
          if (changes === this.#changesOf(key.list)) this.#store(key, answer, changes);
        },
        finalize: () => this.#loading.delete(loadKey),
      }),
      shareReplay({ bufferSize: 1, refCount: true }),
    );
    this.#loading.set(loadKey, answer$);
    return answer$;
  }

  #store({ ownerId, everyone, own }: ListKey, answer: SourcedEvent, changes: number): void {
    const { event } = answer;
    if (event.kind !== 'result') return;
    if (isLarge(answer)) return;
    const bytes = event.result.bytes.byteLength;
    const { freshMs, isPublic } = cachingOf(event.result);
    const now = this.#deps.clock.now();
    const times = {
      storedAtMs: now,
      freshUntilMs: now + freshMs,
      storedUntilMs: now + Math.max(freshMs, MAX_STALE_MS),
    };
    const stored = { answer: { ...answer, isRemembered: true }, bytes, changes, ...times } as const;
    this.#deps.cache.set(ownerId, isPublic ? everyone : own, stored);
  }

  /** The newest stored answer of both keys, since the server may have changed whether the list is public. */
  #find({ everyone, own }: ListKey): StoredAnswer | undefined {
    const { cache, clock } = this.#deps;
    const found = [cache.get(own), cache.get(everyone)]
      .filter((each) => each !== undefined && each.storedUntilMs > clock.now())
      .toSorted((a, b) => (b?.storedAtMs ?? 0) - (a?.storedAtMs ?? 0));
    return found[0];
  }

  /** The stale answer when no instance could answer. Throws the error when there is none, and any other error. */
  #staleAnswer(key: ListKey, thrown: unknown): SourcedEvent {
    const isAbsence = thrown instanceof GatewayError && ABSENCE.has(thrown.code);
    const stored = isAbsence && this.#deps.hasHandshakes() ? this.#find(key) : undefined;
    if (stored === undefined) throw thrown;
    return { ...stored.answer, staleMs: this.#deps.clock.now() - stored.storedAtMs };
  }

  #changesOf(list: ListField): number {
    return this.#changes.get(list === 'resourceTemplates' ? 'resources' : list) ?? 0;
  }
}

function finalOf(load: () => Observable<SourcedEvent>): Observable<SourcedEvent> {
  return defer(load).pipe(filter(({ event }) => isFinal(event)));
}

function isLarge({ event }: SourcedEvent): boolean {
  return event.kind === 'result' && event.result.bytes.byteLength > MAX_LIST_BYTES;
}

/**
 * The caching fields of a list. Without a scope it is private to its caller. Source: MCP 2026-07-28
 * server/utilities/caching.
 */
function cachingOf({ bytes }: JsonText): { readonly freshMs: number; readonly isPublic: boolean } {
  const ttlMs = Number(memberBytes(bytes, 'ttlMs')?.toString());
  const cacheScope = memberText(bytes, 'cacheScope');
  const isGiven = ttlMs >= 0;
  return {
    freshMs: isGiven ? Math.min(ttlMs, MAX_FRESH_MS) : DEFAULT_FRESH_MS,
    isPublic: cacheScope === 'public',
  };
}

const ABSENCE: ReadonlySet<string> = new Set([
  'NO_HEALTHY_INSTANCE',
  'BACKEND_UNAVAILABLE',
  'BACKEND_TIMEOUT',
]);
