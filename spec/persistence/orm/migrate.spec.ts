// Migrations on SQLite. Several processes: orm-store.spec.ts; the servers: spec/system/databases.

import * as assert from 'uvu/assert';
import { sqlite } from '../../../src/persistence/databases/sqlite.ts';
import type { Orm } from '../../../src/persistence/orm/connection/orm.ts';
import { migrate, readMigrationStatus } from '../../../src/persistence/orm/migrate.ts';
import { thrownBy } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { connect } from '../connect-options.ts';
import { schemaDifference } from './schema-difference.ts';

const test = suite('migrate');
const ours = Object.keys(await sqlite.migrations());
let orm: Orm;
test.before.each(async () => {
  orm = await connect('sqlite://');
});
test.after.each(() => orm.close());

test('applies every migration once, after which the tables match the entities', async () => {
  assert.equal(await readMigrationStatus(sqlite, orm), { applied: [], pending: ours, unknown: [] });
  for (let round = 0; round < 2; round += 1)
    assert.equal(await migrate(sqlite, orm, 1_000), { applied: ours, pending: [], unknown: [] });
  assert.is(await schemaDifference(orm), '');
  await orm.connection.execute('alter table users drop column email');
  assert.match(await schemaDifference(orm), 'email');
});

test('brings a database of an earlier version up to date, and keeps its rows', async () => {
  await migrate(sqlite, orm, 1_000);
  const entry = `insert into audit_log (id, at, actor, action, status) values ('a', 0, 'ada', 'POST /servers', 201)`;
  await orm.connection.execute(entry);
  const later = { later: ['create table more (id text);'] };
  const next = { ...sqlite, migrations: async () => ({ ...(await sqlite.migrations()), ...later }) };
  assert.equal(await readMigrationStatus(next, orm), { applied: ours, pending: ['later'], unknown: [] });
  const applied = [...ours, 'later'];
  assert.equal(await migrate(next, orm, 1_000), { applied, pending: [], unknown: [] });
  assert.equal(await orm.connection.execute('select actor from audit_log'), [{ actor: 'ada' }]);
});

test('changes nothing in a database of a newer version', async () => {
  await migrate(sqlite, orm, 1_000);
  await orm.connection.execute(`delete from stagedoor_migrations`);
  await orm.connection.execute(`insert into stagedoor_migrations (name) values ('Migration29991231_newer')`);
  const status = {
    applied: ['Migration29991231_newer'],
    pending: ours,
    unknown: ['Migration29991231_newer'],
  };
  assert.equal(await migrate(sqlite, orm, 1_000), status);
});

test('rolls back completely when a migration fails', async () => {
  await orm.connection.execute('create table users (other integer)');
  assert.match(String(await thrownBy(migrate(sqlite, orm, 1_000))), 'already exists');
  const tables = await orm.connection.execute(
    `select name from sqlite_master where type = 'table' order by name`,
  );
  assert.equal(tables, [{ name: 'users' }]);
});

test('reports the error of the migration, not the failure of the rollback', async () => {
  await orm.connection.execute('create table users (other integer)');
  // A lock that began no transaction: there is nothing to roll back.
  const withoutTransaction = { ...sqlite, lock: { scope: 'alone', take: async () => {} } } as const;
  assert.match(String(await thrownBy(migrate(withoutTransaction, orm, 1_000))), 'already exists');
});

test.run();
