// What is registered besides instances, in a database: the settings of templates, the definitions of templates (ADR 235) and
// the views. Rows of settings are not entities, which take eight times as long.

import { isDeepStrictEqual } from 'node:util';
import { changedTemplate, type StoredTemplate } from '../../../balancing/stored-template.ts';
import type { JsonObject } from '../../../domain/json/json.ts';
import { TaskScheduler } from '../../../domain/time/task-scheduler.ts';
import type { StoredView } from '../../../domain/views/view.ts';
import { type DefinitionStore, type TemplateStore, VIEWS, type ViewStore } from '../../store.ts';
import { readRow } from '../../store-errors.ts';
import type { OrmOperations } from '../connection/orm-operations.ts';
import { columnsOf, fromDocument, recordOf, toDocument } from '../entities.ts';
import { TableRows } from './table-rows.ts';

export function ormTemplates(operations: OrmOperations): TemplateStore {
  return {
    list: async () => {
      const rows = await operations.run((em, { templates }) =>
        new TableRows(em, templates, operations).find({}, 'position'),
      );
      return eachRead(rows, (row) => readRow('templates', row.name, () => recordOf<StoredTemplate>(row)));
    },
    save: (change) =>
      operations.change(async (em, { templates }, position) => {
        const { name } = change;
        const [row] = await em.createQueryBuilder(templates).where({ name }).execute('all');
        const before = row === undefined ? { loadBalancer: {} } : recordOf<StoredTemplate>(row);
        const columns = columnsOf({ auth: undefined, ...changedTemplate(before, change) });
        if (row === undefined) await em.insert(templates, { ...columns, position });
        else await em.nativeUpdate(templates, { name }, columns);
        return position;
      }),
    delete: (name) =>
      operations.changeIf(async (em, { templates, instances }) => {
        const isEmpty = (await em.count(instances, { template: name })) === 0;
        return isEmpty && (await em.nativeDelete(templates, { name })) > 0;
      }),
  };
}

export function ormDefinitions(operations: OrmOperations): DefinitionStore {
  return {
    list: async () => {
      const rows = await operations.run((em, { definitions }) =>
        new TableRows(em, definitions, operations).find({}, 'position'),
      );
      return eachRead(rows, ({ id, value }) => ({
        id,
        // Written by `save`.
        value: readRow('definitions', id, () => fromDocument(value) as JsonObject),
      }));
    },
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

export function ormViews(operations: OrmOperations): ViewStore {
  return {
    list: async () => {
      const rows = await operations.run((em, { views }) =>
        new TableRows(em, views, operations).find({}, 'position'),
      );
      return eachRead(rows, viewOf);
    },
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
    delete: (view, fingerprint) =>
      operations.changeIf(async (em, { views, tombstones }) => {
        const { id } = view.definition;
        const [row] = await em.createQueryBuilder(views).where({ id }).execute('all');
        if (row === undefined || !isDeepStrictEqual(viewOf(row), view)) return false;
        await em.nativeDelete(views, { id });
        if (fingerprint !== undefined) await em.insert(tombstones, { template: VIEWS, id, fingerprint });
        return true;
      }),
  };
}

/** Reads rows, some of which may take milliseconds, in several turns of the event loop. */
async function eachRead<Row, T>(rows: readonly Row[], read: (row: Row) => T): Promise<T[]> {
  const all: T[] = [];
  await new TaskScheduler().each(rows, (row) => all.push(read(row)));
  return all;
}

type Row = Parameters<typeof recordOf<StoredView & { readonly id: string }>>[0];

function viewOf(row: Row): StoredView {
  return readRow('views', String(row.id), () => {
    const { id: _, ...view } = recordOf<StoredView & { readonly id: string }>(row);
    return view;
  });
}
