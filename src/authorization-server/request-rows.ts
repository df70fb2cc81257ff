// The rows that one request has read or is about to read again: the library looks up an interaction, a code and a
// grant several times in a request. Source: ADR 247.

import type { OAuthKind, OAuthRow, OAuthStore } from '../persistence/oauth-store.ts';

/** Kinds that are read more than once. Of a refresh token each look must see the changes of other requests. */
const KINDS: ReadonlySet<OAuthKind> = new Set<OAuthKind>(['interaction', 'code', 'grant']);

/** `present`: the rows of the request being served; undefined outside of one. `end`: that of the store, as `Grants` does it. */
export function oncePerRequest(
  store: OAuthStore,
  present: () => Map<string, OAuthRow> | undefined,
  end: OAuthStore['end'],
): OAuthStore {
  const forget = (kind: OAuthKind, key: string) => present()?.delete(idOf(kind, key));
  return {
    find: async (kind, keys) => {
      const rows = present();
      const [key = '', other] = keys;
      if (rows === undefined || other !== undefined || !KINDS.has(kind)) return store.find(kind, keys);
      const known = rows.get(idOf(kind, key));
      if (known !== undefined) return [known];
      const found = await store.find(kind, keys);
      for (const row of found) rows.set(idOf(kind, row.key), row);
      return found;
    },
    list: (filter, limit) => store.list(filter, limit),
    count: (filter) => store.count(filter),
    save: (row) => {
      forget(row.kind, row.key);
      return store.save(row);
    },
    replace: (row, version) => {
      forget(row.kind, row.key);
      return store.replace(row, version);
    },
    // Whether it was consumed is asked by a second `consume`; the rest of the row stays.
    consume: (kind, key, at) => store.consume(kind, key, at),
    touch: (kind, usedAt) => store.touch(kind, usedAt),
    delete: (kind, keys, version) => {
      for (const key of keys) forget(kind, key);
      return store.delete(kind, keys, version);
    },
    oldest: (filter, limit) => store.oldest(filter, limit),
    end: (filter) => {
      present()?.clear();
      return end(filter);
    },
    sweep: (now) => store.sweep(now),
  };
}

function idOf(kind: OAuthKind, key: string): string {
  return `${kind}:${key}`;
}
