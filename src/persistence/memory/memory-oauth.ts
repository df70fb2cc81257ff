// The rows of the authorization server in a store without a database.

import type { OAuthFilter, OAuthKind, OAuthRow, OAuthStore } from '../oauth-store.ts';

/** The store of these rows, by key. `changed` is called after each change that counts for the revision. */
export function memoryOAuth(rows: Map<string, OAuthRow>, changed: () => void): OAuthStore {
  const found = (kind: OAuthKind, key: string): OAuthRow | undefined => {
    const row = rows.get(key);
    return row?.kind === kind ? row : undefined;
  };
  const matching = (filter: OAuthFilter) => [...rows.values()].filter((row) => isMatch(row, filter));
  return {
    find: async (kind, keys) => keys.flatMap((key) => found(kind, key) ?? []),
    list: async (filter, limit) =>
      matching(filter)
        .toSorted((a, b) =>
          a.createdAt === b.createdAt ? (a.key < b.key ? -1 : 1) : a.createdAt < b.createdAt ? 1 : -1,
        )
        .slice(0, limit),
    count: async (filter) => matching(filter).length,
    save: async (row) => {
      const before = rows.get(row.key);
      const consumedAt = before === undefined ? row.consumedAt : before.consumedAt;
      rows.set(row.key, { ...row, consumedAt, version: (before?.version ?? 0) + 1 });
    },
    replace: async (row, version) => replaceRow(rows, row, version),
    consume: async (kind, key, at) => {
      const row = found(kind, key);
      if (row === undefined || row.consumedAt !== undefined) return false;
      rows.set(key, { ...row, consumedAt: at });
      return true;
    },
    touch: async (kind, usedAt) => {
      for (const [key, at] of usedAt) {
        const row = found(kind, key);
        if (row !== undefined) rows.set(key, { ...row, usedAt: at });
      }
    },
    delete: async (kind, keys, version) => {
      const isMeant = (key: string) => version === undefined || found(kind, key)?.version === version;
      const deleted = keys.filter((key) => found(kind, key) !== undefined && isMeant(key));
      for (const key of deleted) rows.delete(key);
      return deleted.length;
    },
    oldest: async (filter, limit) =>
      matching(filter)
        .toSorted((a, b) => (`${a.createdAt} ${a.key}` < `${b.createdAt} ${b.key}` ? -1 : 1))
        .slice(0, limit)
        .map(({ key, createdAt }) => ({ key, createdAt })),
    end: async (filter) => {
      if (filter.grantId === undefined && filter.userId === undefined && filter.clientKey === undefined)
        throw new RangeError('the rows of a grant, a user or a client are ended');
      const ended = matching(filter);
      for (const { key } of ended) rows.delete(key);
      if (ended.length > 0) changed();
      return ended.length > 0;
    },
    sweep: async (now) => {
      const old = [...rows.values()].filter(({ expiresAt }) => expiresAt !== undefined && expiresAt <= now);
      for (const { key } of old) rows.delete(key);
      return old.length;
    },
  };
}

/** See OAuthStore.replace. */
export function replaceRow(
  rows: Map<string, OAuthRow>,
  row: Omit<OAuthRow, 'version'>,
  version: number,
): boolean {
  if ((rows.get(row.key)?.version ?? 0) !== version) return false;
  rows.set(row.key, { ...row, version: version + 1 });
  return true;
}

function isMatch(row: OAuthRow, filter: OAuthFilter): boolean {
  const { kind, keyPrefix = '', grantId, userId, clientKey, isUsed } = filter;
  return (
    (kind === undefined || row.kind === kind) &&
    row.key.startsWith(keyPrefix) &&
    (grantId === undefined || row.grantId === grantId) &&
    (userId === undefined || (row.userId ?? null) === userId) &&
    (clientKey === undefined || row.clientKey === clientKey) &&
    (isUsed === undefined || row.usedAt === undefined)
  );
}
