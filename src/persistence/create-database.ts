// Creates the database itself on a server that has none of that name. Apart from open.ts, whose types embedding programs see: the
// types of a database are MikroORM's.

import type { Database, DatabaseAddress, Trouble } from './database.ts';
import type { ParsedDatabaseUrl } from './database-url.ts';
import type { Orm } from './orm.ts';
import { type DriverError, driverErrorOf, StoreOpenError } from './store-errors.ts';

/** True when the server answered that it has no such database. */
export function isMissing(database: Database, thrown: unknown): boolean {
  const facts = driverErrorOf(thrown);
  return facts !== undefined && database.trouble(facts) === 'no-database';
}

/**
 * Creates the database itself when the server has none of that name. `made` here, or `found`: another process created it
 * meanwhile. `refused` where only an administrator can. Throws
 * StoreOpenError when the user may not, and the driver's error when the server did not answer.
 */
export async function createDatabase(
  { database, address }: ParsedDatabaseUrl,
  connect: (address: DatabaseAddress) => Promise<Orm>,
): Promise<'made' | 'found' | 'refused'> {
  const { creation } = database;
  if (creation === undefined) return 'refused';
  const orm = await connect({ ...address, name: creation.via });
  try {
    const quoted = orm.orm.em.getPlatform().quoteIdentifier(address.name);
    await orm.connection.execute(creation.sql(quoted));
    return 'made';
  } catch (thrown) {
    const facts = driverErrorOf(thrown);
    // Several processes may start at once: one of them makes it.
    if (facts !== undefined && isThereAlready(facts)) return 'found';
    if (facts !== undefined && SAYS_NOTHING.includes(database.trouble(facts))) throw thrown;
    throw new StoreOpenError(
      `${database.label} at ${address.host}:${address.port} has no database "${address.name}", ` +
        `and "${address.user}" may not create it: create it first`,
      thrown,
    );
  } finally {
    // Not closed: a pool that lost a connection may wait for it for ever.
    orm.destroy();
  }
}

/** Troubles that say nothing about the rights of the user. */
const SAYS_NOTHING: readonly (Trouble | undefined)[] = ['away', 'conflict'];

/** PostgreSQL: duplicate database, or two creations at the same time; MySQL: 1007; SQL Server: 1801. */
function isThereAlready({ code, number }: DriverError): boolean {
  return code === '42P04' || code === '23505' || number === 1007 || number === 1801;
}
