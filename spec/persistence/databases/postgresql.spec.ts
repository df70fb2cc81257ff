// PostgreSQL: options and errors. The server itself is in orm-store.postgresql.spec.ts.

import * as assert from 'uvu/assert';
import { postgresql } from '../../../src/persistence/databases/postgresql.ts';
import { suite } from '../../helpers/suite.ts';
import { connectOptions, failuresOf, statementsOnConnect } from './connect-options.ts';

const test = suite('PostgreSQL');

test('takes its options from the URL', () => {
  const options = postgresql.options(connectOptions('postgres://ada:pw@h:6000/gateway?sslmode=verify-full'));
  assert.equal(
    [options.host, options.port, options.user, options.password, options.dbName, options.pool?.max],
    ['h', 6000, 'ada', 'pw', 'gateway', 10],
  );
  const ssl = (mode: string) =>
    Object(postgresql.options(connectOptions(`postgresql://h/x${mode}`)).driverOptions).ssl;
  assert.equal(
    [ssl(''), ssl('?sslmode=disable'), ssl('?sslmode=require'), ssl('?sslmode=verify-full')],
    [false, false, { rejectUnauthorized: false }, { rejectUnauthorized: true }],
  );
  assert.throws(() => ssl('?sslmode=on'), /sslmode is one of/);
  const socket = postgresql.options(connectOptions('postgresql:///x?host=/run/postgresql'));
  assert.is(socket.host, '/run/postgresql');
});

test('fixes on every connection what backslashes mean, and how long anything may take', async () => {
  const [statement = ''] = await statementsOnConnect(postgresql, 'postgresql://h/x');
  for (const part of ['standard_conforming_strings = on', 'statement_timeout = 4000', 'lock_timeout = 4000'])
    assert.match(statement, part);
});

test('tells its failures apart', () => {
  assert.equal(failuresOf(postgresql, ['3D000', '28P01', '28000']), [
    'no-database',
    'credentials',
    'credentials',
  ]);
  assert.equal(failuresOf(postgresql, ['40001', '40P01', '55P03']), ['conflict', 'conflict', 'conflict']);
  const away = ['55000', '57P01', '57014', '53300', '08006', '58030', 'ECONNREFUSED', 'ENOTFOUND'];
  assert.equal(new Set(failuresOf(postgresql, away)), new Set(['unavailable']));
  assert.is(
    postgresql.failure({
      code: '42501',
      number: 0,
      isFatal: true,
      message: 'permission denied for database',
    }),
    'unavailable',
  );
  const uncoded = ['Connection terminated unexpectedly', 'timeout exceeded when trying to connect'];
  assert.equal(
    failuresOf(
      postgresql,
      uncoded.map((message) => ({ message })),
    ),
    ['unavailable', 'unavailable'],
  );
  assert.equal(failuresOf(postgresql, ['23505', '42P01', '42601', '22001', '']), [
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});

test.run();
