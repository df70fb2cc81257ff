// Keeps the lists of templates in the store, so that a gateway has them before its instances are healthy again. A list belongs to
// the capabilities of the clients that got it. No list is kept of a template whose servers are used with the accounts of users.
// When the store fails, there is no list. Source: ADR 117.

import { hash } from 'node:crypto';
import {
  canonicalText,
  isJsonObject,
  type JsonObject,
  jsonIn,
  parseExact,
} from '../../../domain/json/json.ts';
import type { ClientProfile } from '../../../domain/mcp/client.ts';
import type { ListField } from '../../../domain/mcp/mcp.ts';
import { jsonMemory } from '../../../domain/memory/held-bytes.ts';
import { LruMap } from '../../../domain/memory/lru-map.ts';
import { type Clock, DAY_MS } from '../../../domain/time/clock.ts';
import type { ListStore } from '../../../persistence/store.ts';
import { shortKey } from '../../client-bounds.ts';

/** The most lists whose stored content is known. Others are written again. */
const MAX_KNOWN = 10_000;
/** A list that does not change is written again after this time: the store drops lists that are not written for long. */
const AGAIN_MS = DAY_MS;

/** The pause after a write, as a multiple of its duration, so that callers cannot keep the store busy. */
const PAUSES = 4;

/** A list that is to be written. */
interface WaitingWrite {
  readonly key: string;
  readonly template: string;
  readonly items: readonly JsonObject[];
  /** The time at which the list was read, on the wall clock. */
  readonly readAtMs: number;
}

/** A list as it was read last. */
interface KeptList {
  readonly items: readonly JsonObject[];
  /** Memory of the items: see jsonMemory. */
  readonly bytes: number;
  readonly ageMs: number;
}

/** Keeps each list of a template as it was read last, for clients with equal capabilities. */
export class StoredLists {
  readonly #store: ListStore;
  readonly #clock: Clock;
  /** True for a template whose lists differ from user to user. */
  readonly #hasUserLists: (template: string) => boolean;
  /** The last write of each. */
  readonly #known = new LruMap<{ readonly digest: string; readonly savedAtMs: number }>(MAX_KNOWN);
  /** The digest of a list, by its items, so that the same ones are not written as text again. */
  readonly #digests = new WeakMap<readonly JsonObject[], string>();
  /**
   * The lists that wait for their write, by kind of list and template, the first being written: each for one kind of client at a
   * time. Others are written when they are read again.
   */
  readonly #waiting = new Map<string, WaitingWrite>();

  constructor(store: ListStore, clock: Clock, hasUserLists: (template: string) => boolean) {
    this.#store = store;
    this.#clock = clock;
    this.#hasUserLists = hasUserLists;
  }

  /** Resolves with undefined when there is none, or it cannot be read. Never rejects. */
  async find(
    template: string,
    list: ListField,
    { capabilities }: ClientProfile,
  ): Promise<KeptList | undefined> {
    if (this.#hasUserLists(template)) return undefined;
    const stored = await this.#store.find(listKey(template, list, capabilities)).catch(() => undefined);
    if (stored === undefined) return undefined;
    const items = itemsIn(stored.value);
    if (items === undefined) return undefined;
    const bytes = jsonMemory(items, stored.value.length);
    return { items, bytes, ageMs: Math.max(this.#clock.wall() - Date.parse(stored.readAt), 0) };
  }

  /** Stores the list soon. It never waits, and never throws. */
  keep(
    template: string,
    list: ListField,
    { capabilities }: ClientProfile,
    items: readonly JsonObject[],
  ): void {
    if (this.#hasUserLists(template)) return;
    const key = listKey(template, list, capabilities);
    if (this.#isKept(key, this.#digests.get(items))) return;
    const written = `${list} ${template}`;
    if (this.#waiting.has(written)) return;
    this.#waiting.set(written, { key, template, items, readAtMs: this.#clock.wall() });
    if (this.#waiting.size === 1) this.#writeFirst();
  }

  #isKept(key: string, digest: string | undefined): boolean {
    const last = this.#known.get(key);
    return last !== undefined && this.#clock.now() - last.savedAtMs < AGAIN_MS && last.digest === digest;
  }

  /** Writes the waiting lists one after the other: SQLite writes a long list in one turn of the event loop. */
  #writeFirst(): void {
    const [first] = this.#waiting;
    if (first === undefined) return;
    const [written, list] = first;
    const beganMs = this.#clock.now();
    void this.#write(list).finally(() => {
      const pauseMs = (this.#clock.now() - beganMs) * PAUSES;
      this.#clock.background.alarm(pauseMs, () => {
        this.#waiting.delete(written);
        this.#writeFirst();
      });
    });
  }

  async #write({ key, template, items, readAtMs }: WaitingWrite): Promise<void> {
    const value = JSON.stringify(items);
    const digest = hash('sha256', value, 'base64url');
    this.#digests.set(items, digest);
    if (this.#isKept(key, digest)) return;
    const savedAtMs = this.#clock.now();
    this.#known.set(key, { digest, savedAtMs });
    await this.#store.save({ key, template, value, readAt: new Date(readAtMs).toISOString() }).catch(() => {
      if (this.#known.get(key)?.savedAtMs === savedAtMs) this.#known.delete(key); // the next reading tries again
    });
  }
}

function listKey(template: string, list: ListField, capabilities: JsonObject): string {
  return shortKey(template, list, canonicalText(capabilities));
}

/** The result is undefined for a damaged value. */
function itemsIn(value: string): JsonObject[] | undefined {
  const items = jsonIn(value, parseExact);
  return Array.isArray(items) ? items.filter(isJsonObject) : undefined;
}
