import { existsSync, statSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { folderOfEach } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';
import { runCommand } from './against-gateway.ts';

const test = suite('db migrate');

const folder = folderOfEach(test);

test('makes the database, tells what it applied, and then has nothing to do', async () => {
  const path = folder('gateway.db');
  const first = await runCommand(['db', 'migrate'], {}, folder());
  assert.equal([first.code, first.err], [0, `migrating ${path}`]);
  assert.match(first.out, /^applied \S+(\napplied \S+)*\n.*gateway\.db is up to date$/);
  if (process.platform !== 'win32') assert.is(statSync(path).mode & 0o077, 0);
  const second = await runCommand(['db', 'migrate'], {}, folder());
  assert.equal([second.code, second.out], [0, `${path} was up to date`]);
});

test('prints it as JSON', async () => {
  const { out } = await runCommand(['db', 'migrate', '--json', '--database', 'sqlite:///a.db'], {}, folder());
  const { database, applied } = JSON.parse(out);
  assert.is(database, folder('a.db'));
  assert.ok(applied.length > 0);
});

test('fails with one line where nothing can be made', async () => {
  const { code, out, err } = await runCommand(
    ['db', 'migrate', '--database', 'sqlite:///no/a.db'],
    {},
    folder(),
  );
  assert.equal([code, out], [1, '']);
  assert.match(err, /^migrating .*\nstagedoor: the folder of the database .* does not exist/);
  assert.is(existsSync(folder('no')), false);
});

test.run();
