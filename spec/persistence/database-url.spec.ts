// How database URLs read.

import * as assert from 'uvu/assert';
import { describeDatabase, parseDatabaseUrl, sqliteFile } from '../../src/persistence/database-url.ts';
import { StoreOpenError } from '../../src/persistence/store-errors.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('database URL');

test('names SQLite files relative to the given folder, absolute ones by four slashes, and memory', () => {
  assert.equal(
    [
      'sqlite:///gateway.db',
      'sqlite+aiosqlite:///data/a%20b.db',
      'sqlite:////var/lib/x.db',
      'SQLITE:///../up.db',
      'sqlite://',
      'sqlite:///',
      'sqlite:///:memory:',
      'memory://',
      'postgresql://h/x',
    ].map((url) => sqliteFile(url, '/srv/gateway')),
    [
      '/srv/gateway/gateway.db',
      '/srv/gateway/data/a b.db',
      '/var/lib/x.db',
      '/srv/up.db',
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
    ],
  );
});

test('describes a database without its password and options', () => {
  const describe = (url: string) => describeDatabase(url, '/srv');
  assert.equal(
    [
      'sqlite:///gateway.db',
      'sqlite://',
      'memory://',
      'postgresql://ada:s3cret@db.example:6000/gateway?sslmode=require',
      'postgres+asyncpg://ada:s3%40cret@db.example/gateway',
      'mysql+pymysql://ada:s3cret@[::1]/gateway',
      'mariadb://db.example/gateway',
      'sqlserver://sa:s3cret@db.example/gateway?encrypt=false',
      'mssql+pyodbc://sa@db.example/gateway',
      'oracle+oracledb://ada:s3cret@db.example/FREEPDB1',
      'oracle://ada:s3cret@db.example/?service_name=FREEPDB1',
    ].map(describe),
    [
      { kind: 'sqlite', printable: '/srv/gateway.db', file: '/srv/gateway.db' },
      { kind: 'sqlite', printable: 'SQLite in memory' },
      { kind: 'memory', printable: 'memory://' },
      { kind: 'postgresql', printable: 'postgresql://ada@db.example:6000/gateway' },
      { kind: 'postgresql', printable: 'postgres://ada@db.example:5432/gateway' },
      { kind: 'mysql', printable: 'mysql://ada@[::1]:3306/gateway' },
      { kind: 'mysql', printable: 'mariadb://db.example:3306/gateway' },
      { kind: 'mssql', printable: 'sqlserver://sa@db.example:1433/gateway' },
      { kind: 'mssql', printable: 'mssql://sa@db.example:1433/gateway' },
      { kind: 'oracle', printable: 'oracle://ada@db.example:1521/FREEPDB1' },
      { kind: 'oracle', printable: 'oracle://ada@db.example:1521/FREEPDB1' },
    ],
  );
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
  assert.is(parseDatabaseUrl('postgresql:///x?host=/run/postgresql', '/')?.address.host, 'localhost');
});

test('says in one line what is wrong, and never the password', () => {
  const cases: readonly (readonly [url: string, words: string])[] = [
    ['', 'is named by a URL'],
    ['gateway.db', 'sqlite:///gateway.db'],
    ['redis://h/x', 'no database is called "redis://"; known are sqlite://, postgresql://'],
    ['mongodb+srv://a:s3cret@h/x', 'no database is called "mongodb://"'],
    ['sqlite://gateway.db', 'three slashes'],
    ['sqlite:///x.db?mode=ro', 'unknown option "mode": it takes none'],
    ['postgresql://a:s3cret@h', 'names no database'],
    ['mysql://a:s3cret@h/', 'mysql://user:password@host:3306/name'],
    ['postgresql://a:s3cret@h:port/x', 'cannot be read'],
    ['postgresql://a:s3cret%@h/x', 'write it as %25'],
    ['postgresql://a:s3cret@h/x?pool=9', 'unknown option "pool": it takes sslmode, host'],
  ];
  for (const [url, words] of cases) {
    const error = thrownBy(() => parseDatabaseUrl(url, '/'));
    assert.instance(error, StoreOpenError, url);
    assert.match(String(error), words);
    assert.not.match(String(error), /s3cret|\n/);
  }
});

function thrownBy(work: () => unknown): unknown {
  try {
    return work();
  } catch (thrown) {
    return thrown;
  }
}

test.run();
