// For developers: writes a migration for each of the five databases after a change of src/persistence/orm/entities.ts. Nothing is
// connected to; the former schema is the `.snapshot.json` beside the migrations. The gateway does not read this file.
//
//   node mikro-orm.config.ts <name>     (Node 24; `npm run format` afterwards)
//
// It also is a configuration for MikroORM's own command line: `MIKRO_ORM_CLI_CONTEXT=postgresql`.
// The row of the table `revision`, at the end of the first migrations, was added by hand.

import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { MigrationDiff } from '@mikro-orm/core';
import { MigrationGenerator, Migrator } from '@mikro-orm/migrations';
import { MikroORM, type Options } from '@mikro-orm/sql';
import type { Database, Migrations } from './src/persistence/database.ts';
import { DATABASES } from './src/persistence/database-url.ts';
import { Sockets } from './src/persistence/orm/connection/mikro-orm-patches.ts';
import { MIGRATIONS_TABLE, ormOptionsOf } from './src/persistence/orm/connection/orm.ts';
import { tablesFor } from './src/persistence/orm/entities.ts';

const MIGRATIONS = fileURLToPath(new URL('src/persistence/migrations', import.meta.url));

/** The options of one database, without an address: enough to compare schemas. `folder` holds its snapshot. */
export async function offlineOptions(database: Database, folder = MIGRATIONS): Promise<Options> {
  const address = { host: 'localhost', port: 1, user: 'stagedoor', password: '', name: 'stagedoor' };
  return {
    driver: await database.driver(),
    entities: Object.values(tablesFor(database.kind)),
    extensions: [Migrator],
    ensureDatabase: false,
    forceUtcTimezone: true,
    ...ormOptionsOf(database, {
      address: { ...address, options: new Map() },
      statementTimeoutMs: 5_000,
      idleTransactionMs: 5_000,
      connectTimeoutMs: 5_000,
      connections: 1,
      sockets: new Sockets(),
    }),
    migrations: {
      path: folder,
      pathTs: folder,
      tableName: MIGRATIONS_TABLE,
      snapshotName: `${database.kind}.snapshot`,
      disableForeignKeys: false,
      fileName: () => database.kind,
      generator: class extends MigrationGenerator {
        async generateMigrationFile(name: string, { up }: MigrationDiff): Promise<string> {
          return tableOf({ ...(await database.migrations()), [name]: up.filter((sql) => sql !== '') });
        }
      },
    },
  };
}

export default (context = 'sqlite'): Promise<Options> => {
  const database = DATABASES.find(({ kind }) => kind === context);
  if (database === undefined) throw new Error(`no database named ${context}`);
  return offlineOptions(database);
};

/** Writes what one database needs to become what the entities say. Resolves with the text of its file, or undefined. */
export async function writeMigration(
  database: Database,
  name: string,
  folder = MIGRATIONS,
): Promise<string | undefined> {
  const snapshot = join(folder, `${database.kind}.snapshot.json`);
  if (!existsSync(snapshot))
    await writeFile(snapshot, '{ "namespaces": [], "tables": [], "nativeEnums": {} }');
  const orm = new MikroORM(await offlineOptions(database, folder));
  const { code } = await new Migrator(orm.em).create(folder, false, false, name);
  return code === '' ? undefined : code;
}

function tableOf(migrations: Migrations): string {
  return [
    '// Written by mikro-orm.config.ts: the migrations of one database, in their order.',
    '',
    "import type { Migrations } from '../database.ts';",
    '',
    `export const migrations: Migrations = ${JSON.stringify(migrations, null, 2)};`,
    '',
  ].join('\n');
}

if (import.meta.main) {
  const name = process.argv[2];
  if (name === undefined || !/^[a-z][a-z0-9_]*$/.test(name))
    throw new Error('usage: node mikro-orm.config.ts <name>');
  for (const database of DATABASES) {
    const text = await writeMigration(database, name);
    process.stdout.write(`${database.kind}: ${text === undefined ? 'nothing to do' : 'written'}\n`);
  }
}
