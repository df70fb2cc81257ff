// For developers: writes a migration for each of the five databases after a change of src/persistence/entities.ts. Nothing is
// connected to; the former schema is the `.snapshot.json` beside the migrations.
//
//   node mikro-orm.config.ts <name>     (Node 24; `npm run format` afterwards)
//
// It also is a configuration for MikroORM's own command line: `MIKRO_ORM_CLI_CONTEXT=postgresql`. The gateway does not read it.

import { existsSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Migrator } from '@mikro-orm/migrations';
import { MikroORM, type Options } from '@mikro-orm/sql';
import type { Database } from './src/persistence/database.ts';
import { DATABASES } from './src/persistence/databases/index.ts';
import { tablesFor } from './src/persistence/entities.ts';
import { Sockets } from './src/persistence/mikro-orm-patches.ts';
import { MIGRATIONS_TABLE } from './src/persistence/orm.ts';

const MIGRATIONS = fileURLToPath(new URL('src/persistence/migrations', import.meta.url));

/** The options of one database, without an address: enough to compare schemas. `folder` holds its snapshot. */
export async function offlineOptions(database: Database, folder = folderOf(database)): Promise<Options> {
  const address = { host: 'localhost', port: 1, user: 'stagedoor', password: '', name: 'stagedoor' };
  return {
    driver: await database.driver(),
    entities: Object.values(tablesFor(database.kind)),
    extensions: [Migrator],
    ensureDatabase: false,
    forceUtcTimezone: true,
    ...database.options({
      address: { ...address, options: new Map() },
      statementTimeoutMs: 5_000,
      connectTimeoutMs: 5_000,
      connections: 1,
      sockets: new Sockets(),
    }),
    migrations: {
      path: folder,
      pathTs: folder,
      tableName: MIGRATIONS_TABLE,
      snapshotName: '.snapshot',
      disableForeignKeys: false,
    },
  };
}

export default (context = 'sqlite'): Promise<Options> => {
  const database = DATABASES.find(({ kind }) => kind === context);
  if (database === undefined) throw new Error(`no database named ${context}`);
  return offlineOptions(database);
};

/** Writes what one database needs to become what the entities say. Resolves with the new file, or undefined. */
export async function writeMigration(
  database: Database,
  name: string,
  folder = folderOf(database),
): Promise<string | undefined> {
  await mkdir(folder, { recursive: true });
  const snapshot = join(folder, '.snapshot.json');
  if (!existsSync(snapshot))
    await writeFile(snapshot, '{ "namespaces": [], "tables": [], "nativeEnums": {} }');
  const orm = new MikroORM(await offlineOptions(database, folder));
  const { fileName } = await new Migrator(orm.em).create(folder, false, false, name);
  if (fileName === '') return undefined;
  const names = (await readdir(folder)).filter((file) => file.startsWith('Migration')).sort();
  await writeFile(join(folder, 'index.ts'), indexOf(names.map((file) => file.replace(/\.ts$/, ''))));
  return fileName;
}

function folderOf({ kind }: Database): string {
  return join(MIGRATIONS, kind);
}

function indexOf(names: readonly string[]): string {
  const rows = names.map(
    (name) => `  { name: '${name}', load: async () => (await import('./${name}.ts')).${name} },`,
  );
  return [
    '// Written by mikro-orm.config.ts: the migrations in their order.',
    '',
    "import type { MigrationEntry } from '../entry.ts';",
    '',
    `export const migrations: readonly MigrationEntry[] = [`,
    ...rows,
    '];',
    '',
  ].join('\n');
}

if (import.meta.main) {
  const name = process.argv[2];
  if (name === undefined || !/^[a-z][a-z0-9_]*$/.test(name))
    throw new Error('usage: node mikro-orm.config.ts <name>');
  for (const database of DATABASES) {
    const file = await writeMigration(database, name);
    process.stdout.write(`${database.kind}: ${file ?? 'nothing to do'}\n`);
  }
}
