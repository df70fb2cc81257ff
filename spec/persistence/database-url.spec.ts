// Parsing of database URLs.

import * as assert from 'uvu/assert';
import { databaseHost, describeDatabase, parseDatabaseUrl } from '../../src/persistence/database-url.ts';
import { StoreOpenError } from '../../src/persistence/store-errors.ts';
import { messageOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('database URL');

test('names SQLite files relative to the given folder, or absolute with four slashes; none in memory', () => {
  const files = {
    'sqlite:///gateway.db': '/srv/gateway/gateway.db',
    'sqlite+aiosqlite:///data/a%20b.db': '/srv/gateway/data/a b.db',
    'sqlite:////var/lib/x.db': '/var/lib/x.db',
    'SQLITE:///../up.db': '/srv/up.db',
  };
  for (const [url, file] of Object.entries(files))
    assert.is(describeDatabase(url, '/srv/gateway').file, file);
  for (const url of ['sqlite://', 'sqlite:///', 'sqlite:///:memory:', 'memory://', 'postgresql://h/x'])
    assert.is(describeDatabase(url, '/srv/gateway').file, undefined);
});

test('describes a database without its password and options', () => {
  const cases: [string, object][] = [
    [
      'sqlite:///gateway.db',
      { kind: 'sqlite', place: 'file', printable: '/srv/gateway.db', file: '/srv/gateway.db' },
    ],
    ['sqlite://', { kind: 'sqlite', place: 'memory', printable: 'SQLite in memory' }],
    ['memory://', { kind: 'memory', place: 'memory', printable: 'memory://' }],
  ];
  const servers: [url: string, kind: string, printable: string][] = [
    ['postgresql://a:s3cret@h:6000/g?sslmode=require', 'postgresql', 'postgresql://a@h:6000/g'],
    ['postgres+asyncpg://a:s3%40cret@h/g', 'postgresql', 'postgres://a@h:5432/g'],
    ['mysql+pymysql://a:s3cret@[::1]/g', 'mysql', 'mysql://a@[::1]:3306/g'],
    ['mariadb://h/g', 'mysql', 'mariadb://h:3306/g'],
    ['sqlserver://a:s3cret@h/g?encrypt=false', 'mssql', 'sqlserver://a@h:1433/g'],
    ['mssql+pyodbc://a@h/g', 'mssql', 'mssql://a@h:1433/g'],
    ['oracle+oracledb://a:s3cret@h/FREEPDB1', 'oracle', 'oracle://a@h:1521/FREEPDB1'],
    ['oracle://a:s3cret@h/?service_name=FREEPDB1', 'oracle', 'oracle://a@h:1521/FREEPDB1'],
  ];
  for (const [url, kind, printable] of servers) cases.push([url, { kind, place: 'server', printable }]);
  for (const [url, description] of cases) assert.equal(describeDatabase(url, '/srv'), description);
});

test('reads every part of an address, decoded', () => {
  const parsed = parseDatabaseUrl('postgresql://a%40b:p%2F%3A%40%25@h:7/n%20m?sslmode=require', '/');
  assert.equal(parsed?.address, {
    host: 'h',
    port: 7,
    user: 'a@b',
    password: 'p/:@%',
    name: 'n m',
    options: new Map([['sslmode', 'require']]),
  });
  assert.is(parseDatabaseUrl('mysql://root@[::1]:3307/x', '/')?.address.host, '::1');
  assert.is(parseDatabaseUrl('postgresql://a:p%40@/x?host=/run', '/')?.address.host, 'localhost');
});

test('says where a server listens', () => {
  const cases: [string, object | undefined][] = [
    ['postgresql://a@db.example.com/g', { host: 'db.example.com', port: 5432 }],
    ['postgresql://a@/g?host=db.example.com', { host: 'db.example.com', port: 5432 }],
    ['postgresql://a@/g?host=/run/postgresql', { host: 'localhost', port: 5432 }],
    ['mysql://a@db/g?socket=/run/mysqld.sock', { host: 'localhost', port: 3306 }],
    ['sqlite:///gateway.db', undefined],
    ['memory://', undefined],
  ];
  for (const [url, host] of cases) assert.equal(databaseHost(url, '/srv'), host);
});

test('is refused with one line that names the mistake, and never the password', async () => {
  const cases: readonly (readonly [url: string, words: string])[] = [
    ['', 'sqlite:///gateway.db, which begins with one of sqlite://, postgresql://'],
    ['mongodb+srv://a:s3cret@h/x', 'sqlite:///gateway.db'],
    ['sqlite://gateway.db', 'three slashes'],
    ['sqlite:///x.db?mode=ro', 'unknown option "mode": it takes none'],
    ['postgresql://a:s3cret@h', 'names no database'],
    ['mysql://a:s3cret@h/', 'mysql://user:password@host:3306/name'],
    ['postgresql://a:s3cret@h:port/x', 'cannot be read'],
    ['postgresql://a:s3cret%@h/x', 'special characters are written as %XX'],
    ['sqlite:///a%', 'cannot be read: it looks like sqlite:///gateway.db'],
    ['postgresql://a:s3cret@h/x?pool=9', 'unknown option "pool": it takes sslmode, host'],
  ];
  for (const [url, words] of cases) {
    const message = await messageOf(() => parseDatabaseUrl(url, '/'), StoreOpenError);
    assert.match(message, words);
    assert.not.match(message, 's3cret');
  }
});

test.run();
