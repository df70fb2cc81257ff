// One pool and its end.

import * as assert from 'uvu/assert';
import { sqlite } from '../../src/persistence/databases/sqlite.ts';
import { connectOrm } from '../../src/persistence/orm.ts';
import { suite } from '../helpers/suite.ts';
import { connectOptions } from './databases/connect-options.ts';

const test = suite('ORM');

test('fails with the error of the driver, and leaves nothing open', async () => {
  const failure = await connectOrm(sqlite, connectOptions('sqlite:////nowhere/at/all.db')).catch(
    (thrown: unknown) => thrown,
  );
  assert.match(String(failure), /directory does not exist|unable to open/);
});

test('knows when its database last answered', async () => {
  const { connection, lastHeardAt, close } = await connectOrm(sqlite, connectOptions('sqlite://'));
  const heardAt = lastHeardAt();
  await connection.execute('select nonsense').catch(() => undefined);
  assert.is(lastHeardAt(), heardAt);
  const askedAt = performance.now();
  await connection.execute('select 1');
  assert.ok(lastHeardAt() >= askedAt && lastHeardAt() <= performance.now());
  await close();
});

test('does not read the variables that configure MikroORM elsewhere', async () => {
  process.env.MIKRO_ORM_DB_NAME = '/nowhere/else.db';
  try {
    const { orm, close } = await connectOrm(sqlite, connectOptions('sqlite://'));
    assert.is(orm.config.get('dbName'), ':memory:');
    await close();
  } finally {
    delete process.env.MIKRO_ORM_DB_NAME;
  }
});

test.run();
