// Migrations and entities say the same, for every database, without one. On real servers the schema itself is compared:
// server-behaviour.ts, migrate.spec.ts.

import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { writeMigration } from '../../mikro-orm.config.ts';
import type { DatabaseKind } from '../../src/persistence/database.ts';
import { MIGRATIONS } from '../../src/persistence/migrations/index.ts';
import { suite } from '../helpers/suite.ts';
import { KINDS, offline } from './offline.ts';

const test = suite('migrations', { timeoutMs: 30_000 });
const root = fileURLToPath(new URL('../../src/persistence/migrations', import.meta.url));

for (const kind of KINDS) {
  test(`${kind}: nothing is left to migrate`, () =>
    withCopy(kind, async (folder) => {
      const { database } = await offline(kind);
      assert.is(await writeMigration(database, 'nothing', folder), undefined);
    }));

  test(`${kind}: a column that no migration has made would be noticed`, () =>
    withCopy(kind, async (folder) => {
      const { database } = await offline(kind);
      const file = join(folder, '.snapshot.json');
      const snapshot = JSON.parse(await readFile(file, 'utf8'));
      const users = snapshot.tables.find(({ name }: { name: string }) => name === 'users');
      delete users.columns.email;
      await writeFile(file, JSON.stringify(snapshot));
      const written = await writeMigration(database, 'more', folder);
      assert.match(written ?? '', /^Migration\d{14}_more\.ts$/);
      assert.match(await readFile(join(folder, written ?? ''), 'utf8'), /alter table.*email/);
      assert.match(
        await readFile(join(folder, 'index.ts'), 'utf8'),
        `name: '${written?.replace('.ts', '')}'`,
      );
    }));

  // True while each of them only makes tables; once one changes a table, compare what all make together.
  test(`${kind}: they make every table as the entities say, and the row of the revision`, async () => {
    const { orm } = await offline(kind);
    const statements = (await orm.schema.getCreateSchemaSQL({ wrap: false }))
      .split('\n')
      .filter((line) => line !== '');
    const made: string[] = [];
    for (const { load } of MIGRATIONS[kind]) {
      const migration = new (await load())(orm.driver, orm.config);
      await migration.up();
      made.push(...migration.getQueries().map(String));
    }
    assert.equal(
      statements.filter((statement) => !made.includes(statement)),
      [],
    );
    assert.equal(
      made
        .filter((statement) => !statements.includes(statement))
        .map((statement) => statement.replace(/["`[\]]/g, '')),
      [`insert into revision (name, counter) values ('registry', 0);`],
    );
  });

  test(`${kind}: the table lists every file, by the name that is recorded`, async () => {
    const files = (await readdir(join(root, kind))).filter((file) => file.startsWith('Migration'));
    assert.equal(
      MIGRATIONS[kind].map(({ name }) => `${name}.ts`),
      files.sort(),
    );
    const { orm } = await offline(kind);
    for (const { name, load } of MIGRATIONS[kind]) {
      const Migration = await load();
      assert.is(new Migration(orm.driver, orm.config).name, name);
    }
  });
}

async function withCopy(kind: DatabaseKind, work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'stagedoor-migrations-'));
  try {
    await cp(join(root, kind), folder, { recursive: true });
    await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

test.run();
