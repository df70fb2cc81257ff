import * as assert from 'uvu/assert';
import { suite } from '../helpers/suite.ts';
import { authHarness, codeOf, passwordOf } from './auth-harness.ts';

const address = '10.0.0.1';

const test = suite('login');

test('gives a token that authenticates, whatever the case of the name', async () => {
  const { auth, createUser } = authHarness();
  const user = await createUser('ada');
  const issued = await auth.login({ username: 'ADA', password: passwordOf('ada'), address });
  assert.equal(issued.user, user);
  assert.is(issued.expiresInSeconds, 3_600);
  const principal = await auth.authenticate({ authorization: `Bearer ${issued.accessToken}` });
  assert.is(principal.id, `user:${user.id}`);
});

test('every reason for a refusal has the same words and the same work behind it', async () => {
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
    const error: Error = await auth.login({ username, password, address }).then(
      () => new Error('accepted'),
      (thrown) => thrown,
    );
    assert.is(await codeOf(() => Promise.reject(error)), 'INVALID_CREDENTIALS', username);
    words.add(error.message);
    assert.is(passwords.compared.length, 1, `one comparison for ${username}`);
    assert.match(passwords.compared[0]?.hash ?? '', /^\$2b\$04\$.{53}$/);
  }
  assert.is(words.size, 1);
});

test('ten failures shut the door, also for the right password; successes never do', async () => {
  const { auth, createUser } = authHarness();
  await createUser('ada');
  const login = (password: string) => codeOf(() => auth.login({ username: 'ada', password, address }));
  for (let attempt = 0; attempt < 15; attempt += 1) assert.is(await login(passwordOf('ada')), 'none');
  for (let attempt = 0; attempt < 10; attempt += 1)
    assert.is(await login('wrong one'), 'INVALID_CREDENTIALS');
  assert.is(await login(passwordOf('ada')), 'TOO_MANY_ATTEMPTS');
});

test('a database that is away is nobody’s failure', async () => {
  const { auth, createUser, watch } = authHarness();
  await createUser('ada');
  const login = () => codeOf(() => auth.login({ username: 'ada', password: passwordOf('ada'), address }));
  watch.isAway = true;
  for (let attempt = 0; attempt < 30; attempt += 1) assert.is(await login(), 'DATABASE_UNAVAILABLE');
  watch.isAway = false;
  assert.is(await login(), 'none');
});

test('a line of hashes that is full is nobody’s failure', async () => {
  const { auth, createUser } = authHarness();
  await createUser('ada');
  const from = (host: number) =>
    codeOf(() => auth.login({ username: 'ada', password: passwordOf('ada'), address: `10.0.1.${host}` }));
  const codes = await Promise.all(Array.from({ length: 40 }, (_, host) => from(host)));
  assert.is(codes.filter((code) => code === 'none').length, 22);
  assert.is(codes.filter((code) => code === 'TOO_MANY_ATTEMPTS').length, 18);
  assert.is(await from(39), 'none');
});

test.run();
