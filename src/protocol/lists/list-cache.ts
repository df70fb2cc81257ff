// Keeps the answers of list requests: one listing for all who ask at the same time, served from memory while it is
// fresh and who gave it is there, and again when no instance can answer. What may be shared with whom is the key's business
// (cached-backends.ts).

import { catchError, defer, filter, type Observable, of, ReplaySubject, share, tap, throwError } from 'rxjs';
import { GatewayError } from '../../domain/errors.ts';
import { type Answer, isFinal } from '../../domain/exchange.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { ListField } from '../../domain/mcp.ts';
import { LruMap } from '../lru-map.ts';

/** Lists kept, and the largest that is. */
const MOST_LISTS = 1_000;
const LARGEST_LIST_BYTES = 1024 * 1024;
/** How long a list stays fresh that says nothing of it: servers of the legacy era tell when it changes. */
const UNTOLD_FRESH_MS = 30_000;
const LONGEST_FRESH_MS = 60 * 60_000;
/** How long a list may stand in for one that nobody can give. */
const STAND_IN_MS = 10 * 60_000;

interface CachedList {
  readonly list: ListField;
  readonly answer: Answer;
  freshUntilMs: number;
  readonly storedUntilMs: number;
}

/** Where an answer may be looked for: everybody's, then the caller's own. */
export interface ListKey {
  readonly list: ListField;
  readonly everybody: string;
  readonly own: string;
}

export interface ListCacheOptions {
  /** Monotonic clock in ms. */
  readonly now: () => number;
  /** False when the instance has gone: its pages cannot be gone on with. Default: nobody goes. */
  readonly isThere?: ((instanceId: string) => boolean) | undefined;
  /** The room for lists, which several caches may share. Default: room of its own. */
  readonly memory?: ListMemory | undefined;
}

/** The answers of one template's list requests. */
export class ListCache {
  readonly #isThere: (instanceId: string) => boolean;
  readonly #now: () => number;
  readonly #lists: StoredLists<CachedList>;
  readonly #loading = new Map<string, Observable<Answer>>();
  /** Counts the changes of each list: what was asked for before one is not kept. */
  readonly #changes = new Map<ListField, number>();

  constructor({ now, isThere = () => true, memory = new ListMemory() }: ListCacheOptions) {
    this.#now = now;
    this.#isThere = isThere;
    this.#lists = new StoredLists(MOST_LISTS, memory);
  }

  /** Emits the answer of the key: kept, on its way already, or from `load`. Errors like `load`, if nothing stands in. */
  serve(key: ListKey, load: () => Observable<Answer>): Observable<Answer> {
    return defer(() => {
      const cached = this.#find(key);
      if (cached !== undefined && this.#isFresh(cached)) return of(cached.answer);
      return this.#load(key, load).pipe(catchError((thrown) => this.#standIn(key, thrown)));
    });
  }

  /** A backend said that the list changed: what is kept only stands in from now on. */
  change(list: ListField): void {
    this.#changes.set(list, this.#changesOf(list) + 1);
    for (const cached of this.#lists.values()) if (cached.list === list) cached.freshUntilMs = 0;
    this.#loading.clear(); // who asks from here on must not be given what was listed before
  }

  /** Whoever could list is gone for good: nothing stands in. */
  forget(): void {
    for (const list of LISTS) this.change(list);
    this.#lists.clear();
  }

  #isFresh({ freshUntilMs, answer }: CachedList): boolean {
    return freshUntilMs > this.#now() && this.#isThere(answer.instanceId);
  }

  #load(key: ListKey, load: () => Observable<Answer>): Observable<Answer> {
    const under = this.#loading.get(key.own);
    if (under !== undefined) return under;
    const changes = this.#changesOf(key.list);
    const flight: Observable<Answer> = defer(load).pipe(
      filter(({ event }) => isFinal(event)),
      tap({
        next: (answer) => {
          if (changes === this.#changesOf(key.list)) this.#store(key, answer);
        },
        finalize: () => {
          if (this.#loading.get(key.own) === flight) this.#loading.delete(key.own);
        },
      }),
      share({ connector: () => new ReplaySubject(1), resetOnComplete: false, resetOnError: false }),
    );
    this.#loading.set(key.own, flight);
    return flight;
  }

  #store({ list, everybody, own }: ListKey, answer: Answer): void {
    const { event } = answer;
    if (event.kind !== 'result') return;
    const { byteLength } = event.result.bytes;
    if (byteLength > LARGEST_LIST_BYTES) return;
    const { freshMs, isForEverybody } = lifeOf(event.result.value);
    const now = this.#now();
    const remembered: Answer = { ...answer, isRemembered: true };
    const cached = {
      list,
      answer: remembered,
      freshUntilMs: now + freshMs,
      storedUntilMs: now + STAND_IN_MS,
    };
    this.#lists.set(isForEverybody ? everybody : own, cached, byteLength);
  }

  #find({ everybody, own }: ListKey): CachedList | undefined {
    for (const key of [everybody, own]) {
      const cached = this.#lists.get(key);
      if (cached === undefined) continue;
      if (cached.storedUntilMs > this.#now()) return cached;
      this.#lists.delete(key);
    }
    return undefined;
  }

  #standIn(key: ListKey, thrown: unknown): Observable<Answer> {
    const cached = isAbsence(thrown) ? this.#find(key) : undefined;
    return cached === undefined ? throwError(() => thrown) : of(cached.answer);
  }

  #changesOf(list: ListField): number {
    return this.#changes.get(list) ?? 0;
  }
}

/** Source: MCP 2026-07-28 server/utilities/caching. A list that says nothing belongs to who asked. */
function lifeOf(result: unknown): { readonly freshMs: number; readonly isForEverybody: boolean } {
  const { ttlMs, cacheScope } = isJsonObject(result) ? result : {};
  const told = typeof ttlMs === 'number' && ttlMs >= 0;
  return {
    freshMs: told ? Math.min(ttlMs, LONGEST_FRESH_MS) : UNTOLD_FRESH_MS,
    isForEverybody: cacheScope === 'public',
  };
}

/** True when nobody is there to list: what was known is better than nothing. */
function isAbsence(thrown: unknown): boolean {
  return thrown instanceof GatewayError && ABSENCE.has(thrown.code);
}

const LISTS = ['tools', 'prompts', 'resources', 'resourceTemplates'] as const satisfies readonly ListField[];

const ABSENCE: ReadonlySet<string> = new Set([
  'NO_HEALTHY_INSTANCE',
  'BACKEND_UNAVAILABLE',
  'BACKEND_TIMEOUT',
]);

// The room that kept lists have together, whichever template or caller they are of: when there is none left, the list that was
// used least recently goes.

/** Bytes of JSON of all kept lists of one gateway. Values that were made of them come on top. */
const MOST_BYTES = 64 * 1024 * 1024;
/** What an entry takes besides its list, roughly: many small ones are no less than a few large ones. */
const ENTRY_BYTES = 1024;

interface Entry {
  readonly bytes: number;
  /** Takes it out of its cache. */
  readonly forget: () => void;
}

/** One budget for all caches of a gateway. */
export class ListMemory {
  readonly #mostBytes: number;
  /** Longest unused first. */
  readonly #entries = new Set<Entry>();
  #bytes = 0;

  constructor(mostBytes: number = MOST_BYTES) {
    this.#mostBytes = mostBytes;
  }

  /** Bytes that are taken. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Makes room for an entry; others may be forgotten for it. False when it is larger than all the room. */
  take(entry: Entry): boolean {
    if (entry.bytes > this.#mostBytes) return false;
    this.#entries.add(entry);
    this.#bytes += entry.bytes;
    for (const oldest of this.#entries) {
      if (this.#bytes <= this.#mostBytes) break;
      this.release(oldest);
      oldest.forget();
    }
    return true;
  }

  /** It was used: others go before it. */
  use(entry: Entry): void {
    if (this.#entries.delete(entry)) this.#entries.add(entry);
  }

  /** Gives back what an entry took. */
  release(entry: Entry): void {
    if (this.#entries.delete(entry)) this.#bytes -= entry.bytes;
  }
}

/** One cache in that memory: at most `most` lists. Reading one is using it. */
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

  /** Keeps a list of so many bytes of JSON, if there can be room for it. */
  set(key: string, value: V, bytes: number): void {
    this.delete(key);
    const entry = { value, bytes: bytes + ENTRY_BYTES, forget: () => this.#lists.delete(key) };
    if (this.#memory.take(entry)) this.#lists.set(key, entry);
  }

  delete(key: string): void {
    const entry = this.#lists.get(key);
    if (entry === undefined) return;
    this.#lists.delete(key);
    this.#memory.release(entry);
  }

  clear(): void {
    for (const entry of [...this.#lists.values()]) {
      entry.forget();
      this.#memory.release(entry);
    }
  }

  /** All of them, longest unused first; looking through them is not using them. */
  *values(): IterableIterator<V> {
    for (const { value } of this.#lists.values()) yield value;
  }
}
