// The sessions of clients in a database. Each change names the life that holds the session, so that a node which
// lost a session to another one changes nothing. Source: ADR 143.

import { type FilterQuery, raw } from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { hasCode } from '../../../domain/errors/errors.ts';
import type { Cipher } from '../../cipher.ts';
import { MAX_SESSION_ROWS, type SessionStore, type StoredSession } from '../../store.ts';
import type { OrmOperations } from '../connection/orm-operations.ts';
import type { TableRow, Tables } from '../entities.ts';
import { opened, purposeOfSession, sealed } from '../sealed.ts';
import { TableRows } from './table-rows.ts';

export function ormSessions(operations: OrmOperations, cipher: Cipher | undefined): SessionStore {
  const rowOf = ({ value, usedAt, ...row }: StoredSession) => ({
    ...row,
    value: encoded(row.key, value, cipher),
    usedAt: new Date(usedAt),
  });
  const insertAll = async (em: SqlEntityManager, { sessions }: Tables, rows: readonly StoredSession[]) => {
    if (operations.statement === undefined) return operations.insertRows(em, sessions, rows.map(rowOf));
    const table = new TableRows(em, sessions, operations);
    for (const row of rows) await table.insert(rowOf(row));
  };
  return {
    insert: async (rows) => {
      try {
        await operations.writeUnqueued((em, tables) => insertAll(em, tables, rows));
      } catch (thrown) {
        if (hasCode(thrown, 'DATABASE_UNAVAILABLE')) throw thrown;
        // Rows whose answer was lost are written again, although some of them may be stored.
        await operations.writeUnqueued(async (em, tables) => {
          const stored = await holdersOf(em, tables, keysOf(rows));
          await insertAll(
            em,
            tables,
            rows.filter(({ key }) => !stored.has(key)),
          );
        });
      }
    },
    update: (life, changes) =>
      operations.writeUnqueued(async (em, tables) => {
        const { sessions } = tables;
        const own = changes.map(({ key, value, usedAt }) => ({
          key,
          value: encoded(key, value, cipher),
          usedAt,
        }));
        if (operations.database.insertsSingleRows)
          for (const { key, value, usedAt } of own)
            await em.nativeUpdate(sessions, { key, life }, { value, usedAt: new Date(usedAt) });
        else await updateTogether(em, tables, life, own);
        return holdersOf(em, tables, keysOf(changes));
      }),
    read: (keys) =>
      operations.run(async (em, tables) => {
        const rows = await rowsOf(em, tables, keys);
        return rows.flatMap((row) => storedOf(row, cipher) ?? []);
      }),
    claim: (rows, { node, life }) =>
      operations.writeUnqueued(async (em, tables) => {
        const { sessions } = tables;
        const next = { node, life, generation: raw('?? + 1', ['generation']) };
        // Nearly always one statement: the sessions of a node that has ended.
        const groups = Map.groupBy(rows, ({ life: from, generation }) => `${from} ${generation}`);
        for (const [one, ...others] of groups.values()) {
          if (one === undefined) continue;
          const { life: from, generation } = one;
          await em.nativeUpdate(
            sessions,
            { key: { $in: keysOf([one, ...others]) }, life: from, generation },
            next,
          );
        }
        const claimed = await rowsOf(em, tables, keysOf(rows));
        return claimed.flatMap((row) => (row.life === life ? (storedOf(row, cipher) ?? []) : []));
      }),
    delete: async (life, keys) => {
      await operations.writeUnqueued((em, { sessions }) =>
        em.nativeDelete(sessions, { key: { $in: [...keys] }, life }),
      );
    },
    trim: ({ node, life }, keep) =>
      operations.writeUnqueued(async (em, { sessions }) => {
        const others: FilterQuery<TableRow<'sessions'>> = { node, life: { $ne: life } };
        const rows = await em.findAll(sessions, {
          where: others,
          orderBy: { usedAt: 'desc', key: 'asc' },
          offset: keep,
          limit: MAX_SESSION_ROWS,
          fields: ['key'],
        });
        if (rows.length > 0) await em.nativeDelete(sessions, { ...others, key: { $in: keysOf(rows) } });
        return rows.length;
      }),
  };
}

/** Updates all rows with one statement. */
async function updateTogether(
  em: SqlEntityManager,
  { sessions }: Tables,
  life: string,
  changes: readonly Pick<StoredSession, 'key' | 'value' | 'usedAt'>[],
): Promise<void> {
  const [newest] = changes
    .map(({ usedAt }) => usedAt)
    .toSorted()
    .reverse();
  if (newest === undefined) return;
  const cases = changes.map(() => 'when ? then ?').join(' ');
  const value = raw(`case ?? ${cases} end`, [
    'key',
    ...changes.flatMap((change) => [change.key, change.value]),
  ]);
  const where = { key: { $in: keysOf(changes) }, life };
  await em.nativeUpdate(sessions, where, { value, usedAt: new Date(newest) });
}

/** The rows of these keys, not as entities, which take as long as the query. */
async function rowsOf(
  em: SqlEntityManager,
  { sessions }: Tables,
  keys: readonly string[],
): Promise<TableRow<'sessions'>[]> {
  return em
    .createQueryBuilder(sessions)
    .where({ key: { $in: [...keys] } })
    .execute('all');
}

/** The holder of each row, by key. */
async function holdersOf(
  em: SqlEntityManager,
  { sessions }: Tables,
  keys: readonly string[],
): Promise<Map<string, string>> {
  const rows = await em.findAll(sessions, { where: { key: { $in: [...keys] } }, fields: ['key', 'life'] });
  return new Map(rows.map(({ key, life }) => [key, life]));
}

function keysOf(rows: readonly { readonly key: string }[]): string[] {
  return rows.map(({ key }) => key);
}

function encoded(key: string, value: string, cipher: Cipher | undefined): string {
  return sealed(value, purposeOfSession(key), cipher);
}

/**
 * The session in a row; undefined when the value cannot be read, because its key is gone. Such a session cannot be
 * continued, as without a row.
 */
function storedOf(
  { value, usedAt, ...row }: TableRow<'sessions'>,
  cipher: Cipher | undefined,
): StoredSession | undefined {
  const text = opened(value, purposeOfSession(row.key), cipher);
  return text === undefined ? undefined : { ...row, value: text, usedAt: usedAt.toISOString() };
}
