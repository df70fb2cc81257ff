// Logins while others log in all the time: the shares of users and addresses in the queue of hashes, and the limit of failures of an
// address. Time stands still, and a comparison of passwords takes until the spec ends it.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { Passwords } from '../../../src/auth/accounts/passwords.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { eventually } from '../../helpers/eventually.ts';
import { PASSWORD, startWithAccounts } from '../../helpers/http/accounts.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('logins beside many others');

/** Comparisons wait for `release` while the gate is closed. */
class GatedPasswords extends Passwords {
  readonly waiting: (() => void)[] = [];
  isClosed = false;

  constructor() {
    super({ ...systemClock, now: () => 0 }, 4);
  }

  protected override async compare(password: string, hash: string): Promise<boolean> {
    if (this.isClosed) await new Promise<void>((resolve) => this.waiting.push(resolve));
    return super.compare(password, hash);
  }

  /** Ends all comparisons, and further ones at once. */
  open(): void {
    this.isClosed = false;
    for (const end of this.waiting.splice(0)) end();
  }
}

const VICTIM = '198.51.100.7';

async function door() {
  const passwords = new GatedPasswords();
  const clock = { nowMs: 1_000 };
  const monotonic = { ...systemClock, now: () => clock.nowMs };
  const app = await startWithAccounts({ passwords, clock: monotonic, trustedProxies: ['127.0.0.1/32'] });
  for (const name of ['eve', 'mallory']) await app.createUser(name);
  let answered = 0;
  /** A login through the trusted proxy. An address of undefined is that of this machine. */
  const login = async (username: string, from: string | undefined, password = PASSWORD) => {
    const headers = { 'x-forwarded-for': from ?? '127.0.0.1' };
    const { outcome } = await app.ask('POST', '/auth/login', { body: { username, password }, headers });
    answered += 1;
    return outcome;
  };
  /** Sends more logins than the queue holds, and waits until the surplus is refused. */
  const flood = async (one: (index: number) => Promise<string>, count = 60) => {
    passwords.isClosed = true;
    const before = answered;
    const outcomes = Array.from({ length: count }, (_, index) => one(index));
    await eventually(
      async () => answered - before,
      (refused) => refused >= count - 22,
    );
    return outcomes;
  };
  return { app, clock, passwords, login, flood, answered: () => answered };
}

const network = (index: number) => `203.0.113.${index}`;

for (const [title, attack] of [
  ['one user logs in from one address', () => ['eve', '203.0.113.1', PASSWORD]],
  ['one user logs in from many addresses', (index: number) => ['eve', network(index), PASSWORD]],
  ['one user is guessed from many addresses', (index: number) => ['eve', network(index), 'wrong horse']],
  [
    'unknown users are tried from one address',
    (index: number) => [`u${index}`, '203.0.113.1', 'wrong horse'],
  ],
  [
    'two users log in from two addresses',
    (index: number) => [index % 2 ? 'eve' : 'mallory', network(index % 2), PASSWORD],
  ],
  [
    'users are tried from a network of IPv6',
    (index: number) => [`u${index}`, `2001:db8::${index}`, 'wrong horse'],
  ],
] as const) {
  test(`a first login succeeds while ${title}`, async () => {
    const { app, passwords, login, flood } = await door();
    const flooding = await flood((index) => {
      const [username = '', from, password] = attack(index);
      return login(username, from, password);
    });
    const victim = login('ada', VICTIM);
    passwords.open();
    assert.is(await victim, '200');
    const refused = (await Promise.all(flooding)).filter((one) => one === '429 TOO_MANY_ATTEMPTS');
    assert.ok(refused.length >= 38);
    await app.close();
  });
}

test('the next hash is that of the victim, not of a caller with many before it', async () => {
  const { app, passwords, login, flood, answered } = await door();
  const flooding = await flood((index) => login('eve', network(index)));
  const victim = login('ada', VICTIM);
  // Its arrival refuses one more of the others.
  await eventually(
    async () => answered(),
    (refused) => refused === 39,
  );
  passwords.waiting.shift()?.();
  await eventually(
    async () => passwords.waiting.length,
    (held) => held === 2,
  );
  passwords.waiting.pop()?.();
  assert.is(await victim, '200');
  passwords.open();
  await Promise.all(flooding);
  await app.close();
});

for (const [title, username, from, isKnown] of [
  ['a user who logged in from there before', 'ada', VICTIM, true],
  ['an admin on this machine', 'admin', undefined, false],
] as const) {
  test(`${title} is served while many users are tried from many addresses`, async () => {
    const { app, passwords, login, flood } = await door();
    if (isKnown) assert.is(await login(username, from), '200');
    const flooding = await flood((index) => login(`u${index}`, network(index), 'wrong horse'));
    const victim = login(username, from);
    passwords.open();
    assert.is(await victim, '200');
    await Promise.all(flooding);
    await app.close();
  });
}

test('an admin creates users and changes passwords while many users are tried from many addresses', async () => {
  const { app, passwords, login, flood } = await door();
  const flooding = await flood((index) => login(`u${index}`, network(index), 'wrong horse'));
  const created = app.as(app.admin, 'POST', '/auth/users', {
    body: { username: 'new', email: 'new@localhost', password: PASSWORD },
  });
  passwords.open();
  const { status, body } = await created;
  assert.is(status, 201);
  await Promise.all(flooding);
  const again = await flood((index) => login(`u${index}`, `192.0.2.${index}`, 'wrong horse'));
  const change = { password: 'another horse' };
  const changed = app.as(app.admin, 'PATCH', `/auth/users/${body.id}`, { body: change });
  passwords.open();
  assert.is((await changed).status, 200);
  await Promise.all(again);
  await app.close();
});

test('a refused login costs no query', async () => {
  const { app, passwords, login, flood } = await door();
  const find = mock.method(app.store.accounts, 'findUserByName');
  const flooding = await flood((index) => login('eve', network(index)));
  assert.is(find.mock.callCount(), 2);
  passwords.open();
  await Promise.all(flooding);
  assert.is(find.mock.callCount(), 22);
  find.mock.restore();
  await app.close();
});

test('an address with sixty failures may log in as a user that did not fail from there', async () => {
  const { app, clock, login } = await door();
  const from = '203.0.113.1';
  assert.is(await login('eve', from, 'wrong horse'), '401 INVALID_CREDENTIALS');
  for (let user = 1; user < 60; user += 1)
    assert.is(await login(`u${user}`, from, 'wrong horse'), '401 INVALID_CREDENTIALS');
  for (let attempt = 0; attempt < 3; attempt += 1) assert.is(await login('ada', from), '200', 'no failure');
  assert.is(await login('eve', from), '429 TOO_MANY_ATTEMPTS', 'failed from there');
  assert.is(await login('eve', VICTIM), '200', 'from another address');
  // The same answer, so that it does not show which users exist.
  assert.is(await login('nobody', from, 'wrong horse'), '429 TOO_MANY_ATTEMPTS', 'an unknown user');
  assert.is(await login('mallory', from, 'wrong horse'), '429 TOO_MANY_ATTEMPTS', 'a wrong password');
  assert.is(await login('mallory', from), '429 TOO_MANY_ATTEMPTS', 'which is counted');
  assert.is(await login('ada', from, 'wrong horse'), '429 TOO_MANY_ATTEMPTS');
  assert.is(await login('ada', from), '429 TOO_MANY_ATTEMPTS');
  clock.nowMs += 60_000;
  assert.is(await login('eve', from), '200');
  assert.is(await login('mallory', from, 'wrong horse'), '401 INVALID_CREDENTIALS');
  await app.close();
});

test('names that are refused by a full queue do not displace counted failures', async () => {
  const { app, passwords, login, flood } = await door();
  for (let attempt = 0; attempt < 10; attempt += 1) await login('eve', '203.0.113.1', 'wrong horse');
  const flooding = await flood((index) => login(`u${index}`, '203.0.113.1', 'wrong horse'), 400);
  passwords.open();
  await Promise.all(flooding);
  assert.is(await login('eve', '203.0.113.1'), '429 TOO_MANY_ATTEMPTS');
  await app.close();
});

test.run();
