// The template definitions in a database. Source: ADR 235.

import type { JsonObject } from '../../domain/json/json.ts';
import type { DefinitionStore } from '../store.ts';
import { readRow } from '../store-errors.ts';
import { fromDocument, toDocument } from './entities.ts';
import type { OrmSession } from './orm-session.ts';

export function ormDefinitions(session: OrmSession): DefinitionStore {
  return {
    list: () =>
      session.run(async (em, { definitions }) => {
        const rows = await em.createQueryBuilder(definitions).orderBy({ position: 'asc' }).execute('all');
        return rows.map(({ id, value }) => ({
          id,
          // Written by `save`.
          value: readRow('definitions', id, () => fromDocument(value) as JsonObject),
        }));
      }),
    save: ({ id, value }) =>
      session.change(async (em, { definitions }, position) => {
        const columns = { value: toDocument(value) };
        if ((await em.nativeUpdate(definitions, { id }, columns)) === 0)
          await em.insert(definitions, { id, ...columns, position });
        return position;
      }),
    delete: (id) =>
      session.changeIf(async (em, { definitions }) => (await em.nativeDelete(definitions, { id })) > 0),
  };
}
