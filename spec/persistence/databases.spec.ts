// The kinds of databases without a server: options from their URLs, statements on new connections, locks, and classes of errors.
// The servers: spec/system/databases.

import * as assert from 'uvu/assert';
import { type Database, type DatabaseFailure, failureOf } from '../../src/persistence/database.ts';
import { mssql } from '../../src/persistence/databases/mssql.ts';
import { mysql } from '../../src/persistence/databases/mysql.ts';
import { oracle } from '../../src/persistence/databases/oracle.ts';
import { postgresql } from '../../src/persistence/databases/postgresql.ts';
import { sqlite } from '../../src/persistence/databases/sqlite.ts';
import { ormOptionsOf } from '../../src/persistence/orm/connection/orm.ts';
import { folderOfEach } from '../helpers/folder.ts';
import { thrownBy } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';
import { connect, connectOptions } from './connect-options.ts';

const test = suite('databases');
const folder = folderOfEach(test);

/** Errors by code, by number, or by message. */
type Thrown = string | number | { readonly message: string };

const FAILURES: [Database, Partial<Record<DatabaseFailure | 'of the statement', readonly Thrown[]>>][] = [
  [
    sqlite,
    {
      conflict: ['SQLITE_BUSY', 'SQLITE_BUSY_SNAPSHOT', { message: 'x - database is locked' }],
      unavailable: ['SQLITE_CANTOPEN', 'SQLITE_IOERR_FSYNC', 'SQLITE_READONLY'],
      full: ['SQLITE_FULL'],
      damaged: ['SQLITE_NOTADB', 'SQLITE_CORRUPT_VTAB'],
      'of the statement': ['SQLITE_CONSTRAINT_UNIQUE', 'SQLITE_ERROR', ''],
    },
  ],
  [
    postgresql,
    {
      'no-database': ['3D000'],
      credentials: ['28P01', '28000'],
      conflict: ['40001', '40P01', '55P03'],
      full: ['53100'],
      unavailable: [
        ...['55000', '57P01', '57014', '53300', '08006', '25006', '58030', 'ECONNREFUSED', 'ENOTFOUND'],
        { message: 'Connection terminated unexpectedly' },
        { message: 'timeout exceeded when trying to connect' },
      ],
      'of the statement': ['23505', '42P01', '42601', '22001', ''],
    },
  ],
  [
    mysql,
    {
      'no-database': [1049, 1044],
      credentials: [1045, 1698],
      conflict: [1205, 1213],
      full: [1021, 1114],
      unavailable: [
        ...[1040, 1053, 1290, 1317, 1927, 1969, 2013, 3024, 'ECONNREFUSED', 'PROTOCOL_CONNECTION_LOST'],
        1792, // read-only
        { message: "Can't add new command when connection is in closed state" },
      ],
      'of the statement': [1062, 1146, 1064, 1406],
    },
  ],
  [
    mssql,
    {
      'no-database': [4060, 911],
      credentials: [18456],
      conflict: [1205, 1222, 51_000, 3960],
      full: [1101, 1105, 9002],
      unavailable: [6005, 40613, 10928, 3906, 'ESOCKET', 'ETIMEOUT', 'ECONNCLOSED', 'ECONNREFUSED'],
      'of the statement': [2627, 2601, 208, 102, 'EREQUEST'],
    },
  ],
  [
    oracle,
    {
      'no-database': [12514],
      credentials: [1017],
      conflict: [54, 60],
      full: [1536, 1653, 1691, 30036],
      unavailable: [
        ...[3113, 12541, 1034, 28, 16000, 'NJS-500', 'NJS-040', 'ECONNREFUSED'],
        { message: 'ORA-12170: timeout' },
      ],
      'of the statement': [1, 942, 900, 'NJS-044'],
    },
  ],
];

test('classify their errors', () => {
  for (const [database, failures] of FAILURES)
    for (const [expected, errors] of Object.entries(failures))
      for (const error of errors) {
        const code = typeof error === 'string' ? error : '';
        const number = typeof error === 'number' ? error : 0;
        const message = typeof error === 'object' ? error.message : '';
        const failure = database.failure({ code, number, message, isFatal: false });
        assert.is(failure ?? 'of the statement', expected, `${database.kind}: ${code || number || message}`);
      }
  const lost = { code: '42501', number: 4151, isFatal: true, message: 'permission denied for database' };
  for (const database of [postgresql, mysql]) assert.is(database.failure(lost), 'unavailable');
});

test('SQLite uses WAL, waits for the disk only at checkpoints, and enforces foreign keys', async () => {
  const { orm, connection, close } = await connect(`sqlite:///${folder('x.db')}`);
  try {
    const expected = { journal_mode: 'wal', synchronous: 1, foreign_keys: 1, busy_timeout: 25 };
    for (const [name, value] of Object.entries(expected)) {
      const row = await connection.execute(`pragma ${name}`, [], 'get');
      assert.equal(Object.values(Object(row)), [value], name);
    }
    assert.is(orm.config.get('dbName'), folder('x.db'));
  } finally {
    await close();
  }
});

test('SQLite waits for the migration lock, but not longer than the given time', async () => {
  const open = () => connect(`sqlite:///${folder('x.db')}`);
  const [one, other] = [await open(), await open()];
  try {
    await sqlite.lock.take((sql) => one.connection.execute(sql), 1_000, '');
    const startedAt = performance.now();
    const refused = sqlite.lock.take((sql) => other.connection.execute(sql), 200, '');
    assert.match(String(await thrownBy(refused)), 'database is locked');
    assert.ok(performance.now() - startedAt >= 190);
    const taking = sqlite.lock.take((sql) => other.connection.execute(sql), 5_000, '');
    await one.connection.execute('commit');
    await taking;
    await other.connection.execute('rollback');
  } finally {
    await Promise.all([one.close(), other.close()]);
  }
});

test('take host, port, user, password and name from the URL', () => {
  const [ada, sa] = [
    { host: 'h', port: 6000, user: 'ada', password: 'pw', dbName: 'gateway' },
    { host: 'h', port: 1433, user: 'sa', password: 'pw', dbName: 'gateway' },
  ];
  const oracleUrl = 'tcp://h:1522/FREEPDB1?connect_timeout=5';
  const cases: [Database, string, object][] = [
    [postgresql, 'postgres://ada:pw@h:6000/gateway?sslmode=verify-full', ada],
    [postgresql, 'postgresql:///x?host=/run/postgresql', { host: '/run/postgresql' }],
    [mysql, 'mariadb://ada:pw@h:6000/gateway', { ...ada, collate: 'utf8mb4_bin' }],
    [mssql, 'sqlserver://sa:pw@h/gateway', sa],
    // The service is the path or an option, the schema is the user.
    [oracle, 'oracle://ada:pw@h:1522/FREEPDB1', { clientUrl: oracleUrl, user: 'ada', dbName: 'ada' }],
    [oracle, 'oracle://ada@h/?service_name=S&tls=true', { clientUrl: 'tcps://h:1521/S?connect_timeout=5' }],
  ];
  for (const [database, url, expected] of cases) {
    const options = ormOptionsOf(database, connectOptions(url));
    for (const [name, value] of Object.entries(expected))
      assert.equal(Reflect.get(options, name), value, `${url}: ${name}`);
  }
  assert.is(ormOptionsOf(postgresql, connectOptions('postgresql://h/x')).pool?.max, 10);
});

test('encrypt connections by the options of the URL, and refuse invalid options', () => {
  const driver = (database: Database, url: string) =>
    Object(database.options(connectOptions(url)).driverOptions);
  const ssl = (mode: string) => driver(postgresql, `postgresql://h/x${mode}`).ssl;
  assert.equal([ssl(''), ssl('?sslmode=disable')], [false, false]);
  assert.equal(ssl('?sslmode=require'), { rejectUnauthorized: false });
  assert.equal(ssl('?sslmode=verify-full'), { rejectUnauthorized: true });
  assert.throws(() => ssl('?sslmode=on'), /sslmode must be one of/);

  const { ssl: checked, socketPath } = driver(mysql, 'mariadb://h/x?ssl=true&socket=/run/my.sock');
  assert.equal([checked, socketPath], [{ rejectUnauthorized: true }, '/run/my.sock']);
  assert.is('ssl' in driver(mysql, 'mysql://h/x'), false);
  assert.throws(() => driver(mysql, 'mysql://h/x?ssl=maybe'), /ssl must be one of/);

  const tds = (query: string) => driver(mssql, `mssql://h/x${query}`).options;
  const { encrypt, trustServerCertificate, requestTimeout, fallbackToDefaultDb } = tds('');
  assert.equal([encrypt, trustServerCertificate], [true, false]);
  assert.equal([requestTimeout, fallbackToDefaultDb], [4_000, false]);
  const changed = tds('?encrypt=false&trustServerCertificate=yes&instanceName=EXPRESS');
  assert.equal([changed.encrypt, changed.trustServerCertificate], [false, true]);
  assert.equal([changed.instanceName, changed.port], ['EXPRESS', undefined]);
  assert.throws(() => tds('?encrypt=perhaps'), /encrypt must be true or false/);

  const protocol = (tls: string) =>
    String(oracle.options(connectOptions(`oracle://ada@h/S?tls=${tls}`)).clientUrl).split(':')[0];
  assert.equal(['yes', '1', 'TRUE', 'no'].map(protocol), ['tcps', 'tcps', 'tcps', 'tcp']);
  assert.throws(() => protocol('on'), /tls must be true or false/);
});

test('PostgreSQL sets the meaning of backslashes and the timeouts on every connection', async () => {
  const [statement = ''] = await statementsOnConnect(postgresql, 'postgresql://h/x');
  for (const part of ['standard_conforming_strings = on', 'statement_timeout = 4000', 'lock_timeout = 4000'])
    assert.match(statement, part);
});

test('MySQL refuses every charset but utf8mb4', () => {
  const charset = (name: string) => mysql.options(connectOptions(`mysql://h/x?charset=${name}`)).charset;
  assert.is(charset('utf8mb4'), 'utf8mb4');
  for (const name of ['latin1', '']) assert.throws(() => charset(name), /charset must be utf8mb4/);
});

test('MySQL sets the meaning of backslashes first on every connection, and uses none where that fails', async () => {
  const [first = '', second = ''] = await statementsOnConnect(mysql, 'mysql://h/x');
  assert.match(first, /^set session sql_mode = '[^']*STRICT_TRANS_TABLES/);
  assert.not.match(first, /BACKSLASH|ANSI_QUOTES/);
  assert.match(first, 'innodb_lock_wait_timeout = 4');
  assert.match(first, /\/\*M!.* idle_transaction_timeout = 3 \*\/ \/\*!80000 , wait_timeout = 16 \*\/$/);
  assert.is(second, 'set session transaction isolation level read committed');
  const refused = new Error('refused');
  const connection = { executeQuery: () => Promise.reject(refused) };
  const created = async () => mysql.options(connectOptions('mysql://h/x')).onCreateConnection?.(connection);
  assert.is(await thrownBy(created), refused, 'such a connection is not used');
});

test('MySQL names the lock after its database, and fails when it is not granted', async () => {
  const asked: string[] = [];
  const answering = (granted: number | null) => async (sql: string) => {
    asked.push(sql);
    return [{ granted }];
  };
  await mysql.lock.take(answering(1), 1_500, `a'b\\`);
  assert.is(asked[0], `select get_lock(concat('stagedoor.', sha1(x'6127625c')), 2) as granted`);
  for (const granted of [0, null]) {
    const refused = await thrownBy(mysql.lock.take(answering(granted), 1, 'x'));
    assert.match(String(refused), 'another process');
    assert.is(failureOf(mysql, refused), 'conflict', 'a start is repeated');
  }
});

test('SQL Server can close every connection at once', async () => {
  const options = connectOptions('mssql://h/x');
  let isClosed = false;
  await mssql.options(options).onCreateConnection?.({ close: () => (isClosed = true) });
  options.sockets.destroy();
  assert.is(isClosed, true);
});

test('Oracle limits the time of calls, and compares by code points, in every session', async () => {
  const session = { callTimeout: 0, execute: async () => {} };
  await oracle.options(connectOptions('oracle://a@h/S')).onCreateConnection?.(session);
  assert.is(session.callTimeout, 4_000);
  const statements = (await statementsOnConnect(oracle, 'oracle://a@h/S')).join();
  assert.match(statements, 'nls_comp = binary nls_sort = binary');
});

test('Oracle locks a separate table, which may exist already', async () => {
  const asked: string[] = [];
  await oracle.lock.take(
    async (sql) => {
      asked.push(sql);
      if (sql.startsWith('create')) throw new Error('ORA-00955: name is already used by an existing object');
      return [];
    },
    1_500,
    'x',
  );
  assert.is(asked.at(-1), 'lock table "stagedoor_lock" in exclusive mode wait 2');
  const refused = new Error('ORA-01031: insufficient privileges');
  assert.is(await thrownBy(oracle.lock.take(() => Promise.reject(refused), 1, 'x')), refused);
});

/** The statements that the database runs on a new connection. */
async function statementsOnConnect(database: Database, url: string): Promise<string[]> {
  const statements: string[] = [];
  const connection = {
    callTimeout: 0,
    executeQuery: async ({ sql }: { readonly sql: string }) => statements.push(sql),
    execute: async (sql: string) => statements.push(sql),
    close: () => {},
  };
  await database.options(connectOptions(url)).onCreateConnection?.(connection);
  return statements;
}

test.run();
