// Messages about the first admin at a start, at a terminal and without one, and the file with its password.

import { lookup } from 'node:dns';
import { existsSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { pino } from 'pino';
import { NEVER } from 'rxjs';
import * as assert from 'uvu/assert';
import type { SigningSecrets } from '../../src/auth/secrets/signing-secret.ts';
import { loadConfig } from '../../src/config/config.ts';
import { GatewayAddress } from '../../src/domain/accounts/resource.ts';
import { MemoryStore } from '../../src/persistence/memory/memory-store.ts';
import { oauthKey, unreadableRows } from '../../src/persistence/oauth-rows.ts';
import type { Store } from '../../src/persistence/store.ts';
import { openServerAuth } from '../../src/server/server-auth.ts';
import { openStorage } from '../../src/server/storage.ts';
import type { Json } from '../fixtures/wire.ts';
import { becomes } from '../helpers/eventually.ts';
import { folderOfEach } from '../helpers/folder.ts';
import { lineSink } from '../helpers/http/app.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('server authentication');
const folder = folderOfEach(test);

test('shows the first password once at a terminal, and nowhere else', async () => {
  const harness = await open({}, true);
  const { warnings, notices } = await harness.ensureAdmin();
  const [, password = ''] = /shown only once: (\S{24})$/.exec(notices[0] ?? '') ?? [];
  assert.equal([warnings, notices.length], [[], 1]);
  const { user } = await harness.auth.logins.login({ username: 'admin', password, address: '::1' });
  assert.equal([user.username, user.email, user.role], ['admin', 'admin@localhost', 'admin']);
  assert.equal(await harness.ensureAdmin(), { warnings: [], notices: [] });
  assert.not.match(JSON.stringify(harness.logged), password);
  assert.is(existsSync(folder('initial-admin-password')), false);
  await harness.auth.close();
});

test('writes the first password to a file without a terminal, and deletes the file when the password changes', async () => {
  const harness = await open({}, false);
  const path = folder('initial-admin-password');
  assert.equal(await harness.ensureAdmin(), {
    warnings: [`created the user "admin"; its password is in ${path}`],
    notices: [],
  });
  const password = (await readFile(path, 'utf8')).trim();
  if (process.platform !== 'win32') assert.is((await stat(path)).mode & 0o077, 0);
  await harness.ensureAdmin();
  assert.is((await readFile(path, 'utf8')).trim(), password, 'a second start leaves it');
  const { user } = await harness.auth.logins.login({ username: 'admin', password, address: '::1' });
  await harness.auth.accounts.changeUser(user.id, { password: 'something else' });
  await becomes(() => existsSync(path), false, 5_000);
  await harness.auth.close();
});

test('uses the configured password for a new admin', async () => {
  const env = { GATEWAY_ADMIN_PASSWORD: 'configured' };
  const harness = await open(env, true);
  assert.equal(await harness.ensureAdmin(), {
    warnings: [],
    notices: ['created the user "admin" with the configured password'],
  });
  await harness.auth.logins.login({ username: 'admin', password: 'configured', address: '::1' });
  await harness.auth.close();
});

test('warns when read access to the database allows signing tokens', async () => {
  const env = { GATEWAY_ADMIN_PASSWORD: 'configured' };
  const harness = await open(env, true, { secrets: [new Uint8Array(32)], isInDatabase: true });
  const { warnings } = await harness.ensureAdmin();
  assert.is(warnings.length, 1);
  assert.match(warnings[0] ?? '', 'set GATEWAY_SECRET_KEY');
  await harness.auth.close();
});

test('deletes the file at the end when the store is in memory', async () => {
  const harness = await open({}, false);
  await harness.ensureAdmin();
  assert.is(existsSync(folder('initial-admin-password')), true);
  await harness.close();
  assert.is(existsSync(folder('initial-admin-password')), false);
});

test('names rows that cannot be read, because their key is lost', async () => {
  const saveWith = async (key: string, id: string) => {
    const env = { GATEWAY_SECRET_KEY: key.repeat(32), GATEWAY_DATABASE_URL: 'sqlite:///lost.db' };
    const storage = await openStorage(loadConfig({ env, cwd: folder() }), { migrations: 'apply', env: {} });
    const { oauth } = storage.store;
    const before = await unreadableRows(oauth);
    const row = {
      kind: 'grant',
      key: oauthKey('grant', id),
      createdAt: new Date(0).toISOString(),
      value: '{}',
    } as const;
    await oauth.save(row);
    const harness = await open(env, true, undefined, storage.store);
    const { warnings } = await harness.ensureAdmin();
    await harness.auth.close();
    await storage.store.close();
    return { before, warnings };
  };
  assert.equal((await saveWith('a', 'one')).warnings, []);
  const { before, warnings } = await saveWith('b', 'two');
  assert.match(String(before), /^1 of the newest 1 rows/);
  assert.match(warnings.join(), /1 of the newest 2 rows .* cannot be read, because their key is lost/);
});

test('creates no admin while authentication is off', async () => {
  const harness = await open({ GATEWAY_AUTH_ENABLED: 'false' }, true);
  assert.equal(await harness.ensureAdmin(), { warnings: [], notices: [] });
  assert.equal(await harness.auth.accounts.users(), []);
  await harness.auth.close();
});

test.run();

async function open(
  env: Readonly<Record<string, string>>,
  isTerminal: boolean,
  signing: SigningSecrets = { secrets: [new Uint8Array(32)], isInDatabase: false },
  store: Store = new MemoryStore(),
) {
  const logged: Json[] = [];
  const config = loadConfig({ env, cwd: folder() });
  const storage = {
    store,
    initialPasswordFile: folder('initial-admin-password'),
    protectedPaths: [],
    isAnyDefault: false,
    keepsSecrets: true,
    signingSecrets: async () => signing,
  };
  const log = pino({ level: 'trace' }, lineSink(logged));
  const opened = await openServerAuth(config, storage, {
    ...{ storeChanges$: NEVER, log, isTerminal, lookup, address: new GatewayAddress(undefined, () => []) },
  });
  return { ...opened, logged };
}
