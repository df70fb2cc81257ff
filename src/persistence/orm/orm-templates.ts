// The settings of templates in a database. Their rows are not entities, which take eight times as long.

import { changedTemplate, type TemplateSettings } from '../../balancing/template-settings.ts';
import type { TemplateStore } from '../store.ts';
import { readRow } from '../store-errors.ts';
import { columnsOf, recordOf } from './entities.ts';
import type { OrmOperations } from './orm-operations.ts';

export function ormTemplates(operations: OrmOperations): TemplateStore {
  return {
    list: () =>
      operations.run(async (em, { templates }) => {
        const rows = await em.createQueryBuilder(templates).orderBy({ position: 'asc' }).execute('all');
        return rows.map((row) => readRow('templates', row.name, () => recordOf<TemplateSettings>(row)));
      }),
    save: (change) =>
      operations.change(async (em, { templates }, position) => {
        const { name } = change;
        const [row] = await em.createQueryBuilder(templates).where({ name }).execute('all');
        const before = row === undefined ? { loadBalancer: {} } : recordOf<TemplateSettings>(row);
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
