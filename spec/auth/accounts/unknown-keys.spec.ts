// API keys that nobody created: what they cost the database, and what they do not hold up.

import { randomBytes } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { newKey } from '../../../src/auth/accounts/api-keys.ts';
import type { AuthOptions } from '../../../src/auth/auth.ts';
import { composeAuth } from '../../../src/auth/auth.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { suite } from '../../helpers/suite.ts';
import { authHarness, codeOf } from '../auth-harness.ts';

const test = suite('unknown API keys');

/** The harness, with an address for each request and a clock without the wall. */
function doors() {
  const harness = authHarness();
  const clock = { nowMs: 0 };
  const options: AuthOptions = {
    ...harness.options,
    clock: { ...(harness.options.clock ?? systemClock), now: () => clock.nowMs },
  };
  const auth = composeAuth(options);
  harness.emitChange('answered');
  const codeFor = (apiKey: string, address = '203.0.113.1') =>
    codeOf(() => auth.authenticate({ apiKey }, () => address));
  const queries = () => harness.watch.asked.filter((name) => /^(?:findApiKeys|apiKeyIds)$/.test(name)).length;
  const create = async () =>
    (await auth.accounts.createApiKey({ name: 'robot', permissions: ['tools:call'] })).key;
  return { ...harness, auth, clock, codeFor, queries, create };
}

/** Lets all promises of this turn settle. */
async function settled() {
  for (let turns = 0; turns < 20; turns += 1) await turn();
}

test('a repeated wrong key costs one query, until an account changes or 10 s pass', async () => {
  const { codeFor, queries, clock, emitChange, create } = doors();
  const { key } = newKey();
  for (let attempt = 0; attempt < 50; attempt += 1) assert.is(await codeFor(key), 'INVALID_CREDENTIALS');
  assert.is(queries(), 1);
  for (const change of [
    () => emitChange('changed'),
    () => create(),
    () => {
      clock.nowMs += 10_000;
    },
  ] as const) {
    const before = queries();
    await change();
    for (let attempt = 0; attempt < 3; attempt += 1) assert.is(await codeFor(key), 'INVALID_CREDENTIALS');
    assert.is(queries() - before, 1);
  }
});

test('the same for a token that was ended', async () => {
  const { auth, createUser, bearer, watch } = doors();
  const token = await bearer(await createUser('ada'));
  await auth.authenticate(token);
  await auth.tokenEnds.end(token);
  watch.asked.length = 0;
  for (let attempt = 0; attempt < 20; attempt += 1)
    assert.is(await codeOf(() => auth.authenticate(token)), 'INVALID_CREDENTIALS');
  assert.equal(watch.asked, ['findUsers', 'isTokenEnded']);
});

test('a key that was refused before it was created is valid at once here, and after a report elsewhere', async () => {
  const { codeFor, store, emitChange, auth } = doors();
  const made = newKey();
  assert.is(await codeFor(made.key), 'INVALID_CREDENTIALS');
  const { key: _, ...record } = made;
  await store.accounts.insertApiKey({
    ...{ ...record, name: 'other', permissions: ['tools:call'], createdAt: '2030-01-01T00:00:00.000Z' },
  });
  assert.is(await codeFor(made.key), 'INVALID_CREDENTIALS', 'not reported yet');
  emitChange('changed');
  assert.is(await codeFor(made.key), 'none');
  await auth.accounts.revokeApiKey(made.id);
  assert.is(await codeFor(made.key), 'INVALID_CREDENTIALS');
});

test('ten thousand random keys of one address cost about a hundred queries; valid keys of it are accepted', async () => {
  const { codeFor, queries, create, store, clock } = doors();
  for (let attempt = 0; attempt < 10_000; attempt += 1)
    assert.is(await codeFor(newKey().key, `2001:db8::${attempt.toString(16)}`), 'INVALID_CREDENTIALS');
  assert.ok(queries() <= 102, String(queries()));
  assert.is(await codeFor(await create(), '2001:db8::5'), 'none', 'created on this node');
  const { key, ...record } = newKey();
  await store.accounts.insertApiKey({
    ...{ ...record, name: 'other', permissions: ['tools:call'], createdAt: '2030-01-01T00:00:00.000Z' },
  });
  clock.nowMs += 9_999;
  for (let attempt = 0; attempt < 200; attempt += 1) await codeFor(newKey().key, '2001:db8::5');
  clock.nowMs += 1;
  for (let attempt = 0; attempt < 200; attempt += 1) await codeFor(newKey().key, '2001:db8::5');
  assert.is(await codeFor(key, '2001:db8::5'), 'none', 'created on another node');
  assert.ok(queries() <= 400, String(queries()));
});

for (const [title, addressOf] of [
  ['one address', () => '203.0.113.1'],
  ['many addresses', (index: number) => `203.0.${index >> 8}.${index & 255}`],
] as const) {
  test(`of random keys from ${title} eight are looked up at a time, and known keys go first`, async () => {
    const { codeFor, queries, create, watch } = doors();
    const known = await create();
    const gate = Promise.withResolvers<void>();
    watch.gate = gate.promise;
    const flood = Array.from({ length: 3_000 }, (_, index) => codeFor(newKey().key, addressOf(index)));
    await settled();
    assert.is(queries(), 8);
    const victim = codeFor(known, '198.51.100.7');
    gate.resolve();
    assert.is(await victim, 'none');
    const codes = await Promise.all(flood);
    const refused = codes.filter((code) => code === 'TOO_MANY_ATTEMPTS').length;
    assert.ok(refused >= 1_992 && refused <= 1_993, String(refused));
    assert.is(codes.length - refused, codes.filter((code) => code === 'INVALID_CREDENTIALS').length);
  });
}

test('a flood of random keys does not postpone a revocation, nor a change of an account', async () => {
  const { auth, codeFor, create, queries, watch, createUser } = doors();
  const key = await create();
  assert.is(await codeFor(key), 'none');
  const gate = Promise.withResolvers<void>();
  watch.gate = gate.promise;
  const flood = Array.from({ length: 500 }, (_, index) => codeFor(newKey().key, `203.0.113.${index & 255}`));
  await settled();
  const before = queries();
  const revoked = auth.accounts.revokeApiKey(key.split('_')[1] ?? '');
  watch.gate = undefined;
  const user = await createUser('ada');
  assert.is(user.username, 'ada');
  assert.is(queries(), before, 'no look-up before it');
  gate.resolve();
  await revoked;
  assert.is(await codeFor(key), 'INVALID_CREDENTIALS');
  await Promise.all(flood);
});

test('random tokens and malformed keys cost no query', async () => {
  const { auth, watch, codeFor } = doors();
  watch.asked.length = 0;
  for (let attempt = 0; attempt < 50; attempt += 1) {
    const noise = randomBytes(32).toString('base64url');
    const authorization = `Bearer eyJhbGciOiJIUzI1NiJ9.${noise}.${noise}`;
    assert.is(await codeOf(() => auth.authenticate({ authorization })), 'INVALID_CREDENTIALS');
    assert.is(await codeFor(`sd_${noise}`), 'INVALID_CREDENTIALS');
  }
  assert.equal(watch.asked, []);
});

test.run();
