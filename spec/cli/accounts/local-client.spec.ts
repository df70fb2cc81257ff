// With a new SQLite file, through the function that the commands use.

import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { type AccountClient, withLocalClient } from '../../../src/cli/accounts/local-client.ts';
import { CommandInput } from '../../../src/cli/command.ts';
import { CommandFailure } from '../../../src/cli/failures.ts';
import { type Fields, fields, objectsOf } from '../../../src/cli/remote/answers.ts';
import { idAt } from '../../../src/domain/events/audit-entries.ts';
import { openStore } from '../../../src/persistence/open-store.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { rejects } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { recordingTerminal } from '../recording-terminal.ts';

const test = suite('account client of a database');
const folder = folderOfEach(test);
const url = 'sqlite:///gateway.db';
const ada = { username: 'ada', email: 'ada@localhost', password: 'correct horse' };
const key = { name: 'ci', permissions: ['tools:call'], templates: undefined };
test.before.each(async () => (await openStore(url, { cwd: folder(), migrations: 'apply' })).close());

test('creates, changes, lists and deletes users in the form of the API, and refuses invalid changes', async () => {
  const made = await use((client) => create(client, { ...ada, role: 'admin', templates: ['files'] }));
  const { id, created_at, updated_at, ...rest } = made;
  const { password: _, ...account } = ada;
  assert.equal(rest, {
    ...account,
    role: 'admin',
    is_superuser: true,
    templates: ['files'],
    views: null,
    tools: null,
    is_active: true,
  });
  await use(async (client) => {
    const bo = await create(client, { ...ada, username: 'bo', role: 'user' });
    const change = { password: 'battery staple', templates: null };
    await client.request(`/auth/users/${id}`, { method: 'PATCH', body: change });
    const names = objectsOf(await client.request('/auth/users')).map(({ username }) => username);
    assert.equal(names, ['ada', 'bo']);
    await remove(client, `/auth/users/${bo.id}`);
    assert.is(objectsOf(await client.request('/auth/users')).length, 1);
  });
  const refused = (work: Work<unknown>, reason: RegExp) => rejects(use(work), CommandFailure, reason);
  await refused(
    (client) => remove(client, `/auth/users/${id}`),
    /^This is the last active admin.*\(LAST_ADMIN\)$/,
  );
  await refused((client) => create(client, { ...ada, role: 'user' }), /\(DUPLICATE_USERNAME\)$/);
  await refused(
    (client) => create(client, { ...ada, password: 'short', role: 'user' }),
    /^body\.password: .*\(VALIDATION_ERROR\)$/,
  );
  await refused((client) => remove(client, '/auth/users/nobody'), /\(USER_NOT_FOUND\)$/);
});

test('creates and revokes API keys of the operator', async () => {
  await use(async (client) => {
    const { key: secret, ...record } = await createKey(client);
    assert.match(String(secret), /^sd_[0-9a-f]{16}_/);
    assert.equal(await client.request('/auth/api-keys'), [record]);
    assert.equal([record.created_by, record.is_active], [null, true]);
    await remove(client, `/auth/api-keys/${record.id}`);
    assert.equal(await client.request('/auth/api-keys'), []);
  });
  const again = use((client) => remove(client, '/auth/api-keys/0123456789abcdef'));
  await rejects(again, CommandFailure, /\(API_KEY_NOT_FOUND\)$/);
});

test('lists keys whose JSON is longer than a piece of an answer', async () => {
  const tools = Array.from({ length: 128 }, (_, n) => `files/${'t'.repeat(110)}${n}`);
  await use(async (client) => {
    const made: unknown[] = [];
    for (let n = 0; n < 40; n += 1) {
      const body = { ...key, name: `key-${n}`, tools };
      made.push(fields(await client.request('/auth/api-keys', { method: 'POST', body })).id);
    }
    const listed = objectsOf(await client.request('/auth/api-keys'));
    assert.ok(JSON.stringify(listed).length > 524_288);
    assert.equal(
      listed.map(({ id }) => id),
      made,
    );
  });
});

test('records every change in the audit log, with its actor and no secret, and deletes no old entries', async () => {
  const old = { actor: 'local', actorName: 'grace', status: 0, at: '2001-01-01T00:00:00Z' };
  const earlier = await openStore(url, { cwd: folder(), migrations: 'require' });
  await earlier.audit.append([
    { ...old, id: idAt(Date.parse(old.at)), action: 'POST /old', subject: '/old' },
  ]);
  await earlier.close();
  const { id, keyId } = await use(async (client) => {
    const { id } = await create(client, { ...ada, role: 'admin' });
    await client.request(`/auth/users/${id}`, { method: 'PATCH', body: { password: 'battery staple' } });
    const { id: keyId } = await createKey(client);
    await remove(client, `/auth/api-keys/${keyId}`);
    await remove(client, '/auth/users/nobody').catch(() => undefined); // a failed change makes no entry
    return { id, keyId };
  });
  const store = await openStore(url, { cwd: folder(), migrations: 'require' });
  const entries = (await store.audit.list({ limit: 10 })).reverse();
  await store.close();
  for (const entry of entries)
    assert.equal([entry.actor, entry.actorName, entry.status], ['local', 'grace', 0]);
  const found = entries.map(({ action, subject }) => [action, subject]);
  assert.equal(found, [
    ['POST /old', '/old'],
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
    const { id } = await create(client, { ...ada, username: 'admin', role: 'admin' });
    await create(client, { ...ada, role: 'admin' });
    assert.is(existsSync(file), true);
    await client.request(`/auth/users/${id}`, { method: 'PATCH', body: { password: 'battery staple' } });
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

const remove = (client: AccountClient, path: string) => client.request(path, { method: 'DELETE' });

async function create(client: AccountClient, body: object): Promise<Fields> {
  return fields(await client.request('/auth/users', { method: 'POST', body }));
}

async function createKey(client: AccountClient): Promise<Fields> {
  return fields(await client.request('/auth/api-keys', { method: 'POST', body: key }));
}

type Work<T> = Parameters<typeof withLocalClient<T>>[2];

function use<T>(work: Work<T>, place = folder()): Promise<T> {
  const terminal = recordingTerminal({ folder: place, env: { USER: 'grace' } });
  return withLocalClient(new CommandInput([], new Map([['database', url]])), terminal, work);
}
