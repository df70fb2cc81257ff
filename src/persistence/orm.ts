// One MikroORM with its pool, made for one address. It is thrown away and made anew when its server went silent.

import type { Logger } from '@mikro-orm/core';
import { type AbstractSqlConnection, MikroORM } from '@mikro-orm/sql';
import type { ConnectOptions, Database, Execute } from './database.ts';
import { type Tables, tablesFor } from './entities.ts';
import { Sockets } from './sockets.ts';

export interface Orm {
  readonly orm: MikroORM;
  readonly tables: Tables;
  readonly connection: AbstractSqlConnection;
  /** When its database last answered a statement, by `performance.now()`, in ms. */
  lastHeardAt(): number;
  /** In order, as far as the server plays along. */
  close(): Promise<void>;
  /** At once: its sockets are closed and queries under way rejected. Oracle's driver shows no sockets: its queries end with their call timeout. */
  destroy(): void;
}

export const MIGRATIONS_TABLE = 'stagedoor_migrations';

/** Makes the pool and opens a connection; throws the driver's error. */
export async function connectOrm(database: Database, connect: Omit<ConnectOptions, 'sockets'>): Promise<Orm> {
  const sockets = new Sockets();
  const options = { ...connect, sockets };
  const tables = tablesFor(database.kind);
  let heardAt = performance.now();
  const hear = () => {
    heardAt = performance.now();
  };
  const orm = new MikroORM({
    driver: await database.driver(),
    entities: Object.values(tables),
    // It would look for its database with statements of its own.
    ensureDatabase: false,
    forceUtcTimezone: true,
    loggerFactory: () => listener(hear),
    ...database.options(options),
  });
  const connection = orm.em.getConnection();
  const close = (): Promise<void> => {
    // It would connect anew for the next statement of whatever is under way, and nobody would close that.
    connection.connect = () => Promise.reject(ended());
    return orm.close(true);
  };
  const destroy = () => {
    sockets.destroy();
    void close().catch(() => {
      // Nothing waits for it: its sockets are gone.
    });
  };
  try {
    await orm.connect();
    const execute: Execute = (sql) => connection.execute(sql);
    await database.prepare?.(execute, await nativeClient(connection), options);
  } catch (thrown) {
    destroy();
    throw thrown;
  }
  return { orm, tables, connection, lastHeardAt: () => heardAt, close, destroy };
}

/** What comes too late meets a connection that is gone. */
function ended(): Error {
  return Object.assign(new Error('its pool was closed'), { code: 'ECONNRESET' });
}

/** Logs nothing: MikroORM tells its logger of every statement that was answered. Those that failed may have had no answer. */
function listener(hear: () => void): Logger {
  return {
    log: () => {},
    error: () => {},
    warn: () => {},
    logQuery: ({ level }) => {
      if (level !== 'error') hear();
    },
    setDebugMode: () => {},
    isEnabled: () => false,
  };
}

/** SQL Server's driver has none. */
async function nativeClient(connection: AbstractSqlConnection): Promise<unknown> {
  return connection.getNativeClient().catch(() => undefined);
}
