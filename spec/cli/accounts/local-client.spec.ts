// With a new SQLite file, through the function that the commands use.

import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { withLocalClient } from '../../../src/cli/accounts/local-client.ts';
import { CommandInput } from '../../../src/cli/command.ts';
import { CommandFailure } from '../../../src/cli/failures.ts';
import { openStore } from '../../../src/persistence/open.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { rejects } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { recordingTerminal } from '../recording-terminal.ts';

const test = suite('account client of a database');
const folder = folderOfEach(test);
const url = 'sqlite:///gateway.db';
const ada = {
  username: 'ada',
  email: 'ada@localhost',
  password: 'correct horse',
  templates: undefined,
} as const;
const key = { name: 'ci', permissions: ['tools:call'], templates: undefined, expiresAt: undefined } as const;
test.before.each(async () => (await openStore(url, { cwd: folder(), migrations: 'apply' })).close());

test('creates, changes, lists and deletes users in the form of the API, and refuses invalid changes', async () => {
  const made = await use((client) => client.createUser({ ...ada, role: 'admin', templates: ['files'] }));
  const { id, created_at, updated_at, ...rest } = made;
  assert.equal(rest, {
    username: 'ada',
    email: 'ada@localhost',
    role: 'admin',
    is_superuser: true,
    templates: ['files'],
    is_active: true,
  });
  await use(async (client) => {
    const bo = await client.createUser({ ...ada, username: 'bo', role: 'user' });
    await client.setPassword(String(id), 'battery staple');
    const names = (await client.users()).map(({ username }) => username);
    assert.equal(names, ['ada', 'bo']);
    await client.deleteUser(String(bo.id));
    assert.is((await client.users()).length, 1);
  });
  const refused = (work: Work<unknown>, reason: RegExp) => rejects(use(work), CommandFailure, reason);
  await refused((client) => client.deleteUser(String(id)), /^This is the last active admin.*\(LAST_ADMIN\)$/);
  await refused((client) => client.createUser({ ...ada, role: 'user' }), /\(DUPLICATE_USERNAME\)$/);
  await refused(
    (client) => client.createUser({ ...ada, password: 'short', role: 'user' }),
    /^body\.password: .*\(VALIDATION_ERROR\)$/,
  );
  await refused((client) => client.deleteUser('nobody'), /\(USER_NOT_FOUND\)$/);
});

test('creates and revokes API keys of the operator', async () => {
  await use(async (client) => {
    const { key: secret, ...record } = await client.createApiKey(key);
    assert.match(String(secret), /^sd_[0-9a-f]{16}_/);
    assert.equal(await client.apiKeys(), [record]);
    assert.equal([record.created_by, record.is_active], [null, true]);
    await client.revokeApiKey(String(record.id));
    assert.equal(await client.apiKeys(), []);
  });
  const again = use((client) => client.revokeApiKey('0123456789abcdef'));
  await rejects(again, CommandFailure, /\(API_KEY_NOT_FOUND\)$/);
});

test('records every change in the audit log, with its actor and no secret', async () => {
  const { id, keyId } = await use(async (client) => {
    const { id } = await client.createUser({ ...ada, role: 'admin' });
    await client.setPassword(String(id), 'battery staple');
    const { id: keyId } = await client.createApiKey(key);
    await client.revokeApiKey(String(keyId));
    await client.deleteUser('nobody').catch(() => undefined); // a failed change makes no entry
    return { id, keyId };
  });
  const store = await openStore(url, { cwd: folder(), migrations: 'require' });
  const entries = (await store.audit.list({ limit: 10 })).reverse();
  await store.close();
  for (const entry of entries)
    assert.equal([entry.actor, entry.actorName, entry.status], ['local', 'grace', 0]);
  const found = entries.map(({ action, subject }) => [action, subject]);
  assert.equal(found, [
    ['POST /auth/users', `/auth/users/${id}`],
    ['PATCH /auth/users/:user_id', `/auth/users/${id}`],
    ['POST /auth/api-keys', `/auth/api-keys/${keyId}`],
    ['DELETE /auth/api-keys/:key_id', `/auth/api-keys/${keyId}`],
  ]);
  assert.not.match(JSON.stringify(entries), /horse|staple|sd_/);
});

test('deletes the file of the first password when that password changes', async () => {
  const file = folder('initial-admin-password');
  writeFileSync(file, 'x');
  await use(async (client) => {
    const { id } = await client.createUser({ ...ada, username: 'admin', role: 'admin' });
    await client.createUser({ ...ada, role: 'admin' });
    assert.is(existsSync(file), true);
    await client.setPassword(String(id), 'battery staple');
  });
  assert.is(existsSync(file), false);
});

test('creates no database where there is none, and advises `db migrate`', async () => {
  mkdirSync(folder('empty'));
  const advice = /^there is no database .*: start the gateway once, or run "npx stagedoor db migrate"$/;
  await rejects(
    use(() => Promise.resolve(), folder('empty')),
    CommandFailure,
    advice,
  );
  assert.equal(readdirSync(folder('empty')), []);
});

test.run();

type Work<T> = Parameters<typeof withLocalClient<T>>[2];

function use<T>(work: Work<T>, place = folder()): Promise<T> {
  const terminal = recordingTerminal({ folder: place, env: { USER: 'grace' } });
  return withLocalClient(new CommandInput([], new Map([['database', url]])), terminal, work);
}
