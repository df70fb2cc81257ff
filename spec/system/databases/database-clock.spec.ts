// The clock of a database server, read from real ones; for the others the statement is held against their grammar.

import * as assert from 'uvu/assert';
import { mssql } from '../../../src/persistence/databases/mssql.ts';
import { oracle } from '../../../src/persistence/databases/oracle.ts';
import { databaseClock, StoreOpenError } from '../../../src/persistence/open.ts';
import { grammarFault } from '../../fixtures/sql/grammar.ts';
import { freshDatabase, mariadb, postgresql } from '../../helpers/services.ts';
import { suite } from '../../helpers/suite.ts';
import { reachable } from './server-stores.ts';

const test = suite('database clock', { timeoutMs: 30_000 });

for (const service of [await postgresql(), await mariadb()]) {
  test.needs(service.url, service.skip)('is told in ms since 1970', async () => {
    const { url, drop } = await freshDatabase(reachable(service));
    try {
      const before = Date.now();
      const clock = await databaseClock(url, { cwd: '/' });
      // It runs on this machine or near it.
      assert.ok(Math.abs((clock ?? 0) - before) < 3_600_000, `${clock} ${before}`);
    } finally {
      await drop();
    }
  });
}

test('is ours where the database is a file or memory', async () => {
  assert.is(await databaseClock('memory://', { cwd: '/' }), undefined);
  assert.is(await databaseClock('sqlite:///none.db', { cwd: '/nowhere' }), undefined);
});

test('fails in one line when nobody answers', async () => {
  const failure = await databaseClock('postgresql://127.0.0.1:2/x', { cwd: '/' }).catch(
    (error: unknown) => error,
  );
  assert.instance(failure, StoreOpenError);
});

test('is asked for in the grammar of servers that are not at hand', () => {
  assert.is(grammarFault(mssql.clockSql ?? '', 'mssql'), undefined);
  assert.is(grammarFault(oracle.clockSql ?? '', 'oracle'), undefined);
});

test.run();
