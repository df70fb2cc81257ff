// A store in a database that somebody named: its tables are dropped first, so that every test begins with none.

import { parseDatabaseUrl } from '../../src/persistence/database-url.ts';
import { openStore } from '../../src/persistence/open.ts';
import { connectOrm, MIGRATIONS_TABLE } from '../../src/persistence/orm.ts';
import type { Store } from '../../src/persistence/store.ts';
import { cipher } from './every-conformance.ts';

const tables = [
  ...['templates', 'instances', 'tombstones', 'users', 'api_keys', 'settings', 'revision'],
  ...['audit_log', 'audit_calls', 'audit_call_blocks'],
  ...[MIGRATIONS_TABLE, 'stagedoor_lock'],
];

/** Drops our tables in the database and opens a store there. */
export async function emptiedStore(url: string): Promise<Store> {
  const parsed = parseDatabaseUrl(url, '/');
  if (parsed === undefined) throw new Error('no database');
  const { database, address } = parsed;
  const limits = { statementTimeoutMs: 30_000, connectTimeoutMs: 10_000, connections: 1 };
  const { orm, connection, close } = await connectOrm(database, { address, ...limits });
  for (const table of tables) {
    await connection.execute(`drop table ${orm.em.getPlatform().quoteIdentifier(table)}`).catch(() => {
      // Most likely it is not there; when it is, the migrations fail and say so.
    });
  }
  await close();
  return openStore(url, { cwd: '/', cipher, migrations: 'apply' });
}
