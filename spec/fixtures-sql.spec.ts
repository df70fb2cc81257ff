// The stand-ins for SQL Server and Oracle are strict: they refuse what the real ones refuse, and change what the real
// ones change. Otherwise a store that passes on them would prove nothing.

import * as assert from 'uvu/assert';
import { executeStatement, OracleError } from './fixtures/oracle/oracle-sql.ts';
import { Engine, type Session } from './fixtures/sql/engine.ts';
import { BatchError, executeBatch } from './fixtures/tds/t-sql.ts';
import { thrownBy } from './helpers/outcome.ts';
import { suite } from './helpers/suite.ts';

const test = suite('stand-ins for SQL databases');

const tSqlTable =
  'create table [t] ([id] nvarchar(8) collate Latin1_General_BIN2 not null, [name] nvarchar(8) null, ' +
  '[doc] varchar(max) null, [at] datetime2(3) null, [n] int null, constraint [t_pkey] primary key ([id]));';
const oracleTable =
  'create table "t" ("id" varchar2(8) not null, "name" varchar2(8) null, "doc" clob null, ' +
  '"at" timestamp(3) with time zone null, "n" number(10, 0) null, primary key ("id"))';

test('SQL Server: texts without N lose what the code page lacks, and a backslash continues a line', async () => {
  const session = await tSql();
  await executeBatch(session, `insert into [t] ([id], [name], [doc]) values (N'漢', '漢', N'a\\\nb');`);
  assert.equal(await rows(session, 'select [id], [name], [doc] from [t]'), [['漢', '?', 'ab']]);
});

test('SQL Server: compares without regard to case, except by a binary collation', async () => {
  const session = await tSql();
  await executeBatch(session, `insert into [t] ([id], [name]) values (N'a', N'ada'), (N'A', N'bob');`);
  assert.equal(await rows(session, `select [id] from [t] where [name] = N'ADA'`), [['a']]);
  assert.equal(await rows(session, `select [id] from [t] where [id] = N'A'`), [['A']]);
});

test('SQL Server: @@rowcount has the rows of the statement before', async () => {
  const session = await tSql();
  const results = await executeBatch(
    session,
    `insert into [t] ([id]) values (N'a'), (N'b'); select @@rowcount;`,
  );
  assert.equal(results.at(-1)?.rows, [[2n]]);
});

const refusedTSql: readonly (readonly [what: string, sql: string, number: number])[] = [
  ['a text that is too long', `insert into [t] ([id]) values (N'123456789');`, 2628],
  ['a second row with one key', `insert into [t] ([id]) values (N'a'), (N'a');`, 2627],
  ['no value where one must be', 'insert into [t] ([id]) values (null);', 515],
  ['a table that is not there', 'select [id] from [u]', 208],
  ['a column that is not there', 'select [x] from [t]', 207],
  ['a table that is there', tSqlTable, 2714],
  ['the limit of other databases', 'select [id] from [t] limit 1', 50_000],
  ['offset without order', 'select [id] from [t] offset 1 rows fetch next 1 rows only', 50_000],
  ['returning', `delete from [t] where [id] = N'a' returning [id]`, 50_000],
];
test('SQL Server refuses what the real one refuses', async () => {
  for (const [what, sql, number] of refusedTSql) {
    const session = await tSql();
    const failure = await thrownBy(executeBatch(session, sql));
    assert.instance(failure, BatchError, what);
    assert.is(failure instanceof BatchError && failure.error.number, number, `${what}: ${failure}`);
    assert.equal(await rows(session, 'select [id] from [t]'), []);
  }
});

test('Oracle: an empty text is null, and a timestamp is in UTC', async () => {
  const session = await oracle();
  await executeStatement(
    session,
    `insert into "t" ("id", "name", "at") values ('a', '', timestamp '2026-01-02 03:04:05.678 UTC')`,
  );
  const found = await executeStatement(session, `select "name", "at" from "t" where "name" is null`);
  assert.equal(found.rows, [[null, '2026-01-02 03:04:05.678']]);
});

test('Oracle: concatenates a long text, and refuses a literal of more than 4,000 bytes', async () => {
  const session = await oracle();
  const [half, whole] = ['x'.repeat(4_000), 'x'.repeat(8_000)];
  await executeStatement(
    session,
    `insert into "t" ("id", "doc") values ('a', to_clob('${half}') || to_clob('${half}'))`,
  );
  assert.equal((await executeStatement(session, 'select "doc" from "t"')).rows, [[whole]]);
  await refusesOracle(session, `insert into "t" ("id", "doc") values ('b', '${half}x')`, 20_000);
});

test('Oracle: a definition of an index commits the transaction before it', async () => {
  const session = await oracle();
  await executeStatement(session, `insert into "t" ("id") values ('a')`);
  await executeStatement(session, 'create index "t_name" on "t" ("name")');
  assert.is(session.isInTransaction, false);
});

const refusedByOracle: readonly (readonly [what: string, sql: string, number: number])[] = [
  ['a text of too many bytes', `insert into "t" ("id") values ('äöüäö')`, 12899],
  ['a second row with one key', `insert into "t" ("id") values ('there')`, 1],
  ['an empty text where one must be', `insert into "t" ("id") values ('')`, 1400],
  ['a table that is not there', 'select "id" from "u"', 942],
  ['a column that is not there', 'select "x" from "t"', 904],
  ['a table that is there', oracleTable, 955],
  ['several rows in one insert', `insert into "t" ("id") values ('a'), ('b')`, 20_000],
  ['the limit of other databases', 'select "id" from "t" limit 1', 20_000],
  ['names in brackets', 'select [id] from [t]', 900],
];
test('Oracle refuses what the real one refuses', async () => {
  for (const [, sql, number] of refusedByOracle) {
    const session = await oracle();
    await executeStatement(session, `insert into "t" ("id") values ('there')`);
    session.commit();
    await refusesOracle(session, sql, number);
    if (session.isInTransaction) session.rollback();
    assert.equal((await executeStatement(session, 'select "id" from "t"')).rows, [['there']]);
  }
});

test('sessions wait for a transaction, and do not see what it rolls back', async () => {
  const engine = new Engine('mssql');
  const [one, other] = [engine.open(), engine.open()];
  await executeBatch(one, tSqlTable);
  one.begin();
  await executeBatch(one, `insert into [t] ([id]) values (N'a');`);
  const waiting = rows(other, 'select [id] from [t]');
  one.rollback();
  assert.equal(await waiting, []);
  one.begin();
  await executeBatch(one, `insert into [t] ([id]) values (N'b');`);
  one.commit();
  assert.equal(await rows(other, 'select [id] from [t]'), [['b']]);
  engine.close();
});

test('a named lock is held until its transaction ends, and waiting for it times out', async () => {
  const engine = new Engine('mssql');
  const [one, other] = [engine.open(), engine.open()];
  one.begin();
  other.begin();
  await one.lock('migration', 0);
  assert.instance(await thrownBy(other.lock('migration', 20)), Error);
  const waiting = other.lock('migration', 5_000);
  one.commit();
  await waiting;
  other.commit();
  engine.close();
});

test.run();

async function tSql(): Promise<Session> {
  const session = new Engine('mssql').open();
  await executeBatch(session, tSqlTable);
  return session;
}

async function oracle(): Promise<Session> {
  const session = new Engine('oracle').open();
  await executeStatement(session, oracleTable);
  return session;
}

async function rows(session: Session, sql: string): Promise<unknown> {
  return (await executeBatch(session, sql)).at(-1)?.rows;
}

async function refusesOracle(session: Session, sql: string, number: number): Promise<void> {
  const failure = await thrownBy(executeStatement(session, sql));
  assert.instance(failure, OracleError);
  assert.is(failure instanceof OracleError && failure.errorNum, number, String(failure));
}
