// The views in a database.

import { isDeepStrictEqual } from 'node:util';
import type { StoredView } from '../../domain/views/view.ts';
import { VIEWS, type ViewStore } from '../store.ts';
import { readRow } from '../store-errors.ts';
import { columnsOf, recordOf } from './entities.ts';
import type { OrmOperations } from './orm-operations.ts';

export function ormViews(operations: OrmOperations): ViewStore {
  return {
    list: () =>
      operations.run(async (em, { views }) => {
        const rows = await em.createQueryBuilder(views).orderBy({ position: 'asc' }).execute('all');
        return rows.map(viewOf);
      }),
    save: (view, before) =>
      operations.changeIf(async (em, { views, tombstones }, position) => {
        const { id } = view.definition;
        const [row] = await em.createQueryBuilder(views).where({ id }).execute('all');
        if (!isDeepStrictEqual(row === undefined ? null : viewOf(row), before)) return false;
        const columns = columnsOf({ fingerprint: undefined, ...view });
        if (row === undefined) await em.insert(views, { ...columns, id, position });
        else await em.nativeUpdate(views, { id }, columns);
        await em.nativeDelete(tombstones, { template: VIEWS, id });
        return true;
      }),
    delete: (id, fingerprint) =>
      operations.changeIf(async (em, { views, tombstones }) => {
        if ((await em.nativeDelete(views, { id })) === 0) return false;
        if (fingerprint !== undefined) await em.insert(tombstones, { template: VIEWS, id, fingerprint });
        return true;
      }),
  };
}

type Row = Parameters<typeof recordOf<StoredView & { readonly id: string }>>[0];

function viewOf(row: Row): StoredView {
  return readRow('views', String(row.id), () => {
    const { id: _, ...view } = recordOf<StoredView & { readonly id: string }>(row);
    return view;
  });
}
