// The lines for people about databases that cannot be opened.

import * as assert from 'uvu/assert';
import { parseDatabaseUrl } from '../../src/persistence/database-url.ts';
import { explain } from '../../src/persistence/open-failures.ts';
import { StoreOpenError, UrlError } from '../../src/persistence/store-errors.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('open failures');

test('names the trouble and the way out of it, in one line', () => {
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

test('speaks of files as files', () => {
  const parsed = parseDatabaseUrl('sqlite:////srv/x.db', '/');
  assert.ok(parsed);
  const of = (code: string) => explain(parsed, Object.assign(new Error('native words'), { code })).message;
  const restore = 'restore a backup of it and of the files beside it, or move it away';
  assert.equal(
    [of('SQLITE_NOTADB'), of('SQLITE_CORRUPT_INDEX'), of('SQLITE_BUSY'), of('SQLITE_IOERR')],
    [
      `the database /srv/x.db is damaged, or not a SQLite database: ${restore}`,
      `the database /srv/x.db is damaged: ${restore}`,
      'the database /srv/x.db is in use by another process (native words): try again',
      'the database /srv/x.db cannot be used (native words)',
    ],
  );
});

test('keeps what is a line already, and the cause of everything else', () => {
  const parsed = parseDatabaseUrl('mysql://h/x', '/');
  assert.ok(parsed);
  const line = new StoreOpenError('a line');
  assert.is(explain(parsed, line), line);
  const cause = new UrlError('ssl is one of true, no-verify, false');
  const explained = explain(parsed, cause);
  assert.equal([explained.message, explained.cause], [`the database URL: ${cause.message}`, cause]);
  assert.is(explain(parsed, 'a text').message, 'the database mysql://h:3306/x cannot be opened: a text');
});

function say(scheme: string, facts: object): string {
  const parsed = parseDatabaseUrl(`${scheme}://ada:s3cret@h:1/x`, '/');
  assert.ok(parsed);
  const { message } = explain(parsed, Object.assign(new Error('native words'), facts));
  assert.not.match(message, /s3cret|\n/);
  return message;
}

test.run();
