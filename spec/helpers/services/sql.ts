// Runs one SQL statement on a PostgreSQL or MariaDB server, over a separate connection.

import { MikroORM as MariaDb } from '@mikro-orm/mysql';
import { MikroORM as PostgreSql } from '@mikro-orm/postgresql';

/** Long enough for a busy machine. */
const connectWithinMs = 15_000;

/** Connects, executes, closes; resolves with nothing. Rejects with the driver's error, in bounded time. */
export async function executeSql(url: string, statement: string): Promise<void> {
  const isPostgresql = url.startsWith('postgres');
  const common = {
    clientUrl: url,
    entities: [],
    discovery: { warnWhenNoEntities: false },
    // Otherwise a missing database is created silently.
    ensureDatabase: false,
  };
  const orm = isPostgresql
    ? await PostgreSql.init({ ...common, driverOptions: { connectionTimeoutMillis: connectWithinMs } })
    : await MariaDb.init({ ...common, driverOptions: { connectTimeout: connectWithinMs } });
  try {
    await orm.em.getConnection().execute(statement);
  } finally {
    await orm.close(true);
  }
}
