// SQLite: what its errors mean, and how a file is opened.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { sqlite } from '../../../src/persistence/databases/sqlite.ts';
import { connectOrm } from '../../../src/persistence/orm.ts';
import { suite } from '../../helpers/suite.ts';
import { connectOptions, failuresOf } from './connect-options.ts';

const test = suite('SQLite');

test('tells a busy file from one that cannot be used, and both from a statement it refuses', () => {
  assert.equal(
    failuresOf(sqlite, ['SQLITE_BUSY', 'SQLITE_BUSY_SNAPSHOT', { message: 'x - database is locked' }]),
    ['conflict', 'conflict', 'conflict'],
  );
  assert.equal(
    failuresOf(sqlite, ['SQLITE_CANTOPEN', 'SQLITE_IOERR_FSYNC', 'SQLITE_FULL', 'SQLITE_READONLY']),
    ['unavailable', 'unavailable', 'unavailable', 'unavailable'],
  );
  assert.equal(failuresOf(sqlite, ['SQLITE_NOTADB', 'SQLITE_CORRUPT_VTAB']), ['damaged', 'damaged']);
  assert.equal(failuresOf(sqlite, ['SQLITE_CONSTRAINT_UNIQUE', 'SQLITE_ERROR', '']), [
    undefined,
    undefined,
    undefined,
  ]);
});

test('writes ahead, waits for the disk at every commit, and holds foreign keys', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'stagedoor-sqlite-'));
  const { orm, connection, close } = await connectOrm(sqlite, connectOptions(`sqlite:///${folder}/x.db`));
  try {
    const values = await Promise.all(
      ['journal_mode', 'synchronous', 'foreign_keys', 'busy_timeout'].map((name) =>
        connection.execute(`pragma ${name}`, [], 'get'),
      ),
    );
    assert.equal(
      values.flatMap((row) => Object.values(Object(row))),
      ['wal', 2, 1, 25],
    );
    assert.is(orm.config.get('dbName'), join(folder, 'x.db'));
  } finally {
    await close();
    await rm(folder, { recursive: true, force: true });
  }
});

test('waits for the lock of migrations, not longer than asked', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'stagedoor-sqlite-'));
  const url = `sqlite:///${folder}/x.db`;
  const [one, other] = [
    await connectOrm(sqlite, connectOptions(url)),
    await connectOrm(sqlite, connectOptions(url)),
  ];
  try {
    await sqlite.lock.take((sql) => one.connection.execute(sql), 1_000, '');
    const startedAt = performance.now();
    const refused = await sqlite.lock
      .take((sql) => other.connection.execute(sql), 200, '')
      .catch((thrown: unknown) => thrown);
    assert.match(String(refused), 'database is locked');
    assert.ok(performance.now() - startedAt >= 190);
    const taking = sqlite.lock.take((sql) => other.connection.execute(sql), 5_000, '');
    await one.connection.execute('commit');
    await taking;
    await other.connection.execute('rollback');
  } finally {
    await Promise.all([one.close(), other.close()]);
    await rm(folder, { recursive: true, force: true });
  }
});

test.run();
