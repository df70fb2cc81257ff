// Migrates the tables of a database, one process at a time. The database records the names of applied
// migrations; an unknown name comes from a newer program.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { TableNotFoundException, type Transaction } from '@mikro-orm/core';
import type { Database, Execute } from '../database.ts';
import type { MigrationStatus } from '../store.ts';
import { MIGRATIONS_TABLE, type Orm } from './connection/orm.ts';

/** The status of the migrations, with one query. Throws the driver's error. */
export async function readMigrationStatus(
  database: Database,
  { orm, connection }: Orm,
): Promise<MigrationStatus> {
  const ours = Object.keys(await database.migrations());
  const quote = (name: string) => orm.em.getPlatform().quoteIdentifier(name);
  let applied: readonly string[];
  try {
    const rows = await connection.execute<{ name: string }[]>(
      `select ${quote('name')} from ${quote(MIGRATIONS_TABLE)} order by ${quote('id')}`,
    );
    applied = rows.map(({ name }) => name);
  } catch (thrown) {
    const error =
      thrown instanceof Error
        ? orm.em.getPlatform().getExceptionConverter().convertException(thrown)
        : thrown;
    if (!(error instanceof TableNotFoundException)) throw thrown;
    applied = [];
  }
  return {
    applied,
    pending: ours.filter((name) => !applied.includes(name)),
    unknown: applied.filter((name) => !ours.includes(name)),
  };
}

/**
 * Applies pending migrations under the lock of the database, for which it waits for at most `waitMs`; applies
 * none when a migration is unknown. Resolves with the new status; throws the driver's error.
 */
export async function migrate(database: Database, orm: Orm, waitMs: number): Promise<MigrationStatus> {
  const { lock } = database;
  const { connection } = orm;
  const name = orm.orm.config.get('dbName') ?? '';
  const apply = async (transaction?: Transaction) => {
    const { pending, unknown } = await readMigrationStatus(database, orm);
    if (pending.length > 0 && unknown.length === 0) await applyPending(database, orm, transaction);
  };
  if (lock.scope === 'alone') {
    const execute: Execute = (sql) => connection.execute(sql);
    await lock.take(execute, waitMs, name);
    try {
      await apply();
      await execute('commit');
    } catch (thrown) {
      await execute('rollback').catch(() => {
        // The first error is the one to report.
      });
      throw thrown;
    }
  } else {
    await connection.transactional(async (transaction) => {
      const execute: Execute = (sql) => connection.execute(sql, [], 'all', transaction);
      await lock.take(execute, waitMs, name);
      try {
        await apply(lock.scope === 'around' ? transaction : undefined);
      } finally {
        await lock.release?.(execute, name);
      }
    });
  }
  return readMigrationStatus(database, orm);
}

async function applyPending(
  { lock, ...database }: Database,
  { orm }: Orm,
  transaction: Transaction | undefined,
): Promise<void> {
  const { Migration, Migrator } = await import('@mikro-orm/migrations');
  await nextTurn();
  const migrationsList = Object.entries(await database.migrations()).map(([name, statements]) => ({
    name,
    class: class extends Migration {
      override name = name;
      override up(): void {
        for (const statement of statements) this.addSql(statement);
      }
    },
  }));
  orm.config.set('migrations', {
    ...orm.config.get('migrations'),
    migrationsList,
    tableName: MIGRATIONS_TABLE,
    snapshot: false,
    silent: true,
    disableForeignKeys: false,
    // With one connection the open transaction is already that of the lock.
    transactional: lock.scope !== 'alone',
  });
  await new Migrator(orm.em).up(transaction === undefined ? {} : { transaction });
}
