// Answers list requests for one template from a cache. Concurrent requests share one listing; its result is served while
// it is fresh and its instance is connected, and also when stale if no instance can answer. A session with a dedicated
// conversation always asks its backend, because its lists may depend on earlier requests there. Every session gets a
// notice when lists change because instances come or go: one notice for many changes, at a bounded rate. Source: ADR 28.

import { randomUUID } from 'node:crypto';
import {
  audit,
  catchError,
  connect,
  defer,
  EMPTY,
  endWith,
  filter,
  groupBy,
  ignoreElements,
  map,
  merge,
  mergeMap,
  type Observable,
  of,
  Subject,
  type Subscription,
  shareReplay,
  takeUntil,
  tap,
  throttle,
} from 'rxjs';
import type { Answer, ExchangeRequest } from '../domain/calls/exchange.ts';
import { isFinal } from '../domain/calls/exchange-event.ts';
import { GatewayError, hasCode } from '../domain/errors/errors.ts';
import { canonicalText, type JsonText } from '../domain/json/json.ts';
import { memberBytes, memberText } from '../domain/json/json-scanner.ts';
import {
  type ClientProfile,
  listNotice,
  type ServerMessage,
  type ServerNotification,
} from '../domain/mcp/client.ts';
import { announcesChanges, changedList, type Handshake, type ListField, listOf } from '../domain/mcp/mcp.ts';
import { UserAmounts } from '../domain/memory/user-shares.ts';
import type { McpSession } from '../domain/sessions/mcp-session.ts';
import type { TaskScheduler } from '../domain/tasks/task-scheduler.ts';
import { inTask } from '../domain/tasks/task-streams.ts';
import type { Clock } from '../domain/time/clock.ts';
import { timer$ } from '../domain/time/clock-streams.ts';
import { shortKey } from './client-bounds.ts';
import type { StatelessOptions } from './endpoint-backends.ts';

/** The most bytes of all stored lists, and of one stored list, as JSON. Parsed values come on top. */
const MAX_BYTES = 32 * 1024 * 1024;
const LARGEST_LIST_BYTES = 1024 * 1024;
/** The approximate memory of an entry besides its list, in bytes. */
const ENTRY_BYTES = 1024;
/** How long a list without `ttlMs` stays fresh, in ms. Servers of the legacy era send a notice when it changes. */
const DEFAULT_FRESH_MS = 30_000;
const LONGEST_FRESH_MS = 60 * 60_000;
/** How long after it was stored a list may be served while no instance answers, in ms. */
const MAX_STALE_MS = 10 * 60_000;

interface StoredAnswer {
  readonly answer: Answer;
  readonly bytes: number;
  readonly freshUntilMs: number;
  readonly storedAtMs: number;
  readonly storedUntilMs: number;
  /** The number of changes of the list before this answer; after a further change the answer is stale. */
  readonly changes: number;
}

interface OwnedList<V> {
  readonly ownerId: string;
  readonly bytes: number;
  readonly value: V;
}

/**
 * The stored lists of a gateway. To make room, an owner that holds its share or more loses its least recently used
 * list, so that a caller that reads pages without end takes nothing from others.
 */
export class ListCache<V extends { readonly bytes: number } = StoredAnswer> {
  readonly #mostBytes: number;
  readonly #held = new UserAmounts();
  /** The lists, the least recently used one first. */
  readonly #lists = new Map<string, OwnedList<V>>();

  constructor(mostBytes: number = MAX_BYTES) {
    this.#mostBytes = mostBytes;
  }

  get(key: string): V | undefined {
    const list = this.#lists.get(key);
    if (list === undefined) return undefined;
    this.#lists.delete(key);
    this.#lists.set(key, list);
    return list.value;
  }

  /** Stores a list. The owner is the caller for which the list was read. */
  set(ownerId: string, key: string, value: V): void {
    this.#delete(key);
    const bytes = value.bytes + ENTRY_BYTES;
    this.#lists.set(key, { ownerId, bytes, value });
    this.#held.add(ownerId, bytes);
    while (this.#held.total > this.#mostBytes) this.#makeRoom();
  }

  #makeRoom(): void {
    const share = this.#held.total / this.#held.size;
    for (const [key, { ownerId }] of this.#lists) {
      if (this.#held.held(ownerId) < share) continue;
      this.#delete(key);
      return;
    }
  }

  #delete(key: string): void {
    const list = this.#lists.get(key);
    if (list === undefined) return;
    this.#lists.delete(key);
    this.#held.add(list.ownerId, -list.bytes);
  }
}

/** The keys of an answer: one for all callers, and one for this caller. */
interface ListKey {
  readonly list: ListField;
  readonly ownerId: string;
  readonly everyone: string;
  readonly own: string;
}

export interface TemplateListsOptions {
  /** Emits lists that changed; `resources` includes resource templates. Completes with the gateway. */
  readonly listChanged$: Observable<ListField>;
  /** Returns the notices for this owner alone; undefined when there are none. Hot. */
  readonly noticesFor?: ((ownerId: string) => Observable<ServerNotification> | undefined) | undefined;
  /** Returns false when no instance is or was connected: no stale list may be served then. */
  readonly hasHandshakes: () => boolean;
  /** Returns false when the instance is gone, so that its next pages cannot be read. */
  readonly isThere: (instanceId: string) => boolean;
  readonly clock: Clock;
  /** Runs a task, in a later turn of the event loop when many are due. */
  readonly run: TaskScheduler['run'];
  /** The cache of the lists of all templates. */
  readonly cache: ListCache;
}

/** The cached lists of one template, until `close`. */
export class TemplateLists {
  readonly #options: TemplateListsOptions;
  /** A part of every key. Not the name of the template, which another template may get later. */
  readonly #id = randomUUID();
  readonly #watch: Subscription;
  /** Emits like `listChanged$`, but with one subscription to it for all sessions, of which there may be many. */
  readonly #changed = new Subject<ListField>();
  readonly #loading = new Map<string, Observable<Answer>>();
  readonly #changes = new Map<ListField, number>();
  readonly #handshakeIds = new WeakMap<Handshake, string>();
  /** A part of every key: after a time without handshakes, lists from before are not found. */
  #timesWithoutHandshakes = 0;

  constructor(options: TemplateListsOptions) {
    this.#options = options;
    this.#watch = options.listChanged$.subscribe((list) => {
      if (!options.hasHandshakes()) this.#timesWithoutHandshakes += 1; // the next server may be another one
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
    load: () => Observable<Answer>,
  ): Observable<Answer> {
    const key = this.#listKeyOf(request, owner.id, `owner ${owner.id} at ${instanceId ?? ''}`, profile);
    return key === undefined ? load() : this.#serve(key, load);
  }

  /**
   * Answers one list request of a session that shares the conversation of its instance. The cache is per
   * conversation, since a session could not call tools that only other instances list. A load that began in another
   * session may end with that session: this session then loads the list itself.
   */
  exchangeIn(
    { profile, ownerId, handshake }: Pick<McpSession, 'profile' | 'ownerId' | 'handshake'>,
    request: ExchangeRequest,
    load: () => Observable<Answer>,
  ): Observable<Answer> {
    const id = this.#handshakeIds.get(handshake) ?? randomUUID();
    this.#handshakeIds.set(handshake, id);
    const key = this.#listKeyOf(request, ownerId, `session of ${ownerId}`, profile, ` of ${id}`);
    if (key === undefined) return load();
    return this.#serve(key, load).pipe(
      catchError((thrown) => {
        if (!hasCode(thrown, 'SESSION_NOT_FOUND')) throw thrown;
        return load();
      }),
    );
  }

  /**
   * Returns the messages of a session, with notices of changed lists as far as its backend announced them in the
   * handshake, and with notices for its owner.
   */
  withNotices(
    messages$: Observable<ServerMessage>,
    { capabilities, ownerId }: Pick<Handshake, 'capabilities'> & Pick<McpSession, 'ownerId'>,
  ): Observable<ServerMessage> {
    const changes$ = this.#changed.pipe(filter((list) => announcesChanges(capabilities, list)));
    const own$ = this.#options.noticesFor?.(ownerId);
    return withListNotices(messages$, changes$, this.#options, own$);
  }

  /**
   * Returns the keys of a request; undefined for any other method, and for unknown parameters. `conversation`: given
   * when not every instance may answer.
   */
  #listKeyOf(
    request: ExchangeRequest,
    ownerId: string,
    targetKey: string,
    profile: ClientProfile,
    conversation = '',
  ): ListKey | undefined {
    const list = listOf(request.method);
    if (list === undefined) return undefined;
    const { cursor = null, _meta, ...others } = request.params ?? {};
    if (Object.keys(others).length > 0) return undefined;
    const page = shortKey(JSON.stringify(cursor), canonicalText(profile.capabilities));
    const listKey = `${this.#id} ${this.#timesWithoutHandshakes} ${list}${conversation} ${page}`;
    return { list, ownerId, everyone: `everyone ${listKey}`, own: `${targetKey} ${listKey}` };
  }

  /**
   * Emits the answer of the key: a stored one, one under way, or that of `load`. Errors like `load` if there is no
   * stale answer either.
   */
  #serve(key: ListKey, load: () => Observable<Answer>): Observable<Answer> {
    const { clock, isThere } = this.#options;
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
  #load(key: ListKey, load: () => Observable<Answer>): Observable<Answer> {
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

  #store({ ownerId, everyone, own }: ListKey, answer: Answer, changes: number): void {
    const { event } = answer;
    if (event.kind !== 'result') return;
    if (isLarge(answer)) return;
    const bytes = event.result.bytes.byteLength;
    const { freshMs, isPublic } = cachingOf(event.result);
    const now = this.#options.clock.now();
    const times = {
      storedAtMs: now,
      freshUntilMs: now + freshMs,
      storedUntilMs: now + Math.max(freshMs, MAX_STALE_MS),
    };
    const stored = { answer: { ...answer, isRemembered: true }, bytes, changes, ...times } as const;
    this.#options.cache.set(ownerId, isPublic ? everyone : own, stored);
  }

  /** Returns the newest stored answer of both keys, since the server may have changed whether the list is public. */
  #find({ everyone, own }: ListKey): StoredAnswer | undefined {
    const { cache, clock } = this.#options;
    const found = [cache.get(own), cache.get(everyone)]
      .filter((stored) => stored !== undefined && stored.storedUntilMs > clock.now())
      .toSorted((a, b) => (b?.storedAtMs ?? 0) - (a?.storedAtMs ?? 0));
    return found[0];
  }

  /** Returns the stale answer when no instance could answer. Throws the error when there is none, and any other error. */
  #staleAnswer(key: ListKey, thrown: unknown): Answer {
    const isAbsence = thrown instanceof GatewayError && ABSENCE.has(thrown.code);
    const stored = isAbsence && this.#options.hasHandshakes() ? this.#find(key) : undefined;
    if (stored === undefined) throw thrown;
    return { ...stored.answer, staleMs: this.#options.clock.now() - stored.storedAtMs };
  }

  #changesOf(list: ListField): number {
    return this.#changes.get(list === 'resourceTemplates' ? 'resources' : list) ?? 0;
  }
}

function finalOf(load: () => Observable<Answer>): Observable<Answer> {
  return defer(load).pipe(filter(({ event }) => isFinal(event)));
}

function isLarge({ event }: Answer): boolean {
  return event.kind === 'result' && event.result.bytes.byteLength > LARGEST_LIST_BYTES;
}

/**
 * Returns the caching fields of a list. Without a scope it is private to its caller. Source: MCP 2026-07-28
 * server/utilities/caching.
 */
function cachingOf({ bytes }: JsonText): { readonly freshMs: number; readonly isPublic: boolean } {
  const ttlMs = Number(memberBytes(bytes, 'ttlMs')?.toString());
  const cacheScope = memberText(bytes, 'cacheScope');
  const isGiven = ttlMs >= 0;
  return {
    freshMs: isGiven ? Math.min(ttlMs, LONGEST_FRESH_MS) : DEFAULT_FRESH_MS,
    isPublic: cacheScope === 'public',
  };
}

const ABSENCE: ReadonlySet<string> = new Set([
  'NO_HEALTHY_INSTANCE',
  'BACKEND_UNAVAILABLE',
  'BACKEND_TIMEOUT',
]);

/** Changes within this time make one notice, in ms. */
const AUDIT_MS = 50;
/** The shortest time between two notices of one list, in ms. */
const THROTTLE_MS = 1_000;

/**
 * Adds notices of changed lists to messages: at most one per list and THROTTLE_MS, and the last change is always
 * announced. Notices have no params, since those of a backend may be meant for another client. Completes with the
 * messages. Each notice is a task of `run`, because thousands of clients may get it.
 */
export function withListNotices<M extends ServerMessage>(
  messages$: Observable<M>,
  changes$: Observable<ListField>,
  { run, clock }: Pick<TemplateListsOptions, 'run' | 'clock'>,
  own$: Observable<ServerNotification> = EMPTY,
): Observable<M | ServerNotification> {
  return messages$.pipe(
    connect((shared$) =>
      merge(shared$, own$, changes$.pipe(map(listNotice))).pipe(
        groupBy(({ method }) => changedList(method)),
        mergeMap((same$) => {
          const { key: list } = same$;
          if (list === undefined) return same$;
          const limited$ = same$.pipe(
            audit(() => timer$(clock, AUDIT_MS)),
            throttle(() => timer$(clock, THROTTLE_MS), BOTH),
          );
          return limited$.pipe(mergeMap(() => inTask(listNotice(list), { run })));
        }),
        takeUntil(shared$.pipe(ignoreElements(), endWith(true))),
      ),
    ),
  );
}

const BOTH = { leading: true, trailing: true };
