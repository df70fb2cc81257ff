// The views of the store without a database.

import { isDeepStrictEqual } from 'node:util';
import type { StoredView } from '../../domain/views/view.ts';
import type { ViewStore } from '../store.ts';

/**
 * The store of views. `changed`: notes a change of the revision, and gives the new one. `setTombstone`: of a view;
 * undefined deletes it.
 */
export function memoryViews(
  changed: () => number,
  setTombstone: (id: string, fingerprint: string | undefined) => void,
): ViewStore {
  const views = new Map<string, StoredView>();
  return {
    list: async () => [...views.values()].map((view) => structuredClone(view)),
    save: async (view, before) => {
      const { id } = view.definition;
      if (!isDeepStrictEqual(views.get(id) ?? null, before)) return undefined;
      views.set(id, structuredClone(view));
      setTombstone(id, undefined);
      return changed();
    },
    delete: async (id, fingerprint) => {
      if (!views.delete(id)) return undefined;
      setTombstone(id, fingerprint);
      return changed();
    },
  };
}
