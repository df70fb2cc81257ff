// Accounts and keys: their fields, refused values, and the changes that revoke tokens.

import * as assert from 'uvu/assert';
import type { NewApiKey } from '../../../src/auth/accounts/accounts.ts';
import { databaseUnavailable } from '../../../src/domain/errors/gateway-errors.ts';
import { errorOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { passTurns } from '../../helpers/time/turns.ts';
import { authHarness, codeOf, findingsOf, START_MS } from '../auth-harness.ts';

const test = suite('accounts');

const startsAt = new Date(START_MS).toISOString();

test('an API key with an unknown owner is refused', async () => {
  const orphan = { name: 'robot', permissions: ['admin'], ownerId: 'nobody' } as const;
  assert.is(await codeOf(() => authHarness().auth.accounts.createApiKey(orphan)), 'USER_NOT_FOUND');
});

test('a change revokes tokens exactly if it changes the password, the role or the activity', async () => {
  const harness = authHarness();
  const { accounts } = harness.auth;
  const user = await harness.createUser('ada');
  harness.clock.pass(5_000);
  const now = new Date(harness.clock.nowMs).toISOString();
  const same = { email: 'new@localhost', role: 'user', isActive: true, templates: ['demo'] } as const;
  assert.equal(await accounts.changeUser(user.id, same), { ...user, ...same, updatedAt: now });
  assert.is((await accounts.changeUser(user.id, { templates: null })).templates, undefined);

  let { credentialsChangedAt } = await accounts.user(user.id);
  assert.is(credentialsChangedAt, startsAt);
  const changes = [
    { role: 'admin' },
    { isActive: false },
    { isActive: true },
    { password: 'long enough' },
  ] as const;
  await harness.createUser('other', 'admin');
  for (const change of changes) {
    const changed = await accounts.changeUser(user.id, change);
    assert.ok(changed.credentialsChangedAt > credentialsChangedAt, 'also within one millisecond');
    credentialsChangedAt = changed.credentialsChangedAt;
  }
  harness.clock.pass(-60_000);
  const { credentialsChangedAt: earlier } = await accounts.changeUser(user.id, { role: 'user' });
  assert.ok(earlier > credentialsChangedAt, 'also when the clock was set back');
});

test('a change back revokes the tokens of a change that was made meanwhile', async () => {
  const { auth, watch, bearer, codeFor, ...harness } = authHarness();
  const { id } = await harness.createUser('ada');
  const gate = Promise.withResolvers<void>();
  watch.gate = gate.promise;
  const demoted = auth.accounts.changeUser(id, { role: 'user' });
  await passTurns(10); // it has read the user
  watch.gate = undefined;
  await harness.createUser('root', 'admin');
  const asAdmin = await bearer(await auth.accounts.changeUser(id, { role: 'admin' }));
  assert.is(await codeFor(asAdmin), 'none');
  gate.resolve();
  assert.is((await demoted).role, 'user');
  assert.is(await codeFor(asAdmin), 'INVALID_CREDENTIALS');
});

test('a change of a key whose owner cannot be read then may have been made', async () => {
  const { auth, store, createUser } = authHarness();
  const { id: ownerId } = await createUser('ada');
  const { apiKey } = await auth.accounts.createApiKey({ name: 'robot', permissions: ['admin'], ownerId });
  Object.assign(store.accounts, { findUsers: () => Promise.reject(databaseUnavailable(undefined)) });
  const { id } = apiKey.apiKey;
  const error = await errorOf(auth.accounts.changeApiKey(id, { templates: ['demo'] }));
  const [stored] = await store.accounts.findApiKeys([id]);
  assert.equal([stored?.templates, error.delivered], [['demo'], 'unknown']);
});

test('an undefined field changes nothing', async () => {
  const { auth, createUser } = authHarness();
  const user = await createUser('ada');
  const fields = ['email', 'password', 'role', 'templates', 'isActive'];
  const nothing = Object.fromEntries(fields.map((field) => [field, undefined]));
  assert.equal(await auth.accounts.changeUser(user.id, nothing), user);
});

test('an API key is active until it expires, and while its owner is', async () => {
  const harness = authHarness();
  const { accounts } = harness.auth;
  const admin = await harness.createUser('ada', 'admin');
  await harness.createUser('other', 'admin');
  const expiresAt = '2030-05-06T08:00:00.000Z';
  await harness.createKey({ expiresAt, ownerId: admin.id });
  await harness.createKey();
  const active = async () =>
    (await accounts.apiKeys()).flatMap(({ isActive, createdBy }) => (isActive ? [createdBy] : []));
  assert.equal(await active(), ['ada', null]);
  await accounts.changeUser(admin.id, { isActive: false });
  assert.equal(await active(), [null]);
  await accounts.changeUser(admin.id, { isActive: true });
  harness.clock.nowMs = Date.parse(expiresAt) - 1;
  assert.equal(await active(), ['ada', null]);
  harness.clock.pass(1);
  assert.equal(await active(), [null]);
});

test('a new password or a deletion of the first admin is reported, that of others is not', async () => {
  const harness = authHarness();
  const [admin, other] = [
    await harness.createUser('Admin', 'admin'),
    await harness.createUser('other', 'admin'),
  ];
  await harness.auth.accounts.changeUser(other.id, { password: 'long enough' });
  await harness.auth.accounts.changeUser(admin.id, { email: 'new@localhost' });
  assert.equal(harness.adminChanges, []);
  await harness.auth.accounts.changeUser(admin.id, { password: 'long enough' });
  assert.is(harness.adminChanges.length, 1);
  await harness.auth.accounts.deleteUser(admin.id);
  assert.is(harness.adminChanges.length, 2);
});

const { accounts } = authHarness().auth;
const key: NewApiKey = { name: 'robot', permissions: ['tools:call'] };

test('an expiry must be a future time with an offset, and is stored in UTC', async () => {
  const expiry = async (expiresAt?: string) =>
    (await accounts.createApiKey({ ...key, expiresAt })).apiKey.apiKey.expiresAt;
  assert.is(await expiry(), undefined);
  assert.is(await expiry('2031-01-01T00:00:00Z'), '2031-01-01T00:00:00.000Z');
  assert.is(await expiry('2031-01-01T00:00+02:00'), '2030-12-31T22:00:00.000Z');
  assert.is(await expiry('2031-01-01 00:00:00.25-0130'), '2031-01-01T01:30:00.250Z');
  const table: [text: string, type: string][] = [
    ['2030-05-06T07:08:09Z', 'datetime_future'],
    ['2030-05-06T07:08:09.250Z', 'datetime_future'],
    ['2031-01-01', 'datetime_parsing'],
    ['2031-01-01T00:00:00', 'datetime_parsing'],
    ['2031-02-30T00:00:00Z', 'datetime_parsing'],
    ['2031-01-01T00:00:00+99:00', 'datetime_parsing'],
    ['9999-12-31T23:59:59-12:00', 'datetime_parsing'],
    ['tomorrow', 'datetime_parsing'],
  ];
  for (const [text, type] of table)
    assert.equal(await findingsOf(() => expiry(text)), [`body.expires_at ${type}`], text);
});

test.run();
