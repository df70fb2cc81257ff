// Migrations match the entities for every kind of database, without a connection. On real servers the schema itself is compared:
// server-behaviour.ts, migrate.spec.ts.

import { cp, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { writeMigration } from '../../../mikro-orm.config.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';
import { KINDS, offline } from '../orm/offline.ts';

const test = suite('migrations');
const folder = folderOfEach(test);
const root = fileURLToPath(new URL('../../../src/persistence/migrations', import.meta.url));

for (const kind of KINDS) {
  test(`${kind}: no migration is missing, and a column without a migration is detected`, async () => {
    await cp(root, folder(), { recursive: true });
    const { database } = await offline(kind);
    assert.is(await writeMigration(database, 'nothing', folder()), undefined);
    const file = folder(`${kind}.snapshot.json`);
    const snapshot = JSON.parse(await readFile(file, 'utf8'));
    const users = snapshot.tables.find(({ name }: { name: string }) => name === 'users');
    delete users.columns.email;
    await writeFile(file, JSON.stringify(snapshot));
    const written = (await writeMigration(database, 'more', folder())) ?? '';
    assert.is(written, await readFile(folder(`${kind}.ts`), 'utf8'));
    assert.match(written, /"Migration\d{14}_more": \[\n.*alter table.*email/);
    for (const name of Object.keys(await database.migrations())) assert.match(written, `"${name}": [`);
  });

  // Valid for the first migration; once another one changes a table, compare the sum of all.
  test(`${kind}: they create every table of the entities, and the row of the revision`, async () => {
    const { database, orm } = await offline(kind);
    const schema = await orm.schema.getCreateSchemaSQL({ wrap: false });
    const statements = schema.split('\n').filter((line) => line !== '');
    const made = withColumns(Object.values(await database.migrations()).flat());
    const wanted = statements.map(partsOf);
    for (const [index, parts] of wanted.entries())
      assert.ok(
        made.some((statement) => partsOf(statement) === parts),
        statements[index],
      );
    const others = made.filter((statement) => !wanted.includes(partsOf(statement)));
    const found = others.map((statement) => statement.replace(/["`[\]]/g, ''));
    assert.equal(found, [`insert into revision (name, counter) values ('registry', 0);`]);
  });
}

const ADDED = /^alter table (\S+) add (?:column )?(?!index |unique |constraint )(.+);$/;

/** Tables as they are after columns were added to them. */
function withColumns(statements: readonly string[]): string[] {
  const added = statements.flatMap((statement) => {
    const [, table = '', column = ''] = ADDED.exec(statement) ?? [];
    return table === '' ? [] : [[`create table ${table} (`, column] as const];
  });
  return statements
    .filter((statement) => !ADDED.test(statement))
    .map((statement) =>
      added.reduce(
        (text, [start, column]) =>
          text.startsWith(start) ? text.replace(start, `${start}${column}, `) : text,
        statement,
      ),
    );
}

/** The order of columns in a table has no meaning. */
function partsOf(statement: string): string {
  return statement.startsWith('create table ')
    ? statement
        .split(/, |(?<=^[^(]*\()/)
        .sort()
        .join()
    : statement;
}

test.run();
