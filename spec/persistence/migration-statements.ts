// Every statement of the migrations of one database, as they would be sent.

import type { DatabaseKind } from '../../src/persistence/database.ts';
import { parseDatabaseUrl } from '../../src/persistence/database-url.ts';
import { MIGRATIONS } from '../../src/persistence/migrations/index.ts';
import { connectOrm } from '../../src/persistence/orm.ts';

/** Statements that make tables (`up`) or take them away (`down`); `url` is a database that answers. */
export async function migrationStatements(
  kind: DatabaseKind,
  url: string,
  direction: 'up' | 'down',
): Promise<string[]> {
  const parsed = parseDatabaseUrl(url, '/');
  if (parsed === undefined) throw new Error('no database');
  const limits = { statementTimeoutMs: 5_000, connectTimeoutMs: 5_000, connections: 1 };
  const { orm, close } = await connectOrm(parsed.database, { address: parsed.address, ...limits });
  const statements: string[] = [];
  for (const { load } of MIGRATIONS[kind]) {
    const migration = new (await load())(orm.em.getDriver(), orm.config);
    await migration[direction]();
    statements.push(...migration.getQueries().map(String));
  }
  await close();
  return statements;
}
