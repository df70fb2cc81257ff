// How many workers a gateway has, by its database and the file system of that.

import { tmpdir } from 'node:os';
import * as assert from 'uvu/assert';
import { workerCount } from '../../../src/cli/workers/worker-count.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the number of workers');

const SQLITE = { databaseUrl: 'sqlite:///gateway.db', folder: tmpdir() };
const NFS = 0x6969;
const SMB = 0xff534d42;

test('is that of the setting on a local file and on a server, and one for a database in memory', () => {
  assert.is(workerCount({ ...SQLITE, workers: 3 }), 3);
  const server = { ...SQLITE, databaseUrl: 'postgresql://db/gateway' };
  assert.is(
    workerCount({ ...server, workers: 3 }, () => NFS),
    3,
  );
  const memory = { ...SQLITE, databaseUrl: 'memory://' };
  assert.is(workerCount({ ...memory, workers: 'auto' }), 1);
  assert.throws(() => workerCount({ ...memory, workers: 2 }), /need a database that they share/);
});

if (process.platform === 'linux')
  test('is one for a SQLite file on a network file system, whose locks hold no second process', () => {
    for (const type of [NFS, SMB, SMB | 0]) {
      assert.is(
        workerCount({ ...SQLITE, workers: 1 }, () => type),
        1,
      );
      assert.is(
        workerCount({ ...SQLITE, workers: 'auto' }, () => type),
        1,
      );
      assert.throws(
        () => workerCount({ ...SQLITE, workers: 2 }, () => type),
        /cannot share a SQLite file on (NFS|SMB)/,
      );
    }
    const unknown = () => {
      throw new Error('ENOENT');
    };
    assert.is(workerCount({ ...SQLITE, workers: 2 }, unknown), 2);
  });

test.run();
