// Where the secret and the keys come from for each kind of database, and which files are created.

import { readdir, readFile, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { loadConfig } from '../../src/config/config.ts';
import { openStorage } from '../../src/server/storage.ts';
import { definition as instance } from '../helpers/backends/profiles.ts';
import { folderOfEach } from '../helpers/folder.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('storage');
const folder = folderOfEach(test);
const definition = instance('far', {
  ...{ transport: 'http', endpoint: 'http://127.0.0.1:9/mcp', headers: { 'X-Key': 'planted-header' } },
});

test('makes a database with its secret beside it, and finds both again', async () => {
  const first = await open({}, 'apply');
  await first.store.instances.save(definition);
  await first.store.close();
  assert.ok((await readdir(folder())).includes('gateway.key'));
  assert.is(first.initialPasswordFile, folder('initial-admin-password'));

  const second = await open({}, 'require');
  assert.equal(await second.signingSecrets(), await first.signingSecrets());
  assert.equal(await second.store.instances.list(), [definition]);
  await second.store.close();
  for (const name of await readdir(folder()))
    assert.not.match(await readFile(folder(name), 'latin1'), 'planted-header');
});

test('signs with the configured secret, and decrypts data of the old encryption key after a rotation', async () => {
  const [one, other] = ['1'.repeat(32), '2'.repeat(32)];
  const env = { GATEWAY_SECRET_KEY: 's'.repeat(40) };
  const first = await open({ ...env, GATEWAY_ENCRYPTION_KEY: one }, 'apply');
  const { secrets } = await first.signingSecrets();
  assert.is(Buffer.from(secrets[0]).toString(), 's'.repeat(40));
  await first.store.instances.save(definition);
  await first.store.close();
  assert.not.ok((await readdir(folder())).includes('gateway.key'));

  const second = await open({ ...env, GATEWAY_ENCRYPTION_KEY: `${other},${one}` }, 'apply');
  assert.equal(await second.store.instances.list(), [definition]);
  await second.store.close();
});

test('an instance whose secrets cannot be decrypted names the field and the setting to provide', async () => {
  const first = await open({}, 'apply');
  await first.store.instances.save(definition);
  await first.store.close();
  await rm(folder('gateway.key'));
  const second = await open({}, 'apply');
  const [listed] = await second.store.instances.list();
  await second.store.close();
  assert.match(listed?.locked ?? '', /"headers" .* cannot be read: .*GATEWAY_ENCRYPTION_KEY/);
  assert.not.match(JSON.stringify(listed), 'planted');
});

test('each database has a separate file for the first password, in the configured folder or that of the user', async () => {
  const user = { XDG_STATE_HOME: '/var/xdg' };
  const [memory, named, other, plain] = [
    await open({ GATEWAY_DATABASE_URL: 'memory://' }, 'apply', user),
    await open({ GATEWAY_STATE_DIR: 'state', GATEWAY_DATABASE_URL: 'memory://' }, 'apply'),
    await open({ GATEWAY_DATABASE_URL: 'sqlite:///other.db' }, 'apply'),
    await open({ GATEWAY_DATABASE_URL: 'memory://' }, 'apply'),
  ];
  const name = `initial-admin-password-${process.pid}`;
  const found = [memory, named, other, plain].map(({ initialPasswordFile }) => initialPasswordFile);
  assert.equal(found, [
    join('/var/xdg', 'stagedoor', name),
    folder('state', name),
    folder('initial-admin-password-other.db'),
    join(homedir(), '.local', 'state', 'stagedoor', name),
  ]);
  assert.not.equal(await memory.signingSecrets(), await plain.signingSecrets());
  await other.store.close();
});

test.run();

function open(
  env: Readonly<Record<string, string>>,
  migrations: 'apply' | 'require',
  environment: Readonly<Record<string, string>> = {},
) {
  return openStorage(loadConfig({ env, cwd: folder() }), { migrations, env: environment });
}
