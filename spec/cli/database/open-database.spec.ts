import { readdirSync } from 'node:fs';
import * as assert from 'uvu/assert';
import {
  databaseFailure,
  describeStored,
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
