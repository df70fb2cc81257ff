// Migrations and entities say the same, for every database, without one. On real servers the schema itself is compared:
// server-behaviour.ts, migrate.spec.ts.

import { cp, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { writeMigration } from '../../mikro-orm.config.ts';
import { MIGRATIONS } from '../../src/persistence/migrations/index.ts';
import { folderOfEach } from '../helpers/folder.ts';
import { suite } from '../helpers/suite.ts';
import { KINDS, offline } from './offline.ts';

const test = suite('migrations');
const folder = folderOfEach(test);
const root = fileURLToPath(new URL('../../src/persistence/migrations', import.meta.url));

for (const kind of KINDS) {
  test(`${kind}: nothing is left to migrate, and a column that no migration has made would be noticed`, async () => {
    await cp(join(root, kind), folder(), { recursive: true });
    const { database } = await offline(kind);
    assert.is(await writeMigration(database, 'nothing', folder()), undefined);
    const snapshot = JSON.parse(await readFile(folder('.snapshot.json'), 'utf8'));
    const users = snapshot.tables.find(({ name }: { name: string }) => name === 'users');
    delete users.columns.email;
    await writeFile(folder('.snapshot.json'), JSON.stringify(snapshot));
    const written = (await writeMigration(database, 'more', folder())) ?? '';
    assert.match(written, /^Migration\d{14}_more\.ts$/);
    assert.match(await readFile(folder(written), 'utf8'), /alter table.*email/);
    assert.match(await readFile(folder('index.ts'), 'utf8'), `name: '${written.replace('.ts', '')}'`);
  });

  // True while each of them only makes and drops tables; once one changes a table, compare what all make together.
  test(`${kind}: they make every table as the entities say, and the row of the revision`, async () => {
    const { orm } = await offline(kind);
    const schema = await orm.schema.getCreateSchemaSQL({ wrap: false });
    const statements = schema.split('\n').filter((line) => line !== '');
    const made: string[] = [];
    for (const { load } of MIGRATIONS[kind]) {
      const migration = new (await load())(orm.driver, orm.config);
      await migration.up();
      made.push(...migration.getQueries().map(String));
    }
    for (const statement of statements) assert.ok(made.includes(statement), statement);
    const others = made.filter((statement) => !statements.includes(statement));
    const [insert, create = '', drop = '', ...more] = others.map((statement) =>
      statement.replace(/["`[\]]/g, ''),
    );
    assert.is(insert, `insert into revision (name, counter) values ('registry', 0);`);
    assert.match(create, /^create table audit_calls /);
    assert.match(drop, /^drop table audit_calls;$/);
    assert.equal(more, []);
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

test.run();
