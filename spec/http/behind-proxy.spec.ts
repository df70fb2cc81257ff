// What callers behind a proxy may do, trusted or not: log in while others fail, and change accounts or register commands while
// authentication is off.

import * as assert from 'uvu/assert';

import { PASSWORD, startWithAccounts } from '../helpers/http/accounts.ts';
import { startApp } from '../helpers/http/app.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('behind a proxy');
const TRUSTED = ['127.0.0.0/8', '::1/128'];
const FAILURES = 65;

/** Fails logins of many names as this client, then returns logins of `ada` as that client. */
async function afterFailures(trustedProxies: readonly string[], failing: string, then: string) {
  const app = await startWithAccounts({ trustedProxies });
  const login = async (username: string, password: string, from: string) => {
    const ask = { body: { username, password }, headers: { 'x-forwarded-for': from } };
    return (await app.ask('POST', '/auth/login', ask)).outcome;
  };
  for (let index = 0; index < FAILURES; index += 1) await login(`name-${index}`, 'wrong horse', failing);
  const right = await login('ada', PASSWORD, then);
  const unknown = await login('nobody', 'wrong horse', then);
  await app.close();
  return [right, unknown];
}

test('sixty failures of others behind an untrusted proxy, which share its address, lock out no user', async () => {
  const found = await afterFailures([], '203.0.113.1', '203.0.113.2');
  assert.equal(found, ['200', '429 TOO_MANY_ATTEMPTS']);
});

test('sixty failures of one client of a trusted proxy do not limit another', async () => {
  const found = await afterFailures(TRUSTED, '203.0.113.1', '203.0.113.2');
  assert.equal(found, ['200', '401 INVALID_CREDENTIALS']);
  const same = await afterFailures(TRUSTED, '203.0.113.1', '203.0.113.1');
  assert.equal(same, ['200', '429 TOO_MANY_ATTEMPTS']);
});

const REMOTE = '203.0.113.9';
for (const [who, trustedProxies, headers, isLocal] of [
  ['a caller on this machine', [], {}, true],
  ['an untrusted proxy', [], { 'x-forwarded-for': REMOTE }, false],
  ['an untrusted proxy that claims a local client', [], { 'x-forwarded-for': '127.0.0.1' }, false],
  ['an untrusted proxy that names only itself', [], { via: '1.1 proxy' }, false],
  ['a trusted proxy of a remote client', TRUSTED, { 'x-forwarded-for': REMOTE }, false],
  [
    'a trusted proxy of a client that claims to be local',
    TRUSTED,
    { 'x-forwarded-for': `127.0.0.1, ${REMOTE}` },
    false,
  ],
  ['a trusted proxy that names no client', TRUSTED, {}, false],
  ['a trusted proxy of a local client', TRUSTED, { 'x-forwarded-for': '127.0.0.1' }, true],
] as const) {
  test(`without authentication ${who} may ${isLocal ? '' : 'not '}change accounts and register commands`, async () => {
    const app = await startApp({ trustedProxies });
    const user = { username: 'new', email: 'new@localhost', password: PASSWORD };
    const created = await app.ask('POST', '/auth/users', { body: user, headers });
    const command = { template_name: 'made', instance: { id: 'one', command: 'true' } };
    const registered = await app.ask('POST', '/gateway/register', { body: command, headers });
    assert.equal([created.status, registered.status], isLocal ? [201, 201] : [403, 403]);
    await app.close();
  });
}

test.run();
