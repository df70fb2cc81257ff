// Rows of one table by the values of columns.

import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  type EntityMetadata,
  type EntitySchema,
  raw,
  UniqueConstraintViolationException,
} from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Statement, Value } from '../../database.ts';
import type { OrmOperations } from '../connection/orm-operations.ts';

type FieldValue = Value | Date | undefined;
/** The wanted values by property. A list: one of these. Null: rows without a value. */
type Where<Row> = Readonly<{
  [Name in keyof Row & string]?: Exclude<FieldValue, undefined> | readonly string[];
}>;
type FieldValues<Row> = Readonly<{ [Name in keyof Row & string]?: FieldValue }>;

/**
 * Reads and writes the rows of one table. On a file the statements are those of the driver, which keeps them compiled:
 * MikroORM makes each text again, with the values in it, at ten times the cost. On a server MikroORM makes them, as all
 * others. Source: ADR 247.
 */
export class TableRows<Row extends object> {
  readonly #em: SqlEntityManager;
  readonly #entity: EntitySchema<Row>;
  readonly #statement: Statement | undefined;
  #columns: Table | undefined;

  constructor(
    em: SqlEntityManager,
    entity: EntitySchema<Row>,
    { statement }: Pick<OrmOperations, 'statement'>,
  ) {
    this.#em = em;
    this.#entity = entity;
    this.#statement = statement;
  }

  /** The rows that have these values. `order`: ascending by this column. */
  find(where: Where<Row>, order?: keyof Row & string): Promise<Row[]> {
    return this.#select(where, order);
  }

  /** These columns of all rows. */
  all<Name extends keyof Row & string>(
    names: readonly Name[],
    order: keyof Row & string,
  ): Promise<Pick<Row, Name>[]> {
    return this.#select({} as Where<Row>, order, names);
  }

  async #select(where: Where<Row>, order?: keyof Row & string, only?: readonly string[]): Promise<Row[]> {
    if (this.#statement === undefined) {
      const query = this.#em.createQueryBuilder(this.#entity).where(where as never);
      if (only !== undefined) query.select(only as never);
      if (order !== undefined) query.orderBy({ [order]: 'asc' } as never);
      return query.execute<Row[]>('all');
    }
    const { name, columns, times } = this.#table();
    const named = [...columns].filter(([property]) => only?.includes(property) !== false);
    const all = named.map(([property, column]) => `${column} as "${property}"`).join();
    const [condition, values] = conditionOf(where, columns);
    const sorted = order === undefined ? '' : ` order by ${columnOf(order, columns)}`;
    const { rows } = await this.#run(`select ${all} from ${name}${condition}${sorted}`, values);
    for (const row of rows)
      for (const time of times) {
        const at = row[time];
        if (typeof at === 'number') Reflect.set(row, time, new Date(at));
      }
    return rows as Row[];
  }

  /** Inserts a row. False when a row with this key is there. */
  async insert(row: FieldValues<Row>): Promise<boolean> {
    if (this.#statement === undefined) {
      try {
        await this.#em.insert(this.#entity, row as never);
        return true;
      } catch (thrown) {
        if (thrown instanceof UniqueConstraintViolationException) return false;
        throw thrown;
      }
    }
    const { name, columns } = this.#table();
    const [names, values] = fieldsOf(row, columns);
    const places = values.map(() => '?').join();
    const sql = `insert into ${name} (${names.join()}) values (${places}) on conflict do nothing`;
    return (await this.#run(sql, values)).changes > 0;
  }

  /** Changes the rows that have these values. Resolves with their number. `counter`: a column that is increased by one. */
  async update(where: Where<Row>, changes: FieldValues<Row>, counter?: keyof Row & string): Promise<number> {
    if (this.#statement === undefined) {
      const next = counter === undefined ? {} : { [counter]: raw('?? + 1', [counter]) };
      return this.#em.nativeUpdate(this.#entity, where as never, { ...changes, ...next } as never);
    }
    const { name, columns } = this.#table();
    const [names, values] = fieldsOf(changes, columns);
    const set = names.map((column) => `${column} = ?`);
    const column = counter && columns.get(counter);
    if (column !== undefined) set.push(`${column} = ${column} + 1`);
    const [condition, compared] = conditionOf(where, columns);
    const sql = `update ${name} set ${set.join()}${condition}`;
    return (await this.#run(sql, [...values, ...compared])).changes;
  }

  async delete(where: Where<Row>): Promise<number> {
    if (this.#statement === undefined) return this.#em.nativeDelete(this.#entity, where as never);
    const { name, columns } = this.#table();
    const [condition, values] = conditionOf(where, columns);
    return (await this.#run(`delete from ${name}${condition}`, values)).changes;
  }

  async #run(sql: string, values: readonly Value[]) {
    const client = await this.#em.getConnection().getNativeClient();
    const none = { rows: [], changes: 0 };
    return this.#statement?.(client, sql, values) ?? none;
  }

  #table(): Table {
    this.#columns ??= tableOf(this.#em.getMetadata().get(this.#entity));
    return this.#columns;
  }
}

/**
 * The most rows of one query by keys: each may have 48 Ki characters of rights, and all of them are decrypted and parsed in one
 * turn of the event loop. Databases limit the values in a list, too.
 */
const MAX_KEYS_AT_ONCE = 32;

/** Finds the rows with these keys, any number of them, in batches. A file answers within the turn that asks. */
export async function inBatches<T>(
  keys: readonly string[],
  find: (keys: readonly string[]) => Promise<readonly T[]>,
): Promise<T[]> {
  const found: T[] = [];
  for (let start = 0; start < keys.length; start += MAX_KEYS_AT_ONCE) {
    if (start > 0) await nextTurn();
    found.push(...(await find(keys.slice(start, start + MAX_KEYS_AT_ONCE))));
  }
  return found;
}

function tableOf({ tableName, props }: EntityMetadata): Table {
  return {
    name: quoted(tableName),
    columns: new Map(props.map(({ name, fieldNames: [column = ''] }) => [String(name), quoted(column)])),
    times: props.flatMap(({ name, runtimeType }) => (runtimeType === 'Date' ? [String(name)] : [])),
  };
}

interface Table {
  readonly name: string;
  /** The names of the columns by property. */
  readonly columns: ReadonlyMap<string, string>;
  /** The properties that are a Date here, and milliseconds in a file. */
  readonly times: readonly string[];
}

function quoted(name: string): string {
  return `"${name}"`;
}

function fieldsOf(fields: object, columns: ReadonlyMap<string, string>): [names: string[], values: Value[]] {
  const given = Object.entries(fields);
  return [given.map(([name]) => columnOf(name, columns)), given.map(([, value]) => storedValue(value))];
}

function conditionOf(where: object, columns: ReadonlyMap<string, string>): [sql: string, values: Value[]] {
  const values: Value[] = [];
  const parts = Object.entries(where).map(([name, value]) => {
    const column = columnOf(name, columns);
    if (value === null) return `${column} is null`;
    const all: readonly FieldValue[] = [value].flat();
    values.push(...all.map(storedValue));
    return all.length === 1 ? `${column} = ?` : `${column} in (${all.map(() => '?').join()})`;
  });
  return [parts.length === 0 ? '' : ` where ${parts.join(' and ')}`, values];
}

function columnOf(name: string, columns: ReadonlyMap<string, string>): string {
  const column = columns.get(name);
  if (column === undefined) throw new TypeError(`there is no column for ${name}`);
  return column;
}

function storedValue(field: FieldValue): Value {
  return field instanceof Date ? field.getTime() : (field ?? null);
}
