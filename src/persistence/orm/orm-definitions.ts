// The template definitions in a database. Source: ADR 235.

import type { JsonObject } from '../../domain/json/json.ts';
import type { DefinitionStore } from '../store.ts';
import { readRow } from '../store-errors.ts';
import { fromDocument, toDocument } from './entities.ts';
import type { OrmOperations } from './orm-operations.ts';

export function ormDefinitions(operations: OrmOperations): DefinitionStore {
  return {
    list: () =>
      operations.run(async (em, { definitions }) => {
        const rows = await em.createQueryBuilder(definitions).orderBy({ position: 'asc' }).execute('all');
        return rows.map(({ id, value }) => ({
          id,
          // Written by `save`.
          value: readRow('definitions', id, () => fromDocument(value) as JsonObject),
        }));
      }),
    save: ({ id, value }) =>
      operations.change(async (em, { definitions }, position) => {
        const columns = { value: toDocument(value) };
        if ((await em.nativeUpdate(definitions, { id }, columns)) === 0)
          await em.insert(definitions, { id, ...columns, position });
        return position;
      }),
    delete: (id) =>
      operations.changeIf(async (em, { definitions }) => (await em.nativeDelete(definitions, { id })) > 0),
  };
}
