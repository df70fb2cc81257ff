import { chmod, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { ensureFirstAdmin } from '../../../src/auth/accounts/first-admin.ts';
import { beginFirstPassword } from '../../../src/auth/accounts/first-password.ts';
import { Passwords } from '../../../src/auth/accounts/passwords.ts';
import { ConfigError } from '../../../src/config/config-error.ts';
import { databaseUnavailable } from '../../../src/domain/errors/gateway-errors.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import type { AccountStore } from '../../../src/persistence/store.ts';
import { until } from '../../helpers/eventually.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { messageOf, rejects } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { authHarness, codeOf, START_MS, watchedAccounts } from '../auth-harness.ts';

const passwords = new Passwords(systemClock, 4);

const test = suite('the first admin');
const folder = folderOfEach(test);

const NEW_DATABASE: Parameters<typeof beginFirstPassword>[0] = {
  authEnabled: true,
  adminPassword: undefined,
  databaseUrl: 'memory://',
  folder: '/',
};

const options = (accounts: AccountStore) => ({
  accounts,
  passwords,
  isTerminal: false,
  passwordFile: folder('state', 'first-password'),
  wall: () => START_MS,
});

test('the password file is deleted at a start if the admin has another password', async () => {
  const { accounts } = new MemoryStore();
  await ensureFirstAdmin(options(accounts));
  const [admin] = await accounts.findUsers();
  assert.ok(admin);
  const later = new Date(START_MS + 1).toISOString();
  await accounts.changeUser(admin.id, { passwordHash: 'new', credentialsChangedAt: later, updatedAt: later });
  await ensureFirstAdmin(options(accounts));
  assert.equal(await readdir(folder('state')), []);
});

test('is refused with an invalid configured password, which the error does not repeat', async () => {
  for (const configuredPassword of ['short', 'x'.repeat(73), '']) {
    const { accounts } = new MemoryStore();
    await rejects(
      ensureFirstAdmin({ ...options(accounts), configuredPassword }),
      ConfigError,
      /^GATEWAY_ADMIN_PASSWORD: String should have at (least 8 characters|most 72 bytes)$/,
    );
  }
});

test('is not created again after other admins deleted it', async () => {
  const harness = authHarness();
  const { accounts } = harness.store;
  await ensureFirstAdmin(options(accounts));
  await harness.createUser('ada', 'admin');
  const first = await accounts.findUserByName('admin');
  await harness.auth.accounts.deleteUser(first?.id ?? '');
  const configured = { ...options(accounts), configuredPassword: 'configured password' };
  assert.equal(await ensureFirstAdmin(configured), {
    warnings: ['the configured admin password is not used: an admin already exists'],
    notices: [],
  });
  assert.is(await accounts.findUserByName('admin'), undefined);
  assert.equal(await readdir(folder('state')), []);
});

test('is created if no user is an admin or has its name', async () => {
  for (const [username, role, isCreated] of [
    ['ada', 'user', true],
    ['ada', 'admin', false],
    ['Admin', 'user', false],
  ] as const) {
    const harness = authHarness();
    await harness.createUser(username, role);
    const first = await ensureFirstAdmin({ ...options(harness.store.accounts), isTerminal: true });
    assert.is(first.notices.length > 0, isCreated, `${username} ${role}`);
  }
});

test('is created once by gateways that start concurrently, and its file has the valid password', async () => {
  const way = fc.constantFrom({ isTerminal: true }, {}, {}, { configuredPassword: 'configured password' });
  await fc.assert(
    fc.asyncProperty(fc.array(way, { minLength: 2, maxLength: 6 }), async (ways) => {
      const { accounts, results } = await startAtOnce(ways);
      const created = results
        .flatMap(({ warnings, notices }) => [...warnings, ...notices])
        .filter((line) => line.startsWith('created the user "admin"'));
      assert.is(created.length, 1);
      const [admin] = await accounts.findUsers();
      const files = await readdir(folder('state')).catch(() => []);
      assert.equal(files, created[0]?.endsWith('first-password') ? ['first-password'] : []);
      for (const name of files) {
        const password = (await readFile(folder('state', name), 'utf8')).trimEnd();
        assert.is(await passwords.matches(password, admin?.passwordHash), true);
      }
      await rm(folder('state'), { recursive: true, force: true });
    }),
    { numRuns: 25 },
  );
});

for (const [from, isTerminal, adminPassword] of [
  ['a terminal', true, undefined],
  ['a file', false, undefined],
  ['the settings', false, 'configured password'],
] as const) {
  test(`gets the password that was hashed before the database was opened: from ${from}`, async () => {
    const { accounts } = new MemoryStore();
    const prepared = beginFirstPassword({ ...NEW_DATABASE, adminPassword }, passwords);
    assert.ok(prepared);
    await ensureFirstAdmin({
      ...options(accounts),
      ...{ isTerminal, prepared, configuredPassword: adminPassword },
    });
    const [admin] = await accounts.findUsers();
    assert.is(admin?.passwordHash, await prepared.hash);
    assert.ok(await passwords.matches(adminPassword ?? prepared.password, admin?.passwordHash));
  });
}

test('has the password that an earlier start wrote to the file, whatever was hashed', async () => {
  const { accounts } = new MemoryStore();
  await mkdir(folder('state'));
  await writeFile(options(accounts).passwordFile, 'of an earlier start\n', { mode: 0o600 });
  const prepared = beginFirstPassword(NEW_DATABASE, passwords);
  await ensureFirstAdmin({ ...options(accounts), prepared });
  const [admin] = await accounts.findUsers();
  assert.ok(await passwords.matches('of an earlier start', admin?.passwordHash));
});

test('no password is hashed before the database is opened if it may have an admin, or none is needed', async () => {
  await mkdir(folder('state'));
  await writeFile(folder('state', 'old.db'), '');
  const begin = (config: Partial<typeof NEW_DATABASE>) =>
    beginFirstPassword({ ...NEW_DATABASE, folder: folder('state'), ...config }, passwords);
  assert.ok(begin({ databaseUrl: 'sqlite:///new.db' }));
  assert.is(begin({ databaseUrl: 'sqlite:///old.db' }), undefined);
  assert.is(begin({ databaseUrl: 'postgresql://127.0.0.1/some' }), undefined);
  assert.is(begin({ databaseUrl: 'nothing' }), undefined);
  assert.is(begin({ authEnabled: false }), undefined);
  assert.is(begin({ adminPassword: 'short' }), undefined);
});

for (const created of ['not', 'perhaps'] as const) {
  test(`has the password in the file when the database has failed and the admin was ${created} created`, async () => {
    const { accounts } = new MemoryStore();
    const { passwordFile } = options(accounts);
    const insertUser = accounts.insertUser.bind(accounts);
    accounts.insertUser = async (user) => {
      if (created === 'perhaps') await insertUser(user);
      throw databaseUnavailable(new Error('gone'), 'unknown');
    };
    assert.is(await codeOf(() => ensureFirstAdmin(options(accounts))), 'DATABASE_UNAVAILABLE');
    accounts.insertUser = insertUser;
    const password = (await readFile(passwordFile, 'utf8')).trimEnd();
    const warnings = [`created the user "admin"; its password is in ${passwordFile}`];
    const expected = { warnings: created === 'not' ? warnings : [], notices: [] };
    assert.equal(await ensureFirstAdmin(options(accounts)), expected);
    assert.is((await readFile(passwordFile, 'utf8')).trimEnd(), password);
    const [admin] = await accounts.findUsers();
    assert.is(await passwords.matches(password, admin?.passwordHash), true);
  });
}

test('is not created if its password file cannot be created, is readable for others or is empty', async () => {
  const { accounts } = new MemoryStore();
  const refusal = () => messageOf(ensureFirstAdmin(options(accounts)), ConfigError);
  await writeFile(folder('state'), '');
  assert.match(await refusal(), /first-password: the password of the first admin cannot be .*ENOTDIR/);
  await rm(folder('state'));
  await mkdir(folder('state'));
  await writeFile(options(accounts).passwordFile, 'known to all of us\n', { mode: 0o644 });
  if (process.platform !== 'win32') assert.match(await refusal(), /can be read by other users/);
  await writeFile(options(accounts).passwordFile, '');
  await chmod(options(accounts).passwordFile, 0o600);
  assert.match(await refusal(), /first-password: the file holds no valid password; delete it/);
  assert.equal(await accounts.findUsers(), []);
});

test.run();

/** One start for each of `ways`, on one database; all find it empty before any of them continues. */
async function startAtOnce(ways: readonly Partial<Parameters<typeof ensureFirstAdmin>[0]>[]) {
  const watch = watchedAccounts(new MemoryStore().accounts);
  const gate = Promise.withResolvers<void>();
  watch.gate = gate.promise;
  const { accounts } = watch;
  const starting = ways.map((way) => ensureFirstAdmin({ ...options(accounts), ...way }));
  await until(() => watch.asked.length >= ways.length);
  watch.gate = undefined;
  gate.resolve();
  return { accounts, results: await Promise.all(starting) };
}
