// Caches the answers of list requests: one listing for all requests at the same time, served while it is fresh and its instance
// is connected, and stale when no instance can answer. The keys decide which clients share an answer.

import { catchError, defer, filter, type Observable, of, ReplaySubject, share, tap, throwError } from 'rxjs';
import { GatewayError } from '../../domain/errors.ts';
import { type Answer, isFinal } from '../../domain/exchange.ts';
import { isJsonObject } from '../../domain/json.ts';
import { LruMap } from '../../domain/lru-map.ts';
import type { ListField } from '../../domain/mcp.ts';

/** Number of stored lists, and the largest one that is stored. */
const MOST_LISTS = 1_000;
const LARGEST_LIST_BYTES = 1024 * 1024;
/** How long a list without `ttlMs` stays fresh: servers of the legacy era send a notice when it changes. */
const DEFAULT_FRESH_MS = 30_000;
const LONGEST_FRESH_MS = 60 * 60_000;
/** How long a stale list may be served while no instance answers. */
const MOST_STALE_MS = 10 * 60_000;

interface CachedList {
  readonly list: ListField;
  readonly answer: Answer;
  freshUntilMs: number;
  readonly storedUntilMs: number;
}

/** Keys of an answer: the public one, then the caller's own. */
export interface ListKey {
  readonly list: ListField;
  readonly everyone: string;
  readonly own: string;
}

export interface ListCacheOptions {
  /** Monotonic clock in ms. */
  readonly now: () => number;
  /** False when the instance is gone, so that its next pages cannot be read. Default: always true. */
  readonly isThere?: ((instanceId: string) => boolean) | undefined;
  /** The memory budget, which several caches may share. Default: a budget of its own. */
  readonly memory?: ListMemory | undefined;
}

/** The answers of one template's list requests. */
export class ListCache {
  readonly #isThere: (instanceId: string) => boolean;
  readonly #now: () => number;
  readonly #lists: StoredLists<CachedList>;
  readonly #loading = new Map<string, Observable<Answer>>();
  /** Counts the changes of each list: an answer to a request before a change is not stored. */
  readonly #changes = new Map<ListField, number>();

  constructor({ now, isThere = () => true, memory = new ListMemory() }: ListCacheOptions) {
    this.#now = now;
    this.#isThere = isThere;
    this.#lists = new StoredLists(MOST_LISTS, memory);
  }

  /** Emits the answer of the key: stored, under way, or from `load`. Errors like `load`, if there is no stale answer. */
  serve(key: ListKey, load: () => Observable<Answer>): Observable<Answer> {
    return defer(() => {
      const cached = this.#find(key);
      const isFresh = cached !== undefined && cached.freshUntilMs > this.#now();
      if (isFresh && this.#isThere(cached.answer.instanceId)) return of(cached.answer);
      return this.#load(key, load).pipe(catchError((thrown) => this.#staleAnswer(key, thrown)));
    });
  }

  /** The list changed: stored answers are stale from now on. */
  change(list: ListField): void {
    this.#changes.set(list, this.#changesOf(list) + 1);
    for (const cached of this.#lists.values()) if (cached.list === list) cached.freshUntilMs = 0;
    this.#loading.clear(); // later requests must not get the old list
  }

  /** Drops all lists: no stale answer is served. */
  forget(): void {
    for (const list of LISTS) this.change(list);
    this.#lists.clear();
  }

  #load(key: ListKey, load: () => Observable<Answer>): Observable<Answer> {
    const loading = this.#loading.get(key.own);
    if (loading !== undefined) return loading;
    const changes = this.#changesOf(key.list);
    const answer$: Observable<Answer> = defer(load).pipe(
      filter(({ event }) => isFinal(event)),
      tap({
        next: (answer) => {
          if (changes === this.#changesOf(key.list)) this.#store(key, answer);
        },
        finalize: () => {
          if (this.#loading.get(key.own) === answer$) this.#loading.delete(key.own);
        },
      }),
      share({ connector: () => new ReplaySubject(1), resetOnComplete: false, resetOnError: false }),
    );
    this.#loading.set(key.own, answer$);
    return answer$;
  }

  #store({ list, everyone, own }: ListKey, answer: Answer): void {
    const { event } = answer;
    if (event.kind !== 'result') return;
    const { byteLength } = event.result.bytes;
    if (byteLength > LARGEST_LIST_BYTES) return;
    const { freshMs, isPublic } = cachingOf(event.result.value);
    const now = this.#now();
    const remembered: Answer = { ...answer, isRemembered: true };
    const cached = {
      list,
      answer: remembered,
      freshUntilMs: now + freshMs,
      storedUntilMs: now + MOST_STALE_MS,
    };
    this.#lists.set(isPublic ? everyone : own, cached, byteLength);
  }

  #find({ everyone, own }: ListKey): CachedList | undefined {
    for (const key of [everyone, own]) {
      const cached = this.#lists.get(key);
      if (cached === undefined) continue;
      if (cached.storedUntilMs > this.#now()) return cached;
      this.#lists.delete(key);
    }
    return undefined;
  }

  #staleAnswer(key: ListKey, thrown: unknown): Observable<Answer> {
    const cached = isAbsence(thrown) ? this.#find(key) : undefined;
    return cached === undefined ? throwError(() => thrown) : of(cached.answer);
  }

  #changesOf(list: ListField): number {
    return this.#changes.get(list) ?? 0;
  }
}

/** Source: MCP 2026-07-28 server/utilities/caching. A list without a scope is private to its caller. */
function cachingOf(result: unknown): { readonly freshMs: number; readonly isPublic: boolean } {
  const { ttlMs, cacheScope } = isJsonObject(result) ? result : {};
  const isGiven = typeof ttlMs === 'number' && ttlMs >= 0;
  return {
    freshMs: isGiven ? Math.min(ttlMs, LONGEST_FRESH_MS) : DEFAULT_FRESH_MS,
    isPublic: cacheScope === 'public',
  };
}

/** True when no instance could answer: a stale list is better than an error. */
function isAbsence(thrown: unknown): boolean {
  return thrown instanceof GatewayError && ABSENCE.has(thrown.code);
}

const LISTS = ['tools', 'prompts', 'resources', 'resourceTemplates'] as const satisfies readonly ListField[];

const ABSENCE: ReadonlySet<string> = new Set([
  'NO_HEALTHY_INSTANCE',
  'BACKEND_UNAVAILABLE',
  'BACKEND_TIMEOUT',
]);

// The memory budget of stored lists, shared by all caches of a gateway: the least recently used list makes room.

/** Bytes of JSON of all stored lists of one gateway. Values made of them come on top. */
const MOST_BYTES = 64 * 1024 * 1024;
/** Approximate memory of an entry in addition to its list. */
const ENTRY_BYTES = 1024;

interface Entry {
  readonly bytes: number;
  /** Takes it out of its cache, and gives its room back. */
  readonly discard: () => void;
}

/** One budget for all caches of a gateway. */
export class ListMemory {
  readonly #mostBytes: number;
  /** Least recently used first. */
  readonly #entries = new Set<Entry>();
  #bytes = 0;

  constructor(mostBytes: number = MOST_BYTES) {
    this.#mostBytes = mostBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Makes room for an entry; others may be evicted for it. False when it is larger than the whole budget. */
  add(entry: Entry): boolean {
    if (entry.bytes > this.#mostBytes) return false;
    this.#entries.add(entry);
    this.#bytes += entry.bytes;
    for (const oldest of this.#entries) {
      if (this.#bytes <= this.#mostBytes) break;
      oldest.discard();
    }
    return true;
  }

  /** Marks the entry as used: others are evicted before it. */
  use(entry: Entry): void {
    if (this.#entries.delete(entry)) this.#entries.add(entry);
  }

  /** Gives back what an entry took. */
  release(entry: Entry): void {
    if (this.#entries.delete(entry)) this.#bytes -= entry.bytes;
  }
}

/** The lists of one cache, within that budget: at most `most`. Reading a list is using it. */
export class StoredLists<V> {
  readonly #memory: ListMemory;
  readonly #lists: LruMap<Entry & { readonly value: V }>;

  constructor(most: number, memory: ListMemory) {
    this.#memory = memory;
    this.#lists = new LruMap(most, (entry) => memory.release(entry));
  }

  get(key: string): V | undefined {
    const entry = this.#lists.get(key);
    if (entry === undefined) return undefined;
    this.#memory.use(entry);
    return entry.value;
  }

  /** Stores a list of so many bytes of JSON, if the budget allows it. */
  set(key: string, value: V, bytes: number): void {
    this.delete(key);
    const discard = (): void => {
      this.#lists.delete(key);
      this.#memory.release(entry);
    };
    const entry = { value, bytes: bytes + ENTRY_BYTES, discard };
    if (this.#memory.add(entry)) this.#lists.set(key, entry);
  }

  delete(key: string): void {
    this.#lists.get(key)?.discard();
  }

  clear(): void {
    for (const entry of [...this.#lists.values()]) entry.discard();
  }

  /** All lists, least recently used first; iterating is not using. */
  *values(): IterableIterator<V> {
    for (const { value } of this.#lists.values()) yield value;
  }
}
