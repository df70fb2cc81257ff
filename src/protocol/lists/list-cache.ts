// Keeps the answers of list requests: one listing for all who ask at the same time, served from memory while it is
// fresh and who gave it is there, and again when no instance can answer. What may be shared with whom is the key's business
// (cached-backends.ts).

import { catchError, defer, filter, type Observable, of, ReplaySubject, share, tap, throwError } from 'rxjs';
import { GatewayError } from '../../domain/errors.ts';
import { type Answer, isFinal } from '../../domain/exchange.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { ListField } from '../../domain/mcp.ts';
import { KeptLists, ListMemory } from './list-memory.ts';

/** Lists kept, and the largest that is. */
const MOST_LISTS = 1_000;
const LARGEST_LIST_BYTES = 1024 * 1024;
/** How long a list stays fresh that says nothing of it: servers of the legacy era tell when it changes. */
const UNTOLD_FRESH_MS = 30_000;
const LONGEST_FRESH_MS = 60 * 60_000;
/** How long a list may stand in for one that nobody can give. */
const STAND_IN_MS = 10 * 60_000;

interface Kept {
  readonly list: ListField;
  readonly answer: Answer;
  freshUntilMs: number;
  readonly keptUntilMs: number;
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
  readonly #kept: KeptLists<Kept>;
  readonly #loading = new Map<string, Observable<Answer>>();
  /** Counts the changes of each list: what was asked for before one is not kept. */
  readonly #changes = new Map<ListField, number>();

  constructor({ now, isThere = () => true, memory = new ListMemory() }: ListCacheOptions) {
    this.#now = now;
    this.#isThere = isThere;
    this.#kept = new KeptLists(MOST_LISTS, memory);
  }

  /** Emits the answer of the key: kept, on its way already, or from `load`. Errors like `load`, if nothing stands in. */
  serve(key: ListKey, load: () => Observable<Answer>): Observable<Answer> {
    return defer(() => {
      const kept = this.#find(key);
      if (kept !== undefined && this.#isFresh(kept)) return of(kept.answer);
      return this.#load(key, load).pipe(catchError((thrown) => this.#standIn(key, thrown)));
    });
  }

  /** A backend said that the list changed: what is kept only stands in from now on. */
  change(list: ListField): void {
    this.#changes.set(list, this.#changesOf(list) + 1);
    for (const kept of this.#kept.values()) if (kept.list === list) kept.freshUntilMs = 0;
    this.#loading.clear(); // who asks from here on must not be given what was listed before
  }

  /** Whoever could list is gone for good: nothing stands in. */
  forget(): void {
    for (const list of LISTS) this.change(list);
    this.#kept.clear();
  }

  #isFresh({ freshUntilMs, answer }: Kept): boolean {
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
          if (changes === this.#changesOf(key.list)) this.#keep(key, answer);
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

  #keep({ list, everybody, own }: ListKey, answer: Answer): void {
    const { event } = answer;
    if (event.kind !== 'result') return;
    const { byteLength } = event.result.bytes;
    if (byteLength > LARGEST_LIST_BYTES) return;
    const { freshMs, isForEverybody } = lifeOf(event.result.value);
    const now = this.#now();
    const remembered: Answer = { ...answer, isRemembered: true };
    const kept = { list, answer: remembered, freshUntilMs: now + freshMs, keptUntilMs: now + STAND_IN_MS };
    this.#kept.set(isForEverybody ? everybody : own, kept, byteLength);
  }

  #find({ everybody, own }: ListKey): Kept | undefined {
    for (const key of [everybody, own]) {
      const kept = this.#kept.get(key);
      if (kept === undefined) continue;
      if (kept.keptUntilMs > this.#now()) return kept;
      this.#kept.delete(key);
    }
    return undefined;
  }

  #standIn(key: ListKey, thrown: unknown): Observable<Answer> {
    const kept = isAbsence(thrown) ? this.#find(key) : undefined;
    return kept === undefined ? throwError(() => thrown) : of(kept.answer);
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
