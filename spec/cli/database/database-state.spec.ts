import { chmodSync, readdirSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { databaseReport, migrateDatabase } from '../../../src/cli/database/open-database.ts';
import { CommandFailure } from '../../../src/cli/failures.ts';
import { loadConfig } from '../../../src/config.ts';
import { openStore } from '../../../src/persistence/open.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';
import { recordingTerminal } from '../recording-terminal.ts';

const test = suite('database state');

const folder = folderOfEach(test);

test('is that of a database that is not there, then of one that is up to date', async () => {
  const database = folder('a.db');
  const { reason, ...missing } = await state('sqlite:///a.db');
  const nothing = { migrations: null, counts: null, warnings: [] };
  assert.equal(missing, { database, kind: 'sqlite', is_reachable: false, is_usable: false, ...nothing });
  assert.match(String(reason), /^there is no database /);
  assert.equal(readdirSync(folder()), [], 'looking makes nothing');

  const first = await migrateDatabase(config('sqlite:///a.db'), terminal());
  assert.ok(first.applied.length > 0);
  const again = await migrateDatabase(config('sqlite:///a.db'), terminal());
  assert.equal(again, { name: database, applied: [] });
  assert.equal(await state('sqlite:///a.db'), {
    database,
    kind: 'sqlite',
    is_reachable: true,
    is_usable: true,
    reason: null,
    migrations: { applied: first.applied, pending: [], unknown: [] },
    counts: { templates: 0, instances: 0, users: 0, api_keys: 0 },
    warnings: [],
  });
});

const onPosix = test.needs(process.platform !== 'win32', 'files have no modes on Windows');

onPosix('warns of a file that other users can read', async () => {
  const database = folder("ada's.db");
  await migrateDatabase(config(`sqlite:///${database}`), terminal());
  for (const mode of [0o640, 0o604]) {
    chmodSync(database, mode);
    const { is_usable: isUsable, warnings } = await state(`sqlite:///${database}`);
    const word = `'${folder()}/ada'\\''s.db'`;
    assert.equal(
      [isUsable, warnings],
      [true, [`other users can read the database: run "chmod 600 ${word}"`]],
    );
  }
});

test('counts what is there', async () => {
  const store = await openStore('sqlite:///a.db', { cwd: folder(), migrations: 'apply' });
  await store.saveTemplate({ name: 'files', loadBalancer: {} });
  await store.close();
  assert.equal((await state('sqlite:///a.db')).counts, { templates: 1, instances: 0, users: 0, api_keys: 0 });
});

test('is unreachable when nobody answers, without the password', async () => {
  const url = 'postgresql://me:planted@127.0.0.1:1/db';
  const found = await databaseReport(config(undefined, { GATEWAY_DATABASE_URL: url }), terminal());
  assert.equal([found.is_reachable, found.is_usable, found.kind], [false, false, 'postgresql']);
  assert.not.match(JSON.stringify(found), 'planted');
});

test('cannot be made of memory or of what is no database', async () => {
  for (const url of ['memory://', 'nothing://a']) {
    for (const work of [databaseReport, migrateDatabase]) {
      const error = await work(config(url), terminal()).catch((reason: unknown) => reason);
      assert.instance(error, CommandFailure, url);
    }
  }
});

test.run();

const state = (url: string) => databaseReport(config(url), terminal());

function terminal() {
  return recordingTerminal({ folder: folder() });
}

function config(database: string | undefined, env: Record<string, string> = {}) {
  return loadConfig({ flags: { database }, env, cwd: folder(), readFile: () => undefined });
}
