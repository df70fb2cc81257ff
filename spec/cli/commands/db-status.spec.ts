import { chmodSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { folderOfAll } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';
import { runCommand } from './against-gateway.ts';

const test = suite('db status');

const folder = folderOfAll(test);

test('fails for a database that is not there, and shows one that is', async () => {
  const missing = await run();
  assert.is(missing.code, 1);
  assert.match(missing.out, /^answers +no: there is no database .*"npx stagedoor db migrate"$/m);
  await runCommand(['db', 'migrate'], {}, folder());
  const { code, out, err } = await run();
  assert.equal([code, err], [0, '']);
  assert.match(out, /^database +.*gateway\.db$/m);
  assert.match(out, /^answers +yes$/m);
  assert.match(out, /^migrations +\d+ applied, 0 pending$/m);
  assert.match(out, /^api keys +0$/m);
});

test('prints the same as JSON', async () => {
  const state = JSON.parse((await run('--json')).out);
  assert.equal([state.is_usable, state.counts.users], [true, 0]);
});

test.needs(process.platform !== 'win32', 'files have no modes on Windows')(
  'warns of a file that other users can read, and does not fail',
  async () => {
    const file = folder('gateway.db');
    assert.not.match((await run()).out, /warning/);
    chmodSync(file, 0o644);
    const { code, out } = await run();
    chmodSync(file, 0o600);
    assert.is(code, 0);
    assert.match(out, `other users can read the database: run "chmod 600 ${file}"`);
    assert.match(out, /^warning +other users/m);
  },
);

test('refuses a password on the command line, and does not repeat it', async () => {
  const { code, out, err } = await run('--database', 'mysql://me:planted@127.0.0.1/db');
  assert.equal([code, out], [2, '']);
  assert.match(err, /^stagedoor: --database: [^\n]*GATEWAY_DATABASE_URL$/);
  assert.not.match(err, 'planted');
});

test('takes the database from the environment and from the file', async () => {
  const { out } = await runCommand(
    ['db', 'status'],
    { GATEWAY_DATABASE_URL: 'sqlite:///other.db' },
    folder(),
  );
  assert.match(out, /^database +.*other\.db$/m);
});

test.run();

function run(...words: string[]) {
  return runCommand(['db', 'status', ...words], {}, folder());
}
