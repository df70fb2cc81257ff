// The lives of the nodes in a database. Each change is a conditional update: it names what was read, so that it
// changes nothing when it comes late or twice. Heartbeats and ends are single statements: a frozen node keeps no
// row locked. Source: ADR 146, 194.

import { type FilterQuery, raw } from '@mikro-orm/core';
import { type LifeEnd, RELEASED } from '../../../domain/nodes/life.ts';
import { MAX_LIVES, type NodeStore, type StoredLife } from '../../store.ts';
import type { OrmOperations } from '../connection/orm-operations.ts';
import { fromDocument, type TableRow, toDocument } from '../entities.ts';

export function ormNodes(operations: OrmOperations): NodeStore {
  return {
    list: () =>
      operations.run(async (em, { nodes }) => {
        // A node that ends and starts again and again has more lives than are read: those that go on must not be missing.
        const freesAll = raw("case when ?? = 'all' then 1 else 0 end", ['end_frees']);
        const rows: TableRow<'nodes'>[] = await em
          .createQueryBuilder(nodes)
          .orderBy([{ [freesAll]: 'asc' }, { life: 'asc' }])
          .limit(MAX_LIVES)
          .execute('all');
        return rows.map(storedOf);
      }),
    insert: ({ life, node, counter, profile, state, end }) =>
      operations.write(async (em, { nodes }) => {
        if ((await em.count(nodes, { life })) > 0) return;
        const row = { life, node, counter, profile: toDocument(profile), state: toDocument(state) };
        await em.insert(nodes, { ...row, ...endColumns(end) });
      }),
    beat: (life, state) =>
      operations.writeAtOnce(async (em, { nodes }) => {
        const next = { counter: raw('?? + 1', ['counter']), state: toDocument(state) };
        return (await em.nativeUpdate(nodes, { life, endCause: null }, next)) > 0;
      }),
    end: async (life, counter, end) => {
      const endIf = (where: FilterQuery<TableRow<'nodes'>>): Promise<boolean> =>
        operations.writeAtOnce(
          async (em, { nodes }) => (await em.nativeUpdate(nodes, where, endColumns(end))) > 0,
        );
      const read = { life, ...(counter === undefined ? {} : { counter }) };
      if (await endIf({ ...read, endCause: null })) return true;
      return end.frees === 'all' && endIf({ ...read, endFrees: 'sessions' });
    },
    delete: async (lives) => {
      await operations.write(async (em, { nodes, sessions }) => {
        const ended = await em.findAll(nodes, {
          where: { life: { $in: [...lives] }, endFrees: 'all' },
          fields: ['life', 'node'],
        });
        if (ended.length === 0) return;
        const where = { life: { $in: ended.map(({ life }) => life) } };
        await em.nativeDelete(sessions, where);
        await em.nativeDelete(nodes, where);
        const ids = ended.map(({ node }) => node);
        const left = await em.findAll(nodes, { where: { node: { $in: ids } }, fields: ['node'] });
        const gone = ids.filter((id) => !left.some(({ node }) => node === id));
        if (gone.length > 0) await em.nativeDelete(sessions, { life: RELEASED, node: { $in: gone } });
      });
    },
  };
}

function endColumns(end: LifeEnd | undefined) {
  return { endCause: end?.cause ?? null, endFrees: end?.frees ?? null };
}

function storedOf({
  life,
  node,
  counter,
  endCause,
  endFrees,
  profile,
  state,
}: TableRow<'nodes'>): StoredLife {
  // Only this file writes these columns.
  const end = endCause ? ({ cause: endCause, frees: endFrees } as LifeEnd) : undefined;
  return {
    life,
    node,
    counter: Number(counter), // PostgreSQL and SQL Server give text
    profile: String(fromDocument(profile)),
    state: String(fromDocument(state)),
    end,
  };
}
