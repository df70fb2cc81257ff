// Logins: their results, what a refusal does not reveal, and how many may fail; and the end of a token at a logout.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { LoginThrottle } from '../../../src/auth/accounts/login-throttle.ts';
import { until } from '../../helpers/eventually.ts';
import { errorOf, thrownBy } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { authHarness, codeOf, LIFETIME_MS, passwordOf, verifiedUser } from '../auth-harness.ts';

const test = suite('login and logout');

const address = '10.0.0.1';

test('every refused login has the same message and makes one comparison of passwords', async () => {
  const { auth, createUser, passwords } = authHarness();
  await createUser('ada');
  const disabled = await createUser('bob');
  await auth.accounts.changeUser(disabled.id, { isActive: false });
  const attempts: [username: string, password: string][] = [
    ['ada', 'not the password'],
    ['nobody', 'not the password'],
    ['bob', passwordOf('bob')],
    ['ada', ''],
    ['ada', 'x'.repeat(5_000)],
    ['ada', `${passwordOf('ada')}\u0000`],
    ['', passwordOf('ada')],
    ["' or 1=1 --", 'x'],
    ['x'.repeat(10_000), 'x'],
  ];
  const words = new Set<string>();
  for (const [username, password] of attempts) {
    passwords.compared.length = 0;
    const error = await errorOf(auth.logins.login({ username, password, address }));
    assert.is(error.code, 'INVALID_CREDENTIALS', username);
    words.add(error.message);
    assert.is(passwords.compared.length, 1, `one comparison for ${username}`);
    assert.match(passwords.compared[0]?.hash ?? '', /^\$2b\$04\$.{53}$/);
  }
  assert.is(words.size, 1);
});

test('a success, and a login that fails for an unavailable database, is not counted as a failure', async () => {
  const { auth, createUser, watch } = authHarness();
  await createUser('ada');
  const login = () =>
    codeOf(() => auth.logins.login({ username: 'ada', password: passwordOf('ada'), address }));
  watch.isAway = true;
  for (let attempt = 0; attempt < 30; attempt += 1) assert.is(await login(), 'DATABASE_UNAVAILABLE');
  watch.isAway = false;
  for (let attempt = 0; attempt < 30; attempt += 1) assert.is(await login(), 'none');
});

test('a step of the wall clock neither ends nor extends the minute after ten failures', async () => {
  for (const stepMs of [11 * 60_000, -86_400_000]) {
    const { auth, clock } = authHarness();
    const login = () => codeOf(() => auth.logins.login({ username: 'ada', password: 'wrong', address }));
    for (let attempt = 0; attempt < 10; attempt += 1) assert.is(await login(), 'INVALID_CREDENTIALS');
    clock.pass(20_000);
    clock.step(stepMs);
    assert.is(await login(), 'TOO_MANY_ATTEMPTS');
    clock.pass(40_000);
    assert.is(await login(), 'INVALID_CREDENTIALS');
  }
});

test('a login that a full hashing queue refuses is not counted as a failure', async () => {
  const { auth, createUser } = authHarness();
  await createUser('ada');
  const from = (host: number) =>
    codeOf(() =>
      auth.logins.login({ username: 'ada', password: passwordOf('ada'), address: `10.0.1.${host}` }),
    );
  const codes = await Promise.all(Array.from({ length: 40 }, (_, host) => from(host)));
  assert.is(codes.filter((code) => code === 'none').length, 22);
  assert.is(codes.filter((code) => code === 'TOO_MANY_ATTEMPTS').length, 18);
  assert.is(await from(39), 'none');
});

/** A throttle, and the code of an attempt. */
function throttled() {
  const throttle = new LoginThrottle(() => Date.now());
  const admit = (username: string, from = address) =>
    codeOf(() => throttle.admit({ username, address: from }));
  return { throttle, admit };
}

test.before.each(() => mock.timers.enable({ apis: ['Date', 'setTimeout'], now: 1_000_000 }));
test.after.each(() => mock.timers.reset());

test('after ten failures in a minute of one user from one address the next is refused, with the time to wait', async () => {
  const { throttle, admit } = throttled();
  for (let attempt = 0; attempt < 10; attempt += 1)
    assert.is(await admit(attempt % 2 ? 'Ada' : 'ada'), 'none');
  for (let attempt = 0; attempt < 500; attempt += 1) assert.is(await admit('aDa'), 'TOO_MANY_ATTEMPTS');
  assert.is(await admit('bob'), 'none', 'refused attempts of another user do not count against the address');
  assert.is(await admit('ada', '10.0.0.2'), 'none', 'another address');
  mock.timers.tick(12_500);
  const refusal = await thrownBy(() => throttle.admit({ username: 'ada', address }));
  assert.is(Object(refusal).facts.retryAfterSeconds, 48);
  mock.timers.tick(47_499);
  assert.is(await admit('ada'), 'TOO_MANY_ATTEMPTS');
  mock.timers.tick(1);
  assert.is(await admit('ada'), 'none');
});

test('a success after the end of its minute does not allow an extra failure in the next', async () => {
  for (const isCountedBefore of [false, true]) {
    const throttle = new LoginThrottle(() => Date.now());
    const attempt = { username: 'ada', address: '10.0.0.1' };
    const counted = await throttle.admit(attempt);
    mock.timers.tick(60_000);
    const codes: string[] = [];
    if (isCountedBefore) codes.push(await codeOf(() => throttle.admit(attempt)));
    counted.settle('right');
    while (codes.length < 12) codes.push(await codeOf(() => throttle.admit(attempt)));
    assert.is(codes.filter((code) => code === 'none').length, 10);
  }
});

test('addresses of one IPv6 /64 network count as one, and an IPv4 address counts as itself in either form', async () => {
  const throttle = new LoginThrottle(() => Date.now());
  const same = [
    '2001:db8::1',
    '2001:db8::ffff:2',
    '2001:DB8:0:0:a::5',
    '2001:0db8:0000:0000:1:2:3:4',
    '2001:db8::%eth0',
  ];
  const blocked = async (address: string) =>
    (await codeOf(() => throttle.admit({ username: 'ada', address }))) !== 'none';
  for (let attempt = 0; attempt < 10; attempt += 1)
    await throttle.admit({ username: 'ada', address: same[attempt % same.length] ?? '' });
  for (const address of same) assert.is(await blocked(address), true, address);
  for (const address of ['2001:db8:0:1::1', '2001:db9::1', '::1'])
    assert.is(await blocked(address), false, address);
  for (let attempt = 0; attempt < 10; attempt += 1)
    await throttle.admit({ username: 'ada', address: attempt % 2 ? '10.0.0.9' : '::ffff:10.0.0.9' });
  assert.is(await blocked('10.0.0.9'), true);
  assert.is(await blocked('::ffff:10.0.0.8'), false);
});

test('a logout on another node applies once the store reports a change', async () => {
  const { store, user, token, emitChange, tokens, codeFor } = await verifiedUser();
  const { id, expiresAtMs } = await tokens.read((token.authorization ?? '').slice('Bearer '.length));
  await store.accounts.endToken(user.id, { id, expiresAtMs }, 0);
  emitChange('changed');
  assert.is(await codeFor(token), 'INVALID_CREDENTIALS');
});

test('a logout during the verification of its token applies at once', async () => {
  const { auth, watch, createUser, bearer, codeFor } = authHarness();
  const token = await bearer(await createUser('ada'));
  const gate = Promise.withResolvers<void>();
  watch.gate = gate.promise;
  watch.asked.length = 0;
  const waiting = auth.authenticate(token);
  await until(() => watch.asked.length !== 0);
  watch.gate = undefined;
  await auth.tokenEnds.end(token);
  gate.resolve();
  assert.is(await codeOf(() => waiting), 'INVALID_CREDENTIALS');
  assert.is(await codeFor(token), 'INVALID_CREDENTIALS');
});

test('the 101st logout of a user ends all tokens of the user, and the next one only its own', async () => {
  const { auth, user, token: kept, bearer, codeFor } = await verifiedUser();
  const ended = await Promise.all(Array.from({ length: 101 }, () => bearer(user)));
  for (const token of ended) await auth.tokenEnds.end(token);
  for (const token of [kept, ...ended]) assert.is(await codeFor(token), 'INVALID_CREDENTIALS');
  const { updatedAt: _, ...now } = await auth.accounts.user(user.id);
  const [first, second] = [await bearer({ ...now, updatedAt: '' }), await bearer({ ...now, updatedAt: '' })];
  assert.is((await auth.authenticate(first)).name, 'ada');
  await auth.tokenEnds.end(first);
  assert.is(await codeFor(first), 'INVALID_CREDENTIALS');
  assert.is((await auth.authenticate(second)).name, 'ada');
});

test('no ended token is valid again because the clock was ahead at the 101st logout', async () => {
  const { auth, clock, user, bearer, codeFor } = await verifiedUser();
  const ended = await Promise.all(Array.from({ length: 100 }, () => bearer(user)));
  for (const token of ended) await auth.tokenEnds.end(token);
  clock.step(2 * LIFETIME_MS);
  await auth.tokenEnds.end(await bearer(user));
  clock.step(-2 * LIFETIME_MS);
  for (const token of ended) assert.is(await codeFor(token), 'INVALID_CREDENTIALS');
});

test('a logout of a user who was deleted is no error, and leaves nothing of the user in the store', async () => {
  const { auth, store, user, token, tokens } = await verifiedUser();
  const { id } = await tokens.read((token.authorization ?? '').slice('Bearer '.length));
  await store.accounts.deleteUser(user.id);
  await auth.tokenEnds.end(token);
  assert.is(await store.accounts.isTokenEnded(user.id, id), false);
});

test('a logout while the database is unavailable is refused and changes nothing', async () => {
  const { auth, watch, token } = await verifiedUser();
  watch.isAway = true;
  assert.is(await codeOf(() => auth.tokenEnds.end(token)), 'DATABASE_UNAVAILABLE');
  watch.isAway = false;
  assert.is((await auth.authenticate(token)).name, 'ada');
});

test.run();
