// Errors of databases: their properties, also when wrapped, and the messages about databases that cannot be opened.

import * as assert from 'uvu/assert';
import { explain } from '../../src/persistence/open-failures.ts';
import { driverErrorOf, withoutValues } from '../../src/persistence/store-errors.ts';
import { suite } from '../helpers/suite.ts';
import { parsed } from './connect-options.ts';

const test = suite('store errors');

test('recognises errors of pg and mysql2 that end the connection', () => {
  const of = (facts: object) => driverErrorOf(Object.assign(new Error('m'), facts))?.isFatal;
  const sqlState = 'HY000';
  for (const [facts, isFatal] of [
    [{ code: '55000', severity: 'FATAL' }, true],
    [{ code: 'X', severity: 'PANIC' }, true],
    [{ errno: 4151, fatal: true }, true],
    [{ errno: 4151, sqlState, sql: undefined }, true],
    [{ code: '55000', severity: 'ERROR' }, false],
    [{ errno: 1062, fatal: false }, false],
    [{ errno: 1062 }, false],
    [{ code: '23514', severity: 'ERROR', sqlState: undefined }, false],
    [{ errno: 1062, sqlState, sql: 'insert' }, false],
  ] as const)
    assert.is(of(facts), isFatal, JSON.stringify(facts));
});

test('read the code from a cause and from an AggregateError', () => {
  const refused = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
  const inner = { code: 'ECONNREFUSED', number: 0, isFatal: false };
  assert.equal(driverErrorOf(new Error('outer', { cause: refused })), {
    ...inner,
    message: 'outer: refused',
  });
  assert.equal(driverErrorOf(new AggregateError([refused, refused], 'both')), {
    ...inner,
    message: 'both: refused',
  });
});

test('are undefined for thrown values that are no Error', () => {
  for (const thrown of [undefined, null, 'text', { code: 'ECONNREFUSED' }])
    assert.is(driverErrorOf(thrown), undefined);
  assert.equal(driverErrorOf(new Error('plain')), { code: '', number: 0, isFatal: false, message: 'plain' });
});

test('name their class and code, and no value of the statement', () => {
  const inner = Object.assign(new Error('Failing row contains (hash)'), { code: '23514' });
  const thrown = new Error("insert into t values ('hash')", { cause: inner });
  const said = withoutValues(thrown, driverErrorOf(thrown));
  assert.is(String(said), 'Error: the database refused (Error: 23514)');
  assert.is(said instanceof Error && said.cause, undefined);
});

test('leave errors unchanged that no driver threw', () => {
  const own = new TypeError('a defect of ours');
  assert.is(withoutValues(own, driverErrorOf(own)), own);
  assert.is(withoutValues('no error', undefined), 'no error');
});

test('explain in one line why a database cannot be opened, and the remedy', () => {
  const lines = [
    say('postgresql', { code: '28P01' }),
    say('mysql', { errno: 1049 }),
    say('mssql', { code: 'ESOCKET', message: 'Failed to connect\nto somewhere' }),
    say('oracle', { errorNum: 12541, code: 'ORA-12541', message: 'ORA-12541: no listener' }),
    say('postgresql', { code: '57P03', message: 'the database system is starting up' }),
    say('mysql', { errno: 1142, message: 'create table `x` - CREATE command denied' }),
  ];
  assert.equal(lines, [
    'PostgreSQL at h:1 refuses the user "ada": check user and password of the database URL',
    'MySQL at h:1 has no database "x", or "ada" may not use it: create it, or grant the right to',
    'SQL Server at h:1 cannot be reached (to somewhere): is it running, and is the address right?',
    'Oracle at h:1 cannot be reached (ORA-12541: no listener): is it running, and is the address right?',
    'PostgreSQL at h:1 cannot be reached (the database system is starting up): is it running, and is the address right?',
    'the database mysql://ada@h:1/x cannot be opened: CREATE command denied',
  ]);
});

test('explain errors of SQLite with the path of the file', () => {
  const url = parsed('sqlite:////srv/x.db');
  const of = (code: string) => explain(url, Object.assign(new Error('native words'), { code })).message;
  const restore = 'restore a backup of it and of the files beside it, or move it away';
  assert.equal(
    [of('SQLITE_CORRUPT_INDEX'), of('SQLITE_BUSY'), of('SQLITE_IOERR')],
    [
      `the database /srv/x.db is damaged, or not a SQLite database: ${restore}`,
      'the database /srv/x.db is in use by another process (native words): try again',
      'the database /srv/x.db cannot be used (native words)',
    ],
  );
});

test.run();

function say(scheme: string, facts: object): string {
  const url = parsed(`${scheme}://ada:s3cret@h:1/x`);
  const { message } = explain(url, Object.assign(new Error('native words'), facts));
  assert.not.match(message, /s3cret|\n/);
  return message;
}
