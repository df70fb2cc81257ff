// The store on SQL Server: always through MikroORM and the real driver to a stand-in on a socket (its limits:
// fixtures/tds/server.ts), and on a real server when TEST_MSSQL_URL names one.

import * as assert from 'uvu/assert';
import { openStore, StoreOpenError } from '../../../src/persistence/open-store.ts';
import { startTdsServer, type TdsServer } from '../../fixtures/tds/server.ts';
import { endOf, thrownBy } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { OPTIONS, onRealServer, standInBehaviour } from './stand-in-behaviour.ts';

const test = suite('store on a stand-in for SQL Server', { timeoutMs: 30_000 });
let server: TdsServer;
test.before.each(async () => {
  server = await startTdsServer();
});
test.after.each(async () => {
  await server.close();
  // Statements that are not T-SQL, or unknown to the stand-in: code may have caught the error, so it is checked here.
  assert.equal(server.faults, []);
});

standInBehaviour(test, { kind: 'mssql', url: () => server.url, databaseName: 'stagedoor', quoted: /\] / });

test('recovers by itself when its connections are cut', async () => {
  const store = await openStore(server.url, OPTIONS);
  for (let round = 0; round < 3; round += 1) {
    server.cut();
    let failures = 0;
    const save = () => store.templates.save({ name: `round-${round}`, loadBalancer: {} });
    for (;;) {
      const code = await endOf(save());
      if (code === 'done') break;
      assert.is(code, 'DATABASE_UNAVAILABLE');
      failures += 1;
      assert.ok(failures <= 10, 'one failure for every connection at most');
    }
  }
  assert.is((await store.templates.list()).length, 3);
  await store.close();
});

test('fails at once when its connection is cut during a migration, and completes it the next time', async () => {
  for (const statement of [
    /sp_getapplock/,
    /^create table \[users\]/,
    /^insert into \[stagedoor_migrations\]/,
  ]) {
    server.cutAt(statement);
    assert.instance(await thrownBy(openStore(server.url, OPTIONS)), StoreOpenError, String(statement));
  }
  const store = await openStore(server.url, OPTIONS);
  assert.is(await store.revision(), 0);
  await store.close();
});

test('rolls back a change whose connection is cut in the middle', async () => {
  const store = await openStore(server.url, OPTIONS);
  for (const statement of [/^update \[revision\]/, /^insert into \[templates\]/]) {
    server.cutAt(statement);
    assert.is(await endOf(store.templates.save({ name: 'demo', loadBalancer: {} })), 'DATABASE_UNAVAILABLE');
  }
  assert.equal([await store.templates.list(), await store.revision()], [[], 0]);
  await store.templates.save({ name: 'demo', loadBalancer: {} });
  assert.is((await store.templates.list()).length, 1);
  await store.close();
});

test.run();
onRealServer('SQL Server', 'TEST_MSSQL_URL');
