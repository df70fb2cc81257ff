// What a real server refuses, and how opening a store reports it.

import * as assert from 'uvu/assert';
import { migrationStatus, openStore, StoreOpenError } from '../../../src/persistence/open.ts';
import { mariadb, postgresql } from '../../helpers/services.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('open, on a server', { timeoutMs: 60_000 });
const apply = (cwd: string) => ({ cwd, migrations: 'apply' }) as const;
const require = (cwd: string) => ({ cwd, migrations: 'require' }) as const;

const maria = await mariadb();
test.needs(maria.url, maria.skip)('says that a user is refused', async () => {
  const url = new URL(maria.url ?? '');
  url.username = 'nobody_here';
  url.password = 's3cret';
  const message = await failureOf(openStore(url.href, apply('/')));
  assert.match(message, 'refuses the user "nobody_here"');
});

const postgres = await postgresql();
test.needs(postgres.url, postgres.skip)(
  'says which database is missing when it must not make one',
  async () => {
    const url = new URL(postgres.url ?? '');
    url.pathname = '/stagedoor_never_made';
    assert.match(
      await failureOf(openStore(url.href, require('/'))),
      'has no database "stagedoor_never_made"',
    );
    assert.match(
      await failureOf(migrationStatus(url.href, { cwd: '/' })),
      'has no database "stagedoor_never_made"',
    );
  },
);

/** The message of the StoreOpenError that it rejects with: one line, without a password. */
async function failureOf(opening: Promise<unknown>): Promise<string> {
  const failure = await opening.then(
    () => new Error('it was opened'),
    (thrown: unknown) => thrown,
  );
  assert.instance(failure, StoreOpenError, String(failure));
  const message = failure instanceof Error ? failure.message : '';
  assert.not.match(message, /s3cret|\n/);
  return message;
}

test.run();
