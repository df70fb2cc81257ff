// The end of a token before its time, on this node and on others.

import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { suite } from '../helpers/suite.ts';
import { authHarness, codeOf } from './auth-harness.ts';

const test = suite('logout');

test('ends one token of a user, at once', async () => {
  const { auth, createUser, bearer } = authHarness();
  const ada = await createUser('ada');
  const [one, other] = [await bearer(ada), await bearer(ada)];
  await auth.authenticate(one);
  await auth.authenticate(other);
  await auth.logout(one);
  assert.is(await codeOf(() => auth.authenticate(one)), 'INVALID_CREDENTIALS');
  assert.is((await auth.authenticate(other)).name, 'ada');
});

test('asks about the rest again, but no key ends', async () => {
  const { auth } = authHarness();
  const { key } = await auth.accounts.createApiKey({ name: 'robot', permissions: ['tools:call'] });
  await auth.logout({ apiKey: key });
  await auth.logout({ authorization: `Bearer ${key}` });
  await auth.logout({});
  assert.is((await auth.authenticate({ apiKey: key })).name, 'robot');
});

test('on another node takes effect with the news of the store', async () => {
  const { auth, store, createUser, bearer, hear, tokens } = authHarness();
  const ada = await createUser('ada');
  const token = await bearer(ada);
  await auth.authenticate(token);
  const { id, expiresAtMs } = await tokens.read((token.authorization ?? '').slice('Bearer '.length));
  await store.accounts.endToken(ada.id, { id, expiresAtMs }, 0);
  hear('changed');
  assert.is(await codeOf(() => auth.authenticate(token)), 'INVALID_CREDENTIALS');
});

test('of an answer that was under way lets nothing slip through', async () => {
  const { auth, watch, createUser, bearer } = authHarness();
  const token = await bearer(await createUser('ada'));
  const gate = Promise.withResolvers<void>();
  watch.gate = gate.promise;
  watch.asked.length = 0;
  const waiting = auth.authenticate(token);
  while (watch.asked.length === 0) await turn();
  watch.gate = undefined;
  await auth.logout(token);
  gate.resolve();
  assert.is(await codeOf(() => waiting), 'INVALID_CREDENTIALS');
  assert.is(await codeOf(() => auth.authenticate(token)), 'INVALID_CREDENTIALS');
});

test('one too many ends all tokens of the user, and forgets none', async () => {
  const { auth, createUser, bearer } = authHarness();
  const ada = await createUser('ada');
  const kept = await bearer(ada);
  await auth.authenticate(kept);
  const ended = await Promise.all(Array.from({ length: 101 }, () => bearer(ada)));
  for (const token of ended) await auth.logout(token);
  for (const token of [kept, ...ended])
    assert.is(await codeOf(() => auth.authenticate(token)), 'INVALID_CREDENTIALS');
  const { updatedAt: _, ...now } = await auth.accounts.user(ada.id);
  assert.is((await auth.authenticate(await bearer({ ...now, updatedAt: '' }))).name, 'ada');
});

test('says so when the database does not answer, and changes nothing', async () => {
  const { auth, watch, createUser, bearer } = authHarness();
  const token = await bearer(await createUser('ada'));
  await auth.authenticate(token);
  watch.isAway = true;
  assert.is(await codeOf(() => auth.logout(token)), 'DATABASE_UNAVAILABLE');
  watch.isAway = false;
  assert.is((await auth.authenticate(token)).name, 'ada');
});

test.run();
