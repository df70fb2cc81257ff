// One SQL statement on a PostgreSQL or MariaDB server, through a connection of its own that is closed again.

import { MikroORM as MariaDb } from '@mikro-orm/mysql';
import { MikroORM as PostgreSql } from '@mikro-orm/postgresql';

/** For a machine that stalls. */
const connectWithinMs = 15_000;

/** Connects, executes, closes; resolves with nothing. Rejects with the driver's error, in bounded time. */
export async function executeSql(url: string, statement: string): Promise<void> {
  const isPostgresql = url.startsWith('postgres');
  const common = {
    clientUrl: url,
    entities: [],
    discovery: { warnWhenNoEntities: false },
    // Else a database that is not there is made without a word.
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
