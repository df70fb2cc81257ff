import { NEVER } from 'rxjs';
import * as assert from 'uvu/assert';
import { createAuth } from '../../src/auth/auth.ts';
import { ConfigError } from '../../src/config/config-error.ts';
import { messageOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';
import { authHarness, LIFETIME_MS, passwordOf, SECRET } from './auth-harness.ts';

const test = suite('authentication as a whole');

test('reports principals whose credentials or permissions change on this node', async () => {
  const { auth, createUser, createKey } = authHarness();
  const changedIds: string[] = [];
  auth.changed$.subscribe({ next: (id) => changedIds.push(id), complete: () => changedIds.push('end') });
  const ada = await createUser('ada');
  const [used, unused] = await Promise.all([createKey({ ownerId: ada.id }), createKey({ ownerId: ada.id })]);
  await auth.authenticate({ apiKey: used.key });
  assert.equal(changedIds, []);
  await auth.accounts.changeUser(ada.id, { email: 'ada@example.org' });
  assert.equal(changedIds, []);
  const usedId = `key:${used.apiKey.apiKey.id}`;
  await auth.accounts.changeUser(ada.id, { templates: ['demo'] });
  assert.equal(changedIds.splice(0), [`user:${ada.id}`, usedId]);
  await auth.accounts.revokeApiKey(unused.apiKey.apiKey.id);
  assert.equal(changedIds.splice(0), [`key:${unused.apiKey.apiKey.id}`]);
  await auth.authenticate({ apiKey: used.key });
  await auth.accounts.deleteUser(ada.id);
  assert.equal(changedIds.splice(0), [`user:${ada.id}`, usedId]);
  await auth.close();
  assert.equal(changedIds, ['end']);
});

test('close writes the audit log and the last use of API keys', async () => {
  const harness = authHarness();
  const { key, apiKey } = await harness.createKey();
  await harness.auth.authenticate({ apiKey: key });
  harness.auth.audit.record({ actor: 'local', actorName: 'local', action: 'x', subject: 'y', status: 0 });
  await harness.auth.close();
  const [stored] = await harness.store.accounts.findApiKeys([apiKey.apiKey.id]);
  assert.is(stored?.lastUsedAt, new Date(harness.clock.nowMs).toISOString());
  assert.is((await harness.store.audit.list({ limit: 5 })).length, 1);
  assert.is(harness.storeChanges$.observed, false);
});

test('cached credentials are verified again after 10 s without reports of the store', async () => {
  const { auth, store, clock, createKey, codeFor } = authHarness({ reports$: NEVER });
  const { key, apiKey } = await createKey();
  await auth.authenticate({ apiKey: key });
  await store.accounts.deleteApiKey(apiKey.apiKey.id);
  clock.pass(10_001);
  assert.is(await codeFor({ apiKey: key }), 'INVALID_CREDENTIALS');
  await auth.close();
});

test('an invalid URL of Redis is an error that does not repeat it', async () => {
  const redisUrl = 'http://user:planted-secret@host';
  const message = await messageOf(createAuth({ ...authHarness().options, redisUrl }), ConfigError);
  assert.not.match(message, /planted/);
});

test('no secret reaches a log, an error, the audit log or a record, whatever goes wrong', async () => {
  const harness = authHarness();
  const { auth, clock } = harness;
  const user = await harness.createUser('ada', 'admin');
  const secrets = [
    passwordOf('ada'),
    'planted wrong password',
    'planted new password',
    new TextDecoder().decode(SECRET),
  ];
  const said: unknown[] = harness.warnings;
  const attempt = async (work: () => unknown): Promise<void> => {
    try {
      await work();
    } catch (error) {
      for (let each: unknown = error; each instanceof Error; each = each.cause)
        said.push(each.message, each.stack, { ...each });
    }
  };
  const { accessToken } = await auth.logins.login({
    username: 'ada',
    password: passwordOf('ada'),
    address: '::1',
  });
  const { key, apiKey } = await harness.createKey({ permissions: ['admin'], ownerId: user.id });
  secrets.push(accessToken, accessToken.split('.')[2] ?? '', key, key.slice(20));
  said.push(apiKey, await auth.accounts.apiKeys());
  for (const isAway of [false, true]) {
    harness.watch.isAway = isAway;
    await attempt(() =>
      auth.logins.login({ username: 'ada', password: 'planted wrong password', address: '::1' }),
    );
    await attempt(() =>
      auth.logins.login({ username: 'planted wrong password', password: '', address: '::1' }),
    );
    await attempt(() =>
      auth.accounts.createUser({ username: 'ada', email: '@', password: 'planted', role: 'user' }),
    );
    await attempt(() => auth.accounts.changeUser('nobody', { password: 'planted new password' }));
    await attempt(() => auth.authenticate({ authorization: `Bearer ${accessToken}x` }));
    await attempt(() => auth.authenticate({ authorization: `Basic ${key}` }));
    await attempt(() => auth.authenticate({ authorization: `Bearer ${accessToken}`, apiKey: key }));
    await attempt(() => auth.authenticate({ apiKey: `${key}x` }));
  }
  harness.watch.isAway = false;
  clock.pass(LIFETIME_MS);
  await attempt(() => auth.authenticate({ authorization: `Bearer ${accessToken}` }));
  said.push(await auth.audit.list({ limit: 100 }));
  await auth.close();
  const text = said.map((each) => (typeof each === 'string' ? each : JSON.stringify(each))).join('\n');
  assert.ok(text.length > 1_000, 'there is something to look through');
  for (const secret of secrets) assert.not.ok(text.includes(secret), secret);
});

test.run();
