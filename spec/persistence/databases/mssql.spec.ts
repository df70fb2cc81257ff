// SQL Server: options and errors.

import * as assert from 'uvu/assert';
import { mssql } from '../../../src/persistence/databases/mssql.ts';
import { suite } from '../../helpers/suite.ts';
import { connectOptions, failuresOf } from './connect-options.ts';

const test = suite('SQL Server');

test('takes its options from the URL: encrypted and checked unless told otherwise', () => {
  const standard = mssql.options(connectOptions('sqlserver://sa:pw@h/gateway'));
  assert.equal(
    [standard.host, standard.port, standard.user, standard.password, standard.dbName],
    ['h', 1433, 'sa', 'pw', 'gateway'],
  );
  const tds = (url: string) => Object(mssql.options(connectOptions(url)).driverOptions).options;
  const { encrypt, trustServerCertificate, requestTimeout, fallbackToDefaultDb } = tds('mssql://h/x');
  assert.equal(
    [encrypt, trustServerCertificate, requestTimeout, fallbackToDefaultDb],
    [true, false, 4_000, false],
  );
  const changed = tds('mssql://h/x?encrypt=false&trustServerCertificate=yes&instanceName=EXPRESS');
  assert.equal(
    [changed.encrypt, changed.trustServerCertificate, changed.instanceName, changed.port],
    [false, true, 'EXPRESS', undefined],
  );
  assert.throws(() => tds('mssql://h/x?encrypt=perhaps'), /encrypt is true or false/);
});

test('every connection can be closed at once', async () => {
  const options = connectOptions('mssql://h/x');
  let isClosed = false;
  await mssql.options(options).onCreateConnection?.({ close: () => (isClosed = true) });
  options.sockets.destroy();
  assert.is(isClosed, true);
});

test('tells its failures apart', () => {
  assert.equal(failuresOf(mssql, [4060, 911, 18456]), ['no-database', 'no-database', 'credentials']);
  assert.equal(failuresOf(mssql, [1205, 1222, 3960]), ['conflict', 'conflict', 'conflict']);
  const away = [6005, 40613, 10928, 'ESOCKET', 'ETIMEOUT', 'ECONNCLOSED', 'ECONNREFUSED'];
  assert.equal(new Set(failuresOf(mssql, away)), new Set(['unavailable']));
  assert.equal(failuresOf(mssql, [2627, 2601, 208, 102, 'EREQUEST']), [
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});

test.run();
