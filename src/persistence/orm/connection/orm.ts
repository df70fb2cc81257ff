// One MikroORM with its pool, for one address. When the server does not answer, another one replaces it.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { type AbstractSqlConnection, MikroORM, type Options } from '@mikro-orm/sql';
import { type ConnectOptions, type Database, type Execute, failureOf } from '../../database.ts';
import { type Tables, tablesFor } from '../entities.ts';
import { correctLiterals, refuseReconnects, releaseLostConnections, Sockets } from './mikro-orm-patches.ts';

export interface Orm {
  readonly orm: MikroORM;
  readonly tables: Tables;
  readonly connection: AbstractSqlConnection;
  close(): Promise<void>;
  /**
   * Closes the sockets at once, which rejects running queries. Oracle's driver exposes none: its queries end at their
   * timeout.
   */
  destroy(): void;
}

export const MIGRATIONS_TABLE = 'stagedoor_migrations';

/** All options of MikroORM for this address. Throws StoreOpenError for an option of the URL with an invalid value. */
export function ormOptionsOf(database: Database, connect: ConnectOptions): Partial<Options> {
  const { host, port, user, password, name: dbName } = connect.address;
  const pool = { min: 0, max: connect.connections, idleTimeoutMillis: 60_000 };
  return { host, port, user, password, dbName, pool, ...database.options(connect) };
}

/** Makes the pool and opens a connection; throws the driver's error. */
export async function connectOrm(database: Database, connect: Omit<ConnectOptions, 'sockets'>): Promise<Orm> {
  const sockets = new Sockets();
  const options = { ...connect, sockets };
  // A file answers within the turn in which it is asked, so the steps would be one turn.
  const driver = await database.driver();
  await nextTurn();
  const tables = tablesFor(database.kind);
  await nextTurn();
  const orm = new MikroORM({
    driver,
    entities: Object.values(tables),
    // MikroORM would check the existence of its database with further statements.
    ensureDatabase: false,
    forceUtcTimezone: true,
    // Rows become domain types at once; no entity is changed.
    disableIdentityMap: true,
    logger: () => {}, // it would print statements and their values
    ...ormOptionsOf(database, options),
  });
  if (database.correctLiteral !== undefined) correctLiterals(orm.em.getPlatform(), database.correctLiteral);
  const connection = orm.em.getConnection();
  if (!database.isFile)
    releaseLostConnections(connection, (thrown) => failureOf(database, thrown) === 'unavailable');
  const close = (): Promise<void> => {
    refuseReconnects(connection);
    return orm.close(true);
  };
  const destroy = () => {
    sockets.destroy();
    void close().catch(() => {
      // The sockets are closed, which causes this error.
    });
  };
  connect.signal?.addEventListener('abort', destroy, { once: true });
  try {
    await nextTurn();
    connect.signal?.throwIfAborted(); // an earlier abort emits nothing any more
    await orm.connect();
    await nextTurn();
    const execute: Execute = (sql) => connection.execute(sql);
    // The driver of SQL Server has no native client.
    const client = await connection.getNativeClient().catch(() => undefined);
    await database.prepare?.(execute, client, options);
  } catch (thrown) {
    destroy();
    throw thrown;
  } finally {
    connect.signal?.removeEventListener('abort', destroy);
  }
  return { orm, tables, connection, close, destroy };
}
