// Opening a database on real servers: refusals. Creating databases, also concurrently: server-behaviour.ts.

import * as assert from 'uvu/assert';
import type { ParsedDatabaseUrl } from '../../../src/persistence/database-url.ts';
import { createDatabase } from '../../../src/persistence/open-failures.ts';
import { openStore } from '../../../src/persistence/open-store.ts';
import { connectOrm } from '../../../src/persistence/orm/connection/orm.ts';
import { freshDatabase, mariadb, postgresql } from '../../helpers/services/services.ts';
import { executeSql } from '../../helpers/services/sql.ts';
import { suite } from '../../helpers/suite.ts';
import { connectOptions, parsed } from '../../persistence/connect-options.ts';
import { failureOf } from '../../persistence/open-failure.ts';
import { reachable } from './server-stores.ts';

const test = suite('opening a database on a server', { timeoutMs: 60_000 });
const [maria, postgres] = [await mariadb(), await postgresql()];
const onMariadb = test.needs(maria.url, maria.skip);
const onPostgresql = test.needs(postgres.url, postgres.skip);

onMariadb('an error names the user that the server refuses', async () => {
  const url = new URL(maria.url ?? '');
  url.username = 'nobody_here';
  url.password = 's3cret';
  const message = await failureOf(openStore(url.href, { cwd: '/', migrations: 'apply' }));
  assert.match(message, 'refuses the user "nobody_here"');
});

onMariadb('an error of a user that may not use the database does not speak of the password', async () => {
  const { url, drop } = await freshDatabase(reachable(maria));
  const user = new URL(url).pathname.slice(1).replace('spec', 'user');
  await executeSql(url, `create user ${user} identified by 's3cret'`);
  try {
    const own = new URL(url);
    own.username = user;
    own.password = 's3cret';
    const message = await failureOf(openStore(own.href, { cwd: '/', migrations: 'apply' }));
    assert.match(message, `and "${user}" may not create it: create it first, or grant the right to`);
  } finally {
    await executeSql(url, `drop user ${user}`);
    await drop();
  }
});

onPostgresql('an error names the user that may not create the database', async () => {
  const { url, drop } = await freshDatabase(reachable(postgres));
  const role = new URL(url).pathname.slice(1).replace('spec', 'role');
  await executeSql(url, `create role ${role} login password 's3cret'`);
  try {
    const own = new URL(url);
    own.username = role;
    own.password = 's3cret';
    own.pathname = '/stagedoor_not_for_you';
    const message = await failureOf(createDatabase(parsed(own.href), (address) => connect(own, address)));
    assert.match(message, `has no database "stagedoor_not_for_you", and "${role}" may not create it`);
  } finally {
    await executeSql(url, `drop role ${role}`);
    await drop();
  }
});

test('no database is created on Oracle, where only an administrator can', async () => {
  const never = () => Promise.reject(new Error('nobody should connect'));
  assert.is(await createDatabase(parsed('oracle://a@h/S'), never), false);
});

test.run();

function connect({ href }: URL, address: ParsedDatabaseUrl['address']) {
  return connectOrm(parsed(href).database, { ...connectOptions(href), address });
}
