import { chmodSync, readdirSync } from 'node:fs';
import * as assert from 'uvu/assert';
import {
  databaseFailure,
  databaseReport,
  describeStored,
  migrateDatabase,
  openDatabase,
  withDatabase,
} from '../../../src/cli/database/open-database.ts';
import { CommandFailure } from '../../../src/cli/failures.ts';
import { loadConfig } from '../../../src/config.ts';
import { databaseUnavailable } from '../../../src/domain/errors.ts';
import { openStore } from '../../../src/persistence/open.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';
import { recordingTerminal } from '../recording-terminal.ts';

const test = suite('open database');

const folder = folderOfEach(test);

test('opens the one of the settings and says where it is', async () => {
  await (await openStore('sqlite:///a.db', { cwd: folder(), migrations: 'apply' })).close();
  const { store, name, initialPasswordFile } = await openDatabase(config('sqlite:///a.db'), terminal());
  await store.close();
  assert.equal([store.kind, name], ['sqlite', folder('a.db')]);
  assert.is(initialPasswordFile, folder('initial-admin-password-a.db'));
});

test('makes none', async () => {
  await fails(openDatabase(config('sqlite:///a.db'), terminal()), /^there is no database /);
  assert.equal(readdirSync(folder()), []);
});

test('refuses one in memory, and what is no database', async () => {
  for (const url of ['memory://', 'sqlite://', 'sqlite:///:memory:'])
    await fails(openDatabase(config(url), terminal()), new RegExp(`^the database ${url} exists only inside`));
  assert.throws(
    () => describeStored(config('mongodb://a/b'), folder()),
    (error: unknown) => error instanceof CommandFailure,
  );
});

test('closes when the work fails, and tells a database that went away from a defect', async () => {
  await (await openStore('sqlite:///a.db', { cwd: folder(), migrations: 'apply' })).close();
  const work = (error: Error) =>
    withDatabase(config('sqlite:///a.db'), terminal(), () => Promise.reject(error));
  await fails(
    work(databaseUnavailable(new Error('gone'))),
    /^the database does not answer: gone \(DATABASE_UNAVAILABLE\)$/,
  );
  const defect = new Error('a defect on purpose');
  assert.is(await work(defect).catch((reason: unknown) => reason), defect);
  assert.is(databaseFailure(defect), defect);
});

test.run();

function terminal() {
  return recordingTerminal({ folder: folder() });
}

function config(database: string) {
  return loadConfig({ flags: { database }, env: {}, cwd: folder(), readFile: () => undefined });
}

async function fails(work: Promise<unknown>, message: RegExp): Promise<void> {
  const error = await work.catch((reason: unknown) => reason);
  assert.instance(error, CommandFailure);
  assert.match((error as Error).message, message);
}

const report = suite('database state');

const folderState = folderOfEach(report);

report('is that of a database that is not there, then of one that is up to date', async () => {
  const database = folderState('a.db');
  const { reason, ...missing } = await state('sqlite:///a.db');
  const nothing = { migrations: null, counts: null, warnings: [] };
  assert.equal(missing, { database, kind: 'sqlite', is_reachable: false, is_usable: false, ...nothing });
  assert.match(String(reason), /^there is no database /);
  assert.equal(readdirSync(folderState()), [], 'looking makes nothing');

  const first = await migrateDatabase(configState('sqlite:///a.db'), terminalState());
  assert.ok(first.applied.length > 0);
  const again = await migrateDatabase(configState('sqlite:///a.db'), terminalState());
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

const onPosix = report.needs(process.platform !== 'win32', 'files have no modes on Windows');

onPosix('warns of a file that other users can read', async () => {
  const database = folderState("ada's.db");
  await migrateDatabase(configState(`sqlite:///${database}`), terminalState());
  for (const mode of [0o640, 0o604]) {
    chmodSync(database, mode);
    const { is_usable: isUsable, warnings } = await state(`sqlite:///${database}`);
    const word = `'${folderState()}/ada'\\''s.db'`;
    assert.equal(
      [isUsable, warnings],
      [true, [`other users can read the database: run "chmod 600 ${word}"`]],
    );
  }
});

report('counts what is there', async () => {
  const store = await openStore('sqlite:///a.db', { cwd: folderState(), migrations: 'apply' });
  await store.saveTemplate({ name: 'files', loadBalancer: {} });
  await store.close();
  assert.equal((await state('sqlite:///a.db')).counts, { templates: 1, instances: 0, users: 0, api_keys: 0 });
});

report('is unreachable when nobody answers, without the password', async () => {
  const url = 'postgresql://me:planted@127.0.0.1:1/db';
  const found = await databaseReport(configState(undefined, { GATEWAY_DATABASE_URL: url }), terminalState());
  assert.equal([found.is_reachable, found.is_usable, found.kind], [false, false, 'postgresql']);
  assert.not.match(JSON.stringify(found), 'planted');
});

report('cannot be made of memory or of what is no database', async () => {
  for (const url of ['memory://', 'nothing://a']) {
    for (const work of [databaseReport, migrateDatabase]) {
      const error = await work(configState(url), terminalState()).catch((reason: unknown) => reason);
      assert.instance(error, CommandFailure, url);
    }
  }
});

report.run();

const state = (url: string) => databaseReport(configState(url), terminalState());

function terminalState() {
  return recordingTerminal({ folder: folderState() });
}

function configState(database: string | undefined, env: Record<string, string> = {}) {
  return loadConfig({ flags: { database }, env, cwd: folderState(), readFile: () => undefined });
}
