// Keeps the lists of templates in the store, so that a gateway has them before its instances are healthy again. A list belongs to
// the capabilities of the clients that got it. None is kept of a template whose servers are used with the accounts of users. The
// store may fail: then there is no list. Source: ADR 225.

import { hash } from 'node:crypto';
import type { Clock } from '../domain/clock.ts';
import { memoryOf } from '../domain/held-bytes.ts';
import { canonicalText, isJsonObject, type JsonObject, parseExact, valuesIn } from '../domain/json.ts';
import { LruMap } from '../domain/lru-map.ts';
import type { ListField } from '../domain/mcp.ts';
import type { ListStore } from '../persistence/store.ts';
import type { KeptLists } from '../protocol/aggregate/lists.ts';
import { shortKey } from '../protocol/client-bounds.ts';

/** Lists of which it is known what is stored. Others are written again. */
const MAX_KNOWN = 10_000;
/** A list that does not change is written again after this time: the store drops those that nothing writes. */
const AGAIN_MS = 24 * 60 * 60_000;

interface Known {
  readonly digest: string;
  readonly savedAtMs: number;
}

export interface KeptListsDeps {
  readonly store: ListStore;
  readonly clock: Clock;
  /** True for a template whose lists differ from user to user. */
  readonly hasUserLists: (template: string) => boolean;
}

export function keptLists({ store, clock, hasUserLists }: KeptListsDeps): KeptLists {
  const known = new LruMap<Known>(MAX_KNOWN);
  /** By the items, so that the same ones are not written as text again. */
  const digests = new WeakMap<readonly JsonObject[], string>();
  /** Lists of templates that are being written, each for one kind of client at a time: others are written when they are read again. */
  const writing = new Set<string>();
  return {
    find: async (template, list, { capabilities }) => {
      if (hasUserLists(template)) return undefined;
      const stored = await store.find(listKey(template, list, capabilities)).catch(() => undefined);
      if (stored === undefined) return undefined;
      const items = itemsIn(stored.value);
      const bytes = memoryOf(valuesIn(items, Number.POSITIVE_INFINITY), stored.value.length);
      return { items, bytes, ageMs: Math.max(clock.wall() - Date.parse(stored.readAt), 0) };
    },
    keep: (template, list, { capabilities }, items) => {
      if (hasUserLists(template)) return;
      const key = listKey(template, list, capabilities);
      const last = known.get(key);
      const nowMs = clock.now();
      const isFresh = last !== undefined && nowMs - last.savedAtMs < AGAIN_MS;
      if (isFresh && last.digest === digests.get(items)) return;
      const written = `${list} ${template}`;
      if (writing.has(written)) return;
      const value = JSON.stringify(items);
      const digest = hash('sha256', value, 'base64url');
      digests.set(items, digest);
      if (isFresh && last.digest === digest) return;
      known.set(key, { digest, savedAtMs: nowMs });
      const readAt = new Date(clock.wall()).toISOString();
      writing.add(written);
      store
        .save({ key, template, value, readAt })
        .catch(() => {
          if (known.get(key)?.savedAtMs === nowMs) known.delete(key); // the next reading tries again
        })
        .finally(() => writing.delete(written));
    },
  };
}

function listKey(template: string, list: ListField, capabilities: JsonObject): string {
  return shortKey(template, list, canonicalText(capabilities));
}

function itemsIn(value: string): JsonObject[] {
  const items = parseExact(value);
  return Array.isArray(items) ? items.filter(isJsonObject) : [];
}
