// The authorization server in a database: one table for all of its rows. Each change that may happen once is one conditional
// update, since other nodes do the same. Source: ADR 201.

import type { FilterQuery } from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Cipher } from '../../cipher.ts';
import {
  MAX_OAUTH_ROWS,
  OAUTH_KINDS,
  type OAuthFilter,
  type OAuthKind,
  type OAuthRow,
  type OAuthStore,
} from '../../oauth-store.ts';
import type { OrmOperations, Work } from '../connection/orm-operations.ts';
import { columnsOf, recordOf, type TableRow, type Tables } from '../entities.ts';
import { opened, purposeOfOAuth, sealed } from '../sealed.ts';
import { lastUsesByWrite, newLastUse } from './last-uses.ts';
import { inBatches, TableRows } from './table-rows.ts';

type NewRow = Omit<OAuthRow, 'version'>;

/**
 * The kinds of rows that every sign-in replaces. A power failure may lose the last second of them, as with `save`:
 * clients sign in again.
 */
const KINDS_WITHOUT_SYNC: ReadonlySet<OAuthKind> = new Set<OAuthKind>(['grant', 'code', 'refresh']);

/**
 * The kinds of rows that outlive a sign-in. What was answered is on the disk: a client that is lost cannot sign in by itself,
 * and a connection that was ended must not be there again.
 */
const LASTING: ReadonlySet<OAuthKind> = new Set<OAuthKind>([
  'key',
  'client',
  'identity',
  'connection',
  'backend',
  'own-client',
]);

export function ormOAuth(operations: OrmOperations, cipher: Cipher | undefined): OAuthStore {
  const columns = (row: NewRow) => sealedColumns(row, cipher);
  const write = <T>(kind: OAuthKind, work: Work<T>): Promise<T> =>
    LASTING.has(kind) ? operations.write(work) : operations.writeWithoutSync(work, 'statements');
  const rowsIn = (em: SqlEntityManager, oauth: Tables['oauth']) => new TableRows(em, oauth, operations);
  return {
    find: (kind, keys) =>
      inBatches(keys, (some) =>
        operations.run(async (em, { oauth }) => {
          return rowsOf(await rowsIn(em, oauth).find({ kind, key: some }), cipher);
        }),
      ),
    list: (filter, limit) =>
      operations.run(async (em, { oauth }) => {
        const order = { orderBy: { createdAt: 'desc', key: 'asc' }, limit } as const;
        return rowsOf(await em.findAll(oauth, { where: whereOf(filter), ...order }), cipher);
      }),
    count: (filter) => operations.run((em, { oauth }) => em.count(oauth, whereOf(filter))),
    save: async (row) => {
      const own = columns(row);
      const { key, kind, consumedAt, ...changes } = own;
      const update = async (em: SqlEntityManager, { oauth }: Tables) =>
        (await rowsIn(em, oauth).update({ key, kind }, changes, 'version')) > 0;
      const isSaved = await write(
        row.kind,
        async (em, tables) =>
          (await update(em, tables)) || rowsIn(em, tables.oauth).insert({ ...own, version: 1 }),
      );
      if (!isSaved) await write(row.kind, update);
    },
    replace: async (row, version) => {
      const work = replacing(row, version, operations, cipher);
      return KINDS_WITHOUT_SYNC.has(row.kind)
        ? operations.writeWithoutSync(work, 'statements')
        : operations.write(work);
    },
    consume: async (kind, key, at) =>
      (await operations.writeWithoutSync(
        (em, { oauth }) =>
          rowsIn(em, oauth).update({ key, kind, consumedAt: null }, { consumedAt: new Date(at) }),
        'statements',
      )) > 0,
    touch: async (kind, usedAt) => {
      for (const uses of lastUsesByWrite(usedAt))
        await operations.writeWithoutSync((em, { oauth }) =>
          em.nativeUpdate(
            oauth,
            { kind, key: { $in: uses.map(([key]) => key) } },
            { usedAt: newLastUse('key', 'used_at', uses) },
          ),
        );
    },
    delete: (kind, keys, version) =>
      write(kind, (em, { oauth }) =>
        rowsIn(em, oauth).delete({ kind, key: keys, ...(version !== undefined && { version }) }),
      ),
    oldest: (filter, limit) =>
      operations.run(async (em, { oauth }) => {
        const order = { orderBy: { createdAt: 'asc', key: 'asc' }, limit } as const;
        const rows = await em.findAll(oauth, {
          where: whereOf(filter),
          ...order,
          fields: ['key', 'createdAt'],
        });
        return rows.map(({ key, createdAt }) => ({ key, createdAt: createdAt.toISOString() }));
      }),
    end: async (filter) => {
      if (filter.grantId === undefined && filter.userId === undefined && filter.clientKey === undefined)
        throw new RangeError('the rows of a grant, a user or a client are ended');
      const revision = await operations.changeIf(
        async (em, { oauth }) => (await em.nativeDelete(oauth, whereOf(filter))) > 0,
      );
      return revision !== undefined;
    },
    sweep: (now) =>
      operations.writeWithoutSync(async (em, { oauth }) => {
        const where = { expiresAt: { $lte: new Date(now) } };
        const rows = await em.findAll(oauth, { where, limit: MAX_OAUTH_ROWS, fields: ['key'] });
        // Again with the time: another node may have prolonged a row meanwhile.
        const keys = rows.map(({ key }) => key);
        if (keys.length > 0) await em.nativeDelete(oauth, { ...where, key: { $in: keys } });
        return keys.length;
      }),
  };
}

/** The work of OAuthStore.replace. */
export function replacing(
  row: NewRow,
  version: number,
  operations: OrmOperations,
  cipher: Cipher | undefined,
): Work<boolean> {
  const own = sealedColumns(row, cipher);
  const { key, kind, ...changes } = own;
  return async (em, { oauth }) => {
    const rows = new TableRows(em, oauth, operations);
    if (version === 0) return rows.insert({ ...own, version: 1 });
    return (await rows.update({ key, kind, version }, changes, 'version')) > 0;
  };
}

function whereOf({ isUsed, keyPrefix, ...equal }: OAuthFilter): FilterQuery<TableRow<'oauth'>> {
  const given = Object.entries(equal).filter(([, value]) => value !== undefined);
  return {
    ...Object.fromEntries(given),
    ...(isUsed === false ? { usedAt: null } : {}),
    // A key is a hexadecimal number: nothing in it is greater than `f`.
    ...(keyPrefix === undefined ? {} : { key: { $gte: keyPrefix, $lt: `${keyPrefix}g` } }),
  };
}

/** The optional fields, which are null in the table. */
const OPTIONAL = {
  ...{ grantId: undefined, userId: undefined, clientKey: undefined },
  ...{ usedAt: undefined, consumedAt: undefined, expiresAt: undefined },
};

/** The columns of a row without its version, which the store counts: callers may give a row that they have read. */
function sealedColumns({ version: _, ...row }: Partial<OAuthRow> & NewRow, cipher: Cipher | undefined) {
  return columnsOf({ ...OPTIONAL, ...row, value: sealed(row.value, purposeOfOAuth(row), cipher) });
}

/** The domain rows. Those that cannot be decrypted are left out. */
function rowsOf(rows: readonly TableRow<'oauth'>[], cipher: Cipher | undefined): OAuthRow[] {
  return rows.flatMap((row) => {
    const kind = OAUTH_KINDS.find((known) => known === row.kind);
    const value = opened(row.value, purposeOfOAuth(row), cipher);
    if (kind === undefined || value === undefined) return [];
    return [{ ...OPTIONAL, ...recordOf<OAuthRow>({ ...row, kind, value }) }];
  });
}
