// MySQL and MariaDB: options and errors. The server itself is in orm-store.mariadb.spec.ts.

import * as assert from 'uvu/assert';
import { mysql } from '../../../src/persistence/databases/mysql.ts';
import { suite } from '../../helpers/suite.ts';
import { connectOptions, failuresOf, statementsOnConnect } from './connect-options.ts';

const test = suite('MySQL');

test('takes its options from the URL', () => {
  const options = mysql.options(
    connectOptions('mariadb://ada:pw@h:6000/gateway?ssl=true&socket=/run/my.sock'),
  );
  assert.equal(
    [options.host, options.port, options.user, options.password, options.dbName, options.collate],
    ['h', 6000, 'ada', 'pw', 'gateway', 'utf8mb4_bin'],
  );
  const { ssl, socketPath } = Object(options.driverOptions);
  assert.equal([ssl, socketPath], [{ rejectUnauthorized: true }, '/run/my.sock']);
  assert.is('ssl' in Object(mysql.options(connectOptions('mysql://h/x')).driverOptions), false);
  assert.throws(() => mysql.options(connectOptions('mysql://h/x?ssl=maybe')), /ssl is one of/);
});

test('takes no charset that cannot hold every text', () => {
  const charset = (name: string) => mysql.options(connectOptions(`mysql://h/x?charset=${name}`)).charset;
  assert.is(charset('utf8mb4'), 'utf8mb4');
  for (const name of ['latin1', 'utf8', 'UTF8MB4', ''])
    assert.throws(() => charset(name), /charset is utf8mb4/);
});

test('fixes on every connection what backslashes mean, before anything else', async () => {
  const [first = '', second = ''] = await statementsOnConnect(mysql, 'mysql://h/x');
  assert.match(first, /^set session sql_mode = '[^']*STRICT_TRANS_TABLES/);
  assert.not.match(first, /BACKSLASH|ANSI_QUOTES/);
  assert.match(first, 'innodb_lock_wait_timeout = 4');
  assert.is(second, 'set session transaction isolation level read committed');
});

test('a connection on which that failed is not used', async () => {
  const { onCreateConnection } = mysql.options(connectOptions('mysql://h/x'));
  const refused = new Error('refused');
  const connection = { executeQuery: () => Promise.reject(refused) };
  assert.is(await onCreateConnection?.(connection).catch((thrown: unknown) => thrown), refused);
});

test('the lock has the name of its database, whatever that is, and says when it was not granted', async () => {
  const asked: string[] = [];
  const answering = (granted: number | null) => async (sql: string) => {
    asked.push(sql);
    return [{ granted }];
  };
  await mysql.lock.take(answering(1), 1_500, `a'b\\`);
  assert.is(asked[0], `select get_lock(concat('stagedoor.', sha1(x'6127625c')), 2) as granted`);
  for (const granted of [0, null]) {
    const refused = await mysql.lock.take(answering(granted), 1, 'x').catch((thrown: unknown) => thrown);
    assert.match(String(refused), 'another process');
  }
});

test('tells its failures apart', () => {
  assert.equal(failuresOf(mysql, [1049, 1045, 1044, 1698]), [
    'no-database',
    'credentials',
    'credentials',
    'credentials',
  ]);
  assert.equal(failuresOf(mysql, [1205, 1213]), ['conflict', 'conflict']);
  const away = [1040, 1053, 1290, 1317, 1927, 1969, 2013, 3024, 'ECONNREFUSED', 'PROTOCOL_CONNECTION_LOST'];
  assert.equal(new Set(failuresOf(mysql, away)), new Set(['unavailable']));
  assert.equal(failuresOf(mysql, [{ message: "Can't add new command when connection is in closed state" }]), [
    'unavailable',
  ]);
  assert.is(mysql.failure({ code: '', number: 4151, isFatal: true, message: 'locked' }), 'unavailable');
  assert.equal(failuresOf(mysql, [1062, 1146, 1064, 1406]), [undefined, undefined, undefined, undefined]);
});

test.run();
