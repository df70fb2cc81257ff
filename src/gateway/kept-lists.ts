// Keeps the lists of templates in the store, so that a gateway has them before its instances are healthy again. A list belongs to
// the capabilities of the clients that got it. None is kept of a template whose servers are used with the accounts of users. The
// store may fail: then there is no list. Source: ADR 225.

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
      const value = JSON.stringify(items);
      const digest = shortKey(value);
      const last = known.get(key);
      const nowMs = clock.now();
      if (last?.digest === digest && nowMs - last.savedAtMs < AGAIN_MS) return;
      known.set(key, { digest, savedAtMs: nowMs });
      const readAt = new Date(clock.wall()).toISOString();
      store.save({ key, template, value, readAt }).catch(() => {
        if (known.get(key)?.savedAtMs === nowMs) known.delete(key); // the next reading tries again
      });
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
