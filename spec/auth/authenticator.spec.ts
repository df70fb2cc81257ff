// Authentication of requests: verification, how long its result is cached, and what ends that.

import { createHmac } from 'node:crypto';
import * as assert from 'uvu/assert';
import type { Credentials } from '../../src/auth/credentials.ts';
import type { RightsLists } from '../../src/domain/accounts/rights.ts';
import { errorOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';
import { passTurns } from '../helpers/time/turns.ts';
import {
  authHarness,
  cached,
  idOf,
  LIFETIME_MS,
  minuteMs,
  passwordOf,
  SECRET,
  START_MS,
  verifiedUser,
} from './auth-harness.ts';

const test = suite('authentication');

test('verified credentials are accepted again without a promise and without a query', async () => {
  const harness = authHarness();
  const user = await harness.createUser('ada');
  const token = await harness.bearer(user);
  const { key } = await harness.createKey();
  const forms: Credentials[] = [token, { apiKey: key }, { authorization: `Bearer ${key}` }];
  for (const credentials of forms) {
    const principal = await harness.auth.authenticate(credentials);
    harness.watch.asked.length = 0;
    assert.is(harness.auth.authenticate(credentials), principal);
    assert.equal(harness.watch.asked, []);
  }
  const spaced = idOf(harness.auth.authenticate({ apiKey: ` ${key} ` }));
  assert.is(spaced, idOf(harness.auth.authenticate({ apiKey: key })));
  const shouted = { authorization: (token.authorization ?? '').replace('Bearer ', 'BEARER   ') };
  assert.is(idOf(harness.auth.authenticate(shouted)), `user:${user.id}`);
});

test('a connection may carry the requests of several callers, and what one of them has ended is over there', async () => {
  const harness = authHarness();
  const ada = await harness.createUser('ada');
  const token = await harness.bearer(ada);
  const { key, apiKey } = await harness.createKey();
  const connection = {};
  for (let turn = 0; turn < 2; turn += 1) {
    assert.is(idOf(await harness.auth.authenticate({ ...token, connection })), `user:${ada.id}`);
    const byKey = { apiKey: key, connection };
    assert.is(idOf(await harness.auth.authenticate(byKey)), idOf(await harness.auth.authenticate(byKey)));
    assert.is(
      idOf(await harness.auth.authenticate(byKey)),
      idOf(await harness.auth.authenticate({ apiKey: key })),
    );
  }
  await harness.auth.accounts.revokeApiKey(apiKey.apiKey.id);
  const refused = await errorOf(
    Promise.resolve().then(() => harness.auth.authenticate({ apiKey: key, connection })),
  );
  assert.is(refused.code, 'INVALID_CREDENTIALS');
  assert.is(idOf(await harness.auth.authenticate({ ...token, connection })), `user:${ada.id}`);
});

test('invalid credentials are refused with the right code and a message that does not repeat them', async () => {
  const harness = authHarness();
  const [ada, bob, eve, ida, joe] = await Promise.all(
    ['ada', 'bob', 'eve', 'ida', 'joe'].map((name) => harness.createUser(name)),
  );
  assert.ok(ada && bob && eve && ida && joe);
  const token = await harness.bearer(ada);
  const [deleted, disabled, changed, promoted] = await Promise.all([bob, eve, ida, joe].map(harness.bearer));
  await harness.auth.accounts.deleteUser(bob.id);
  await harness.auth.accounts.changeUser(eve.id, { isActive: false });
  await harness.auth.accounts.changeUser(ida.id, { password: 'a new password' });
  await harness.auth.accounts.changeUser(joe.id, { role: 'admin' });
  const makeKey = async (ownerId?: string, expiresAt?: string): Promise<{ key: string; id: string }> => {
    const { key, apiKey } = await harness.createKey({ ownerId, expiresAt });
    return { key, id: apiKey.apiKey.id };
  };
  const good = await makeKey();
  const other = await makeKey();
  const ofDisabled = await makeKey(eve.id);
  const revoked = await makeKey();
  await harness.auth.accounts.revokeApiKey(revoked.id);
  const short = await makeKey(undefined, new Date(START_MS + 500).toISOString());
  harness.clock.pass(501);
  const jwt = (token.authorization ?? '').slice('Bearer '.length);
  const claims = JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString());
  const signed = (change: object): string => {
    const header = Buffer.from('{"alg":"HS256"}').toString('base64url');
    const text = `${header}.${Buffer.from(JSON.stringify({ ...claims, ...change })).toString('base64url')}`;
    return `Bearer ${text}.${createHmac('sha256', SECRET).update(text).digest('base64url')}`;
  };

  const table: Record<string, Credentials> = {
    nothing: {},
    expired: { authorization: signed({ exp: Math.floor(START_MS / 1000) }) },
    'deleted user': deleted ?? {},
    'disabled user': disabled ?? {},
    'issued before a new password': changed ?? {},
    'issued for another role': promoted ?? {},
    'a user who never was': { authorization: signed({ sub: 'nobody' }) },
    'a stamp that never was': { authorization: signed({ credentials_at: 5 }) },
    'an empty header': { authorization: '' },
    'a scheme alone': { authorization: 'Bearer ' },
    'no scheme': { authorization: jwt },
    'another scheme': { authorization: `Basic ${Buffer.from('ada:password').toString('base64')}` },
    'two tokens': { authorization: `Bearer ${jwt} ${jwt}` },
    'huge token': { authorization: `Bearer ${'x'.repeat(60_000)}` },
    'huge key': { apiKey: `sd_${'0'.repeat(60_000)}` },
    'an empty key': { apiKey: '' },
    'a token as a key': { apiKey: jwt },
    'a key with the secret of another': { apiKey: good.key.slice(0, 20) + other.key.slice(20) },
    'revoked key': { apiKey: revoked.key },
    'expired key': { apiKey: short.key },
    'key of a disabled owner': { apiKey: ofDisabled.key },
    'both headers, different callers': { ...token, apiKey: good.key },
    'both headers, different keys': { authorization: `Bearer ${other.key}`, apiKey: good.key },
    'both headers, one of them wrong': { authorization: `Bearer ${good.key}`, apiKey: revoked.key },
    'both headers, one of them empty': { authorization: `Bearer ${good.key}`, apiKey: '' },
  };
  const codes: Record<string, string> = { nothing: 'AUTHENTICATION_REQUIRED', expired: 'TOKEN_EXPIRED' };
  const sentences = new Set<string>();
  for (const [what, credentials] of Object.entries(table)) {
    const error = await errorOf(Promise.resolve().then(() => harness.auth.authenticate(credentials)));
    assert.is(error.code, codes[what] ?? 'INVALID_CREDENTIALS', what);
    const text = JSON.stringify([error.message, error.stack, error.facts, String(error.cause)]);
    for (const part of [credentials.authorization?.split(' ')[1], credentials.apiKey])
      if (part) assert.not.ok(text.includes(part.slice(0, 40)), `${what} is repeated`);
    sentences.add(error.message);
  }
  assert.ok(sentences.size < 10, 'few sentences, none made from input');
  const both = { authorization: `Bearer ${good.key}`, apiKey: good.key };
  for (const credentials of [token, { apiKey: good.key }, both])
    assert.is(await harness.codeFor(credentials), 'none', 'the table is not about all');
  assert.equal(harness.warnings, []);
});

test('cached credentials end when they expire', async () => {
  const harness = authHarness();
  const token = await harness.bearer(await harness.createUser('ada'));
  const expiresAt = new Date(START_MS + 2_000).toISOString();
  const { key } = await harness.createKey({ expiresAt });
  await harness.auth.authenticate(token);
  await harness.auth.authenticate({ apiKey: key });
  harness.clock.pass(1_999);
  assert.ok(!(harness.auth.authenticate({ apiKey: key }) instanceof Promise));
  harness.clock.pass(1);
  assert.is(await harness.codeFor({ apiKey: key }), 'INVALID_CREDENTIALS');
  harness.emitChange('answered');
  assert.ok(!(harness.auth.authenticate(token) instanceof Promise));
  harness.clock.pass(LIFETIME_MS);
  harness.emitChange('answered');
  assert.is(await harness.codeFor(token), 'TOKEN_EXPIRED');
});

test('an unknown credential beside an expired one is refused, and leaves no unhandled rejection', async () => {
  const harness = authHarness();
  const { key } = await harness.createKey({ expiresAt: new Date(START_MS + 500).toISOString() });
  await harness.auth.authenticate({ apiKey: key });
  harness.clock.pass(501);
  const unheard: unknown[] = [];
  const hear = (reason: unknown) => void unheard.push(reason);
  process.on('unhandledRejection', hear);
  try {
    const unknown = `Bearer sd_${'0'.repeat(16)}_${'x'.repeat(43)}`;
    assert.is(await harness.codeFor({ authorization: unknown, apiKey: key }), 'INVALID_CREDENTIALS');
    await passTurns(2);
    assert.equal(unheard, []);
  } finally {
    process.off('unhandledRejection', hear);
  }
});

test('a change of one account leaves the credentials of others cached', async () => {
  const { token, ...harness } = await verifiedUser();
  const bob = await harness.createUser('bob');
  await harness.auth.accounts.changeUser(bob.id, { password: 'a new password' });
  assert.ok(!(harness.auth.authenticate(token) instanceof Promise));
});

test('a token issued right after a change of the password is good, one issued right before is not', async () => {
  const harness = authHarness();
  const before = await harness.createUser('ada');
  const old = await harness.bearer(before);
  const after = await harness.auth.accounts.changeUser(before.id, { password: 'a new password' });
  const fresh = await harness.bearer(after);
  assert.is(await harness.codeFor(old), 'INVALID_CREDENTIALS');
  assert.is(await harness.codeFor(fresh), 'none', 'in the same millisecond');
  const again = await harness.auth.accounts.changeUser(before.id, { password: passwordOf('ada') });
  assert.is(await harness.codeFor(fresh), 'INVALID_CREDENTIALS');
  assert.is(await harness.codeFor(await harness.bearer(again)), 'none');
});

test('a revocation during a query applies to all later requests, and to that query if it fails', async () => {
  for (const isAway of [false, true]) {
    const harness = authHarness();
    const { key, apiKey } = await harness.createKey();
    const code = () => harness.codeFor({ apiKey: key });
    assert.is(await code(), 'none');
    harness.emitChange('changed');
    const gate = Promise.withResolvers<void>();
    harness.watch.gate = gate.promise;
    const asked = code();
    await passTurns(10);
    await harness.store.accounts.deleteApiKey(apiKey.apiKey.id);
    harness.watch.gate = undefined;
    await harness.auth.accounts.revokeApiKey(apiKey.apiKey.id).catch(() => 'it is gone already');
    harness.watch.isAway = isAway;
    const refusal = isAway ? 'DATABASE_UNAVAILABLE' : 'INVALID_CREDENTIALS';
    assert.is(await code(), refusal, 'a later request does not join the query from before');
    gate.resolve();
    assert.is(await asked, isAway ? refusal : 'none');
    assert.is(await code(), refusal);
  }
});

test('concurrent requests with the same credentials share one query', async () => {
  const harness = authHarness();
  const token = await harness.bearer(await harness.createUser('ada'));
  harness.watch.asked.length = 0;
  const principals = await Promise.all(Array.from({ length: 200 }, () => harness.auth.authenticate(token)));
  assert.is(new Set(principals).size, 1);
  assert.equal(harness.watch.asked, ['findUsers', 'isTokenEnded']);
});

for (const isRevokedHere of [false, true])
  test(`credentials are verified again after a change ${isRevokedHere ? 'here' : 'elsewhere'} during their query`, async () => {
    const harness = authHarness();
    const { key, apiKey } = await harness.createKey();
    const gate = Promise.withResolvers<void>();
    harness.watch.gate = gate.promise;
    const asked = harness.auth.authenticate({ apiKey: key });
    await passTurns(10);
    harness.watch.gate = undefined;
    if (isRevokedHere) await harness.auth.accounts.revokeApiKey(apiKey.apiKey.id);
    else harness.emitChange('changed');
    gate.resolve();
    await asked;
    harness.watch.asked.length = 0;
    harness.watch.isAway = true;
    // Without an answer, those of a change elsewhere are known.
    const code = isRevokedHere ? 'DATABASE_UNAVAILABLE' : 'none';
    assert.is(await harness.codeFor({ apiKey: key }), code);
    assert.equal(harness.watch.asked, ['findApiKeys']);
    harness.clock.pass(15 * minuteMs + 1);
    assert.is(await harness.codeFor({ apiKey: key }), 'DATABASE_UNAVAILABLE');
  });

test('a header that is much longer than any credential is refused', async () => {
  const harness = authHarness();
  const token = await harness.bearer(await harness.createUser('ada'));
  const { key } = await harness.createKey();
  const blanks = ' '.repeat(4_096);
  const padded = { authorization: (token.authorization ?? '').replace(' ', blanks) };
  assert.is(await harness.codeFor(padded), 'INVALID_CREDENTIALS');
  assert.is(await harness.codeFor({ apiKey: `${blanks}${key}` }), 'INVALID_CREDENTIALS');
});

test('10,000 credentials are cached; the next replaces the least recently used', () => {
  const { entries } = cached().cache;
  for (let index = 0; index < 10_000; index += 1)
    entries.set(`${index}`, { verifiedAtMs: 0, staleSinceMs: undefined });
  assert.equal([entries.size, entries.has('entry'), entries.has('0')], [10_000, false, true]);
});

test('callers with long lists of rights count several times, so that they take a bounded memory', async () => {
  const harness = authHarness();
  const templates = Array.from({ length: 1_000 }, (_, index) => `t-${index}`);
  const keyWith = async (lists: RightsLists) => ({ apiKey: (await harness.createKey(lists)).key });
  const [long, short] = [await keyWith({ templates, views: templates }), await keyWith({})];
  for (const each of [long, short]) await harness.auth.authenticate(each);
  for (let index = 0; index < 270; index += 1)
    await harness.auth.authenticate(
      await keyWith({ templates, views: [...templates.slice(1), `v${index}`] }),
    );
  harness.watch.asked.length = 0;
  await harness.auth.authenticate(short);
  assert.ok(harness.watch.asked.length > 0, 'the first callers made room');
});

test('equal lists of rights of several credentials are kept once', async () => {
  const harness = authHarness();
  const toolsOf = async (tools: readonly string[]) => {
    const { key } = await harness.createKey({ tools });
    return (await harness.auth.authenticate({ apiKey: key })).tools;
  };
  const first = await toolsOf(['a/*', '!a/b']);
  assert.ok(first !== undefined && first === (await toolsOf(['a/*', '!a/b'])));
  assert.not.ok(first === (await toolsOf(['a/*'])));
});

test.run();
