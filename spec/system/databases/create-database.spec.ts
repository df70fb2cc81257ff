// Making the database itself. That it works, also for several at once, is shown on real servers: server-behaviour.ts.

import * as assert from 'uvu/assert';
import { failureOf } from '../../../src/persistence/database.ts';
import { type ParsedDatabaseUrl, parseDatabaseUrl } from '../../../src/persistence/database-url.ts';
import { createDatabase, explain } from '../../../src/persistence/open-failures.ts';
import { connectOrm } from '../../../src/persistence/orm.ts';
import { StoreOpenError } from '../../../src/persistence/store-errors.ts';
import { executeSql } from '../../helpers/services/sql.ts';
import { freshDatabase, postgresql } from '../../helpers/services.ts';
import { suite } from '../../helpers/suite.ts';
import { connectOptions } from '../../persistence/connect-options.ts';
import { silentProxy } from '../../persistence/silent-proxy.ts';
import { reachable } from './server-stores.ts';

const test = suite('create database', { timeoutMs: 30_000 });

test('knows a missing database by what its server says', () => {
  const missing = (scheme: string, facts: object) =>
    failureOf(parsed(`${scheme}://h/x`).database, Object.assign(new Error('m'), facts)) === 'no-database';
  assert.equal(
    [
      missing('postgresql', { code: '3D000' }),
      missing('mysql', { errno: 1049 }),
      missing('mssql', { number: 4060 }),
      missing('postgresql', { code: 'ECONNREFUSED' }),
      missing('mysql', { errno: 1045 }),
    ],
    [true, true, true, false, false],
  );
});

test('makes none where only an administrator can', async () => {
  const connect = () => Promise.reject(new Error('nobody should connect'));
  assert.is(await createDatabase(parsed('oracle://a@h/S'), connect), 'refused');
});

const service = await postgresql();
test.needs(service.url, service.skip)('says that the user may not, when that is so', async () => {
  const { url, drop } = await freshDatabase(reachable(service));
  const role = new URL(url).pathname.slice(1).replace('spec', 'role');
  await executeSql(url, `create role ${role} login password 's3cret'`);
  try {
    const own = new URL(url);
    own.username = role;
    own.password = 's3cret';
    own.pathname = '/stagedoor_not_for_you';
    const failure = await createDatabase(parsed(own.href), (address) =>
      connectOrm(parsed(own.href).database, { ...connectOptions(own.href), address }),
    ).catch((thrown: unknown) => thrown);
    assert.instance(failure, StoreOpenError);
    assert.match(String(failure), `has no database "stagedoor_not_for_you", and "${role}" may not create it`);
  } finally {
    await executeSql(url, `drop role ${role}`);
    await drop();
  }
});

test.needs(service.url, service.skip)(
  'a server that is lost meanwhile is not told as a user who may not, and keeps nobody waiting',
  async () => {
    const { url, drop } = await freshDatabase(reachable(service));
    const proxy = await silentProxy(url);
    const own = new URL(proxy.url);
    own.pathname = '/stagedoor_never_made';
    const failure = await createDatabase(parsed(own.href), async (address) => {
      const orm = await connectOrm(parsed(own.href).database, { ...connectOptions(own.href), address });
      await proxy.close();
      return orm;
    }).catch((thrown: unknown) => thrown);
    assert.not.instance(failure, StoreOpenError, String(failure));
    assert.match(explain(parsed(own.href), failure).message, 'cannot be reached');
    await drop();
  },
);

test.needs(service.url, service.skip)('says who made it', async () => {
  const { url, drop } = await freshDatabase(reachable(service));
  const own = new URL(url);
  own.pathname += '_made';
  const make = () =>
    createDatabase(parsed(own.href), (address) =>
      connectOrm(parsed(own.href).database, { ...connectOptions(own.href), address }),
    );
  try {
    assert.equal([await make(), await make()], ['made', 'found']);
  } finally {
    await executeSql(url, `drop database if exists ${own.pathname.slice(1)}`);
    await drop();
  }
});

function parsed(url: string): ParsedDatabaseUrl {
  const found = parseDatabaseUrl(url, '/');
  if (found === undefined) throw new Error('no database');
  return found;
}

test.run();
