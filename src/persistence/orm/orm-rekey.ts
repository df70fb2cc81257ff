// Encrypts stored texts again, with the first key: `stagedoor db rekey`. Loaded only for that. Source: ADR 212.

import type { EntitySchema } from '@mikro-orm/core';
import type { QBFilterQuery, SqlEntityManager } from '@mikro-orm/sql';
import { type Cipher, CipherError } from '../cipher.ts';
import { MAX_REKEY_REASONS, type RekeyResult } from '../store.ts';
import type { OrmOperations } from './connection/orm-operations.ts';
import type { Tables } from './entities.ts';
import {
  purposeOfInstance,
  purposeOfList,
  purposeOfOAuth,
  purposeOfSession,
  resealed,
  SECRET_FIELDS,
} from './sealed.ts';

/** The number of rows of one query: each may have some 100 kB. */
const GROUP = 100;

/** The columns of a row that are read: its identity, and columns with encrypted text or null. */
type Row = Readonly<Record<string, string | null>>;

/** A column with encrypted texts. */
interface Encrypted {
  readonly table: 'instances' | 'lists' | 'oauth' | 'sessions';
  readonly column: string;
  /** The unique column by which rows are found and ordered. */
  readonly key: string;
  /** The other columns for `purpose` and `name`. */
  readonly others: readonly string[];
  purpose(row: Row): string;
  /** The name of the row for people. */
  name(row: Row): string;
}

/** All columns with encrypted texts. */
const ALL: readonly Encrypted[] = [
  ...SECRET_FIELDS.map(
    (column): Encrypted => ({
      table: 'instances',
      column,
      key: 'serverId',
      others: ['template', 'id'],
      purpose: ({ template, id }) =>
        purposeOfInstance({ template: String(template), id: String(id) }, column),
      name: ({ template, id }) => `"${column}" of the instance ${template}/${id}`,
    }),
  ),
  {
    table: 'oauth',
    column: 'value',
    key: 'key',
    others: ['kind'],
    purpose: ({ kind, key }) => purposeOfOAuth({ kind: String(kind), key: String(key) }),
    name: ({ kind, key }) => `the row "${kind}" ${key} of the table oauth`,
  },
  {
    table: 'sessions',
    column: 'value',
    key: 'key',
    others: [],
    purpose: ({ key }) => purposeOfSession(String(key)),
    name: ({ key }) => `the session row ${key}`,
  },
  {
    table: 'lists',
    column: 'value',
    key: 'key',
    others: ['template'],
    purpose: ({ key }) => purposeOfList(String(key)),
    name: ({ template }) => `a list of the template ${template}`,
  },
];

/** Encrypts all texts again: see Store. */
export async function rekey(
  operations: OrmOperations,
  cipher: Cipher,
  onProgress: (texts: number) => void = () => {},
): Promise<RekeyResult> {
  const counts = { done: 0, current: 0, unreadable: 0 };
  const reasons: string[] = [];
  const rekeyOne = async (encrypted: Encrypted, row: Row): Promise<void> => {
    try {
      const outcome = await rekeyRow(operations, encrypted, row, cipher);
      if (outcome !== undefined) counts[outcome] += 1;
    } catch (thrown) {
      if (!(thrown instanceof CipherError)) throw thrown;
      counts.unreadable += 1;
      if (reasons.length < MAX_REKEY_REASONS)
        reasons.push(`${encrypted.name(row)} cannot be read: ${thrown.message}`);
    }
  };
  for (const encrypted of ALL)
    for await (const rows of groupsOf(operations, encrypted)) {
      for (const row of rows) await rekeyOne(encrypted, row);
      onProgress(counts.done + counts.current + counts.unreadable);
    }
  // Waits until the disk has all, also what a run that was interrupted wrote behind: the key before may be deleted then.
  await operations.write(async () => undefined);
  return { ...counts, reasons };
}

/**
 * Encrypts the text of one row again; undefined when the row has none. One transaction per row: a group of locked
 * rows would be in the way of the writers of gateways. Throws CipherError.
 */
async function rekeyRow(
  operations: OrmOperations,
  encrypted: Encrypted,
  row: Row,
  cipher: Cipher,
): Promise<'done' | 'current' | undefined> {
  const { column, key, purpose } = encrypted;
  const again = (read: Row) => {
    const text = read[column];
    return text ? { text: resealed(text, purpose(read), cipher) } : undefined;
  };
  const found = again(row);
  if (found?.text === undefined) return found && 'current';
  const where = { [key]: row[key] };
  return operations.writeWithoutSync(async (em, tables) => {
    const entity = entityOf(tables, encrypted);
    // Locks the row until the end of the transaction. Then it is read again: a gateway may have changed it since.
    await em.nativeUpdate(entity, where, where);
    const [present] = await query(em, entity, encrypted).where(where).execute('all');
    const next = present && again(present);
    if (next?.text === undefined) return next && 'current';
    await em.nativeUpdate(entity, where, { [column]: next.text });
    return 'done';
  });
}

/** The rows in groups by their keys, not by an offset, which rows that come and go meanwhile would shift. */
async function* groupsOf(operations: OrmOperations, encrypted: Encrypted): AsyncGenerator<readonly Row[]> {
  const { key } = encrypted;
  let after: Row | undefined;
  for (;;) {
    const where: QBFilterQuery<Row> =
      after === undefined ? {} : ({ [key]: { $gt: after[key] } } as QBFilterQuery<Row>);
    const rows = await operations.run(async (em, tables): Promise<Row[]> => {
      const some = query(em, entityOf(tables, encrypted), encrypted).where(where);
      return some
        .orderBy({ [key]: 'asc' })
        .limit(GROUP)
        .execute('all');
    });
    yield rows;
    after = rows.at(-1);
    if (after === undefined || rows.length < GROUP) return;
  }
}

function query(em: SqlEntityManager, entity: EntitySchema<Row>, { key, others, column }: Encrypted) {
  return em.createQueryBuilder(entity).select([key, ...others, column]);
}

/** The entity of a table, as one with the columns that are read here, all of which are texts. */
function entityOf(tables: Tables, { table }: Encrypted): EntitySchema<Row> {
  const entity: EntitySchema = tables[table];
  return entity;
}
