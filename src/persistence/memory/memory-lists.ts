// The lists of servers in the store without a database: the last read ones, and the approved tools.

import type { NewApproval } from '../../domain/views/approval.ts';
import {
  type ApprovalStore,
  type ListStore,
  MAX_LIST_DAYS,
  MAX_STORED_LISTS,
  type StoredList,
} from '../store.ts';

export function memoryLists(): ListStore {
  const rows = new Map<string, StoredList>();
  return {
    find: async (key) => rows.get(key),
    save: async (list) => {
      rows.set(list.key, list);
      const oldest = new Date(Date.parse(list.readAt) - MAX_LIST_DAYS * 24 * 60 * 60_000).toISOString();
      const newest = [...rows.values()]
        .filter(({ template }) => template === list.template)
        .toSorted((a, b) => b.readAt.localeCompare(a.readAt) || a.key.localeCompare(b.key));
      const surplus = new Set(newest.slice(MAX_STORED_LISTS));
      for (const [key, row] of rows) if (row.readAt < oldest || surplus.has(row)) rows.delete(key);
    },
  };
}

/** The store of approvals. `changed` counts a change of the registry, and gives its revision. */
export function memoryApprovals(changed: () => number): ApprovalStore {
  const rows = new Map<string, NewApproval>();
  const rowsOf = (scope: string) => [...rows].filter(([, row]) => row.scope === scope);
  return {
    list: async () =>
      [...rows.values()].map(({ scope, tool, digests }) => ({ scope, tool, digests: [...digests] })),
    definitionsOf: async (scope) =>
      new Map(rowsOf(scope).map(([, { tool, definition }]) => [tool, structuredClone(definition)])),
    save: async (saved) => {
      for (const approval of saved)
        rows.set(`${approval.scope}\0${approval.tool}`, structuredClone(approval));
      return changed();
    },
    deleteOf: async (scope) => {
      const found = rowsOf(scope);
      for (const [key] of found) rows.delete(key);
      return found.length === 0 ? undefined : changed();
    },
  };
}
