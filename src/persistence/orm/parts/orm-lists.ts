// The lists of templates as they were read last, in a database. Source: ADR 117.

import { DAY_MS } from '../../../domain/time/clock.ts';
import type { Cipher } from '../../cipher.ts';
import { type ListStore, MAX_LIST_DAYS, MAX_STORED_LISTS } from '../../store.ts';
import type { OrmOperations } from '../connection/orm-operations.ts';
import { opened, purposeOfList, sealed } from '../sealed.ts';

export function ormLists(operations: OrmOperations, cipher: Cipher | undefined): ListStore {
  return {
    find: (key) =>
      operations.run(async (em, { lists }) => {
        const [row] = await em.findAll(lists, { where: { key } });
        const value = row && opened(row.value, purposeOfList(key), cipher);
        return row === undefined || value === undefined
          ? undefined
          : { key, template: row.template, value, readAt: row.readAt.toISOString() };
      }),
    save: ({ key, template, value, readAt }) =>
      operations.writeWithoutSync(async (em, { lists }) => {
        const row = {
          key,
          template,
          value: sealed(value, purposeOfList(key), cipher),
          readAt: new Date(readAt),
        };
        if ((await em.nativeUpdate(lists, { key }, row)) > 0) return;
        await em.insert(lists, row);
        const oldest = new Date(row.readAt.getTime() - MAX_LIST_DAYS * DAY_MS);
        await em.nativeDelete(lists, { readAt: { $lt: oldest } });
        const surplus = await em.findAll(lists, {
          where: { template },
          orderBy: { readAt: 'desc', key: 'asc' },
          offset: MAX_STORED_LISTS,
          limit: MAX_STORED_LISTS,
          fields: ['key'],
        });
        if (surplus.length > 0) await em.nativeDelete(lists, { key: { $in: surplus.map(({ key }) => key) } });
      }),
  };
}
