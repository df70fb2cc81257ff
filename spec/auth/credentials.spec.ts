// Credentials: passwords, API keys, tokens, and the permissions of users and keys.

import { createHmac, hash } from 'node:crypto';
import { mock } from 'node:test';
import { SignJWT } from 'jose';
import * as assert from 'uvu/assert';
import { newUser } from '../../src/auth/accounts/accounts.ts';
import { isSecretOf, KeyUse, newKey, parseKey } from '../../src/auth/accounts/api-keys.ts';
import { Passwords } from '../../src/auth/accounts/passwords.ts';
import { Tokens } from '../../src/auth/accounts/tokens.ts';
import { keyPrincipal, statusOf } from '../../src/auth/principals.ts';
import { GatewayProofs } from '../../src/auth/secrets/gateway-proofs.ts';
import {
  type ApiKey,
  passwordIssue,
  ROLES,
  SCOPES,
  type Scope,
  type User,
} from '../../src/domain/accounts/account.ts';
import { systemClock } from '../../src/domain/time/clock.ts';
import { MemoryStore } from '../../src/persistence/memory/memory-store.ts';
import { suite } from '../helpers/suite.ts';
import { passTurns } from '../helpers/time/turns.ts';
import { CountedPasswords, codeOf, LIFETIME_MS, SECRET, START_MS } from './auth-harness.ts';

const test = suite('passwords');

test('a hash is bcrypt of the given cost, salted, and matches only its password', async () => {
  const passwords = new Passwords(systemClock, 4);
  const hash = await passwords.hash('correct horse');
  assert.match(hash, /^\$2b\$04\$.{53}$/);
  assert.is.not(await passwords.hash('correct horse'), hash);
  assert.is(await passwords.matches('correct horse', hash), true);
  assert.is(await passwords.matches('correct horse ', hash), false);
  assert.is(await passwords.matches('Correct horse', hash), false);
});

test('the default cost is 12', async () => {
  assert.match(await new Passwords(systemClock).hash('correct horse'), /^\$2b\$12\$/);
});

test('a password longer than 72 bytes matches nothing, although bcrypt reads only the first 72', async () => {
  const passwords = new CountedPasswords();
  const password = 'x'.repeat(72);
  const hash = await passwords.hash(password);
  assert.is(await passwords.matches(password, hash), true);
  assert.is(await passwords.matches(`${password}y`, hash), false);
  assert.is(passwords.compared.length, 2, 'compared all the same');
});

test('an invalid new password is one validation issue, which does not repeat it', () => {
  for (const [password, type] of [
    ['1234567', 'string_too_short'],
    ['x'.repeat(73), 'string_too_long'],
    ['1234\u00005678', 'string_unicode'],
    ['12345678', undefined],
  ] as const) {
    const issue = passwordIssue(password);
    assert.is(issue?.type, type);
    assert.not.ok(issue?.msg.includes(password));
  }
});

test.run();

const keys = suite('API keys');

keys('a new key contains its id, and is stored as the SHA-256 of its secret', () => {
  const { key, id, secretHash } = newKey();
  assert.match(key, /^sd_[0-9a-f]{16}_[A-Za-z0-9_-]{43}$/);
  const parts = parseKey(key);
  assert.is(parts?.id, id);
  assert.is(hash('sha256', parts?.secret ?? ''), secretHash);
  assert.not.ok(secretHash.includes(parts?.secret ?? ''));
});

keys('a text in any other form is not a key', () => {
  const { key } = newKey();
  for (const text of [
    ...['', 'sd_', key.slice(1), key.slice(0, -1), `${key}A`, `${key}\n`, ` ${key}`, key.toUpperCase()],
    ...[key.replace('sd_', 'sk_'), key.replace(/.$/, '='), key.replace(/.$/, 'é'), key.replace('_', '-')],
  ])
    assert.is(parseKey(text), undefined, JSON.stringify(text));
});

keys('only the secret itself matches its hash, and nothing matches a broken hash', () => {
  const { key, secretHash } = newKey();
  const secret = parseKey(key)?.secret ?? '';
  assert.is(isSecretOf(secret, secretHash), true);
  assert.is(isSecretOf(parseKey(newKey().key)?.secret ?? '', secretHash), false);
  for (const broken of ['', 'zz', secretHash.slice(2), `${secretHash}00`])
    assert.is(isSecretOf(secret, broken), false, broken);
});

const iso = (ms: number): string => new Date(ms).toISOString();

keys.before.each(() => mock.timers.enable({ apis: ['setTimeout'] }));
keys.after.each(() => mock.timers.reset());

keys('the last use of each key is written once a minute', async () => {
  const { keyUse, written } = made();
  for (let use = 0; use < 100; use += 1) keyUse.used(`key${use % 2}`, START_MS + use);
  mock.timers.tick(59_999);
  assert.equal(written, []);
  mock.timers.tick(1);
  await passTurns(5);
  assert.equal(written, [
    new Map([
      ['key0', iso(START_MS + 98)],
      ['key1', iso(START_MS + 99)],
    ]),
  ]);
  mock.timers.tick(600_000);
  await passTurns(5);
  assert.is(written.length, 1, 'nothing was used since');
  keyUse.used('key0', START_MS + 700);
  await keyUse.flush();
  assert.equal(written[1], new Map([['key0', iso(START_MS + 700)]]));
});

keys('the last use is kept while the database is unavailable, and the newest use wins', async () => {
  const { keyUse, written, database } = made();
  database.isAway = true;
  keyUse.used('a', START_MS);
  keyUse.used('b', START_MS);
  const flushing = keyUse.flush();
  keyUse.used('a', START_MS + 5);
  await flushing;
  database.isAway = false;
  mock.timers.tick(60_000);
  await passTurns(5);
  assert.equal(written, [
    new Map([
      ['a', iso(START_MS + 5)],
      ['b', iso(START_MS)],
    ]),
  ]);
});

keys('the last use of up to 10,000 keys is kept, and written at close', async () => {
  const { keyUse, written } = made();
  for (let key = 0; key < 10_005; key += 1) keyUse.used(`key${key}`, START_MS);
  keyUse.used('key9', START_MS + 1);
  await keyUse.close();
  const [uses] = written;
  assert.equal([uses?.size, uses?.get('key9')], [10_000, iso(START_MS + 1)]);
});

function made() {
  const written: ReadonlyMap<string, string>[] = [];
  const database = { isAway: false };
  const touchApiKeys = async (uses: ReadonlyMap<string, string>): Promise<void> => {
    if (database.isAway) throw new Error('away');
    written.push(uses);
  };
  return { keyUse: new KeyUse({ touchApiKeys }, systemClock), written, database };
}

keys.run();

const user = newUser({ username: 'ada', email: 'ada@localhost', role: 'user' }, 'hash', START_MS - 5_000);
const seconds = Math.floor(START_MS / 1000);

const tokenSuite = suite('tokens');
const tokens = new Tokens({ secrets: [SECRET], lifetimeMs: LIFETIME_MS, wall: () => START_MS });

tokenSuite('carry the documented claims, and are read back', async () => {
  const { accessToken, expiresInSeconds } = await tokens.issue(user, 'password');
  assert.is(expiresInSeconds, 3_600);
  const { jti, ...claims } = claimsOf(accessToken);
  assert.match(String(jti), /^[0-9a-f]{16}-[0-9a-f-]{36}$/);
  assert.equal(claims, {
    sub: user.id,
    role: 'user',
    scope: 'gateway:read tools:call',
    iss: 'stagedoor',
    iat: seconds,
    exp: seconds + 3_600,
    credentials_at: START_MS - 5_000,
  });
  assert.equal(await tokens.read(accessToken), {
    userId: user.id,
    id: jti,
    credentialsAtMs: START_MS - 5_000,
    expiresAtMs: (seconds + 3_600) * 1_000,
    signedInBy: 'password',
  });
});

tokenSuite('are refused in any other form', async () => {
  const { accessToken } = await tokens.issue(user, 'password');
  const claims = claimsOf(accessToken);
  const [head = '', body = '', signature = ''] = accessToken.split('.');
  const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const sign = (header: object, payload: object, secret: Uint8Array = SECRET): string => {
    const text = `${encode(header)}.${encode(payload)}`;
    return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
  };
  const jwt = { alg: 'HS256', typ: 'JWT' };
  const without = (claim: string): object =>
    Object.fromEntries(Object.entries(claims).filter(([name]) => name !== claim));
  const table: Record<string, string> = {
    'another secret': sign(jwt, claims, new TextEncoder().encode('another secret, also long enough')),
    'alg none, no signature': `${encode({ alg: 'none' })}.${body}.`,
    'alg none, the old signature': `${encode({ alg: 'none' })}.${body}.${signature}`,
    'alg NONE': `${encode({ alg: 'NONE' })}.${body}.`,
    RS256: sign({ alg: 'RS256' }, claims),
    'a key in the header': sign({ alg: 'HS256', jwk: { kty: 'oct', k: 'AAAA' } }, claims, Buffer.alloc(3)),
    'an unknown critical extension': sign({ ...jwt, crit: ['b64'], b64: false }, claims),
    'not yet valid': sign(jwt, { ...claims, nbf: seconds + 60 }),
    'another issuer': sign(jwt, { ...claims, iss: 'somebody' }),
    'an expiry that is a string': sign(jwt, { ...claims, exp: String(claims.exp) }),
    'a subject that is a number': sign(jwt, { ...claims, sub: 5 }),
    'an id that is a number': sign(jwt, { ...claims, jti: 5 }),
    'a subject with a NUL': sign(jwt, { ...claims, sub: 'a\0b' }),
    'a subject that is half a character': sign(jwt, { ...claims, sub: '\ud800' }),
    'a subject that is too long': sign(jwt, { ...claims, sub: 'a'.repeat(65) }),
    'an id with a NUL': sign(jwt, { ...claims, jti: 'a\0b' }),
    'no stamp': sign(jwt, without('credentials_at')),
    'no expiry': sign(jwt, without('exp')),
    'no subject': sign(jwt, without('sub')),
    'no issuer': sign(jwt, without('iss')),
    'no id': sign(jwt, without('jti')),
    'no time of issue': sign(jwt, without('iat')),
    'a changed body': `${head}.${encode({ ...claims, role: 'admin' })}.${signature}`,
    'a changed signature': `${head}.${body}.${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`,
    'a cut signature': `${head}.${body}.${signature.slice(0, -2)}`,
    'no signature': `${head}.${body}`,
    'four parts': `${accessToken}.x`,
    'a body that is not JSON': `${head}.!!!.${signature}`,
    empty: '',
    dots: '..',
    'an expired token of another secret': sign(jwt, { ...claims, exp: 1 }, Buffer.alloc(32, 7)),
  };
  for (const [what, token] of Object.entries(table))
    assert.is(await codeOf(() => tokens.read(token)), 'INVALID_CREDENTIALS', what);
  const found = await codeOf(() => tokens.read(sign(jwt, claims)));
  assert.is(found, 'none', 'the table signs like the real thing');
  assert.is(await codeOf(() => tokens.read(sign(jwt, { ...claims, exp: 1 }))), 'TOKEN_EXPIRED');
});

tokenSuite('with another size of HMAC are refused, even with the right secret', async () => {
  const secret = Buffer.alloc(128, 'long enough for every HMAC');
  const tokens = new Tokens({ secrets: [secret], lifetimeMs: LIFETIME_MS, wall: () => START_MS });
  const { accessToken } = await tokens.issue(user, 'password');
  for (const alg of ['HS256', 'HS384', 'HS512']) {
    const token = await new SignJWT(claimsOf(accessToken)).setProtectedHeader({ alg }).sign(secret);
    assert.is(await codeOf(() => tokens.read(token)), alg === 'HS256' ? 'none' : 'INVALID_CREDENTIALS', alg);
  }
});

tokenSuite('are signed with the first secret and verified with all, each with its proof', async () => {
  const [first, next] = [SECRET, new TextEncoder().encode('the next secret, long enough as well')] as const;
  const options = { lifetimeMs: LIFETIME_MS, wall: () => START_MS };
  const stages = [[first], [first, next], [next, first], [next]] as const;
  const nodes = stages.map((secrets) => new Tokens({ ...options, secrets }));
  const { accounts } = new MemoryStore();
  const proofs = stages.map((secrets) => new GatewayProofs(secrets, accounts, systemClock.now));
  const outcomes: string[][] = [];
  for (const [at, node] of nodes.entries()) {
    const { accessToken, id } = await node.issue(user, 'password');
    outcomes.push(await Promise.all(nodes.map((other) => codeOf(() => other.read(accessToken)))));
    const same = proofs.map((other) => other.secretOf(id) === proofs[at]?.secretOf(id));
    assert.equal(
      same,
      outcomes[at]?.map((code) => code === 'none'),
    );
  }
  const refused = 'INVALID_CREDENTIALS';
  assert.equal(outcomes, [
    ['none', 'none', 'none', refused],
    ['none', 'none', 'none', refused],
    [refused, 'none', 'none', 'none'],
    [refused, 'none', 'none', 'none'],
  ]);
});

tokenSuite('need a secret of at least 32 bytes', () => {
  const options = { lifetimeMs: LIFETIME_MS, wall: Date.now };
  assert.throws(
    () => new Tokens({ ...options, secrets: [new Uint8Array(32), new Uint8Array(31)] }),
    /fewer than 32 bytes/,
  );
  assert.not.throws(() => new Tokens({ ...options, secrets: [new Uint8Array(32)] }));
});

function claimsOf(token: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
}

tokenSuite.run();

const principals = suite('principals');

const limits = { userHourlyLimit: 7, apiKeyHourlyLimit: 9 };
const at = '2030-01-01T00:00:00.000Z';
const admin: User = { ...user, role: 'admin' };
const key: ApiKey = { id: 'k', name: 'robot', permissions: ['tools:call'], secretHash: 'y', createdAt: at };

principals('a key has the scopes that both its permissions and the current role of its owner allow', () => {
  const scopesOf = (permissions: readonly Scope[], owner: User | undefined) =>
    keyPrincipal({ ...key, permissions }, owner, limits).scopes;
  const mayRole = { admin: [...SCOPES], user: ['gateway:read', 'tools:call'] };
  for (let bits = 1; bits < 2 ** SCOPES.length; bits += 1) {
    const permissions = SCOPES.filter((_, index) => bits & (1 << index));
    const wanted: readonly Scope[] = permissions.includes('admin') ? SCOPES : permissions;
    assert.equal(scopesOf(permissions, undefined), new Set(wanted), 'the operator made it');
    for (const role of ROLES) {
      const expected = wanted.filter((scope) => mayRole[role].includes(scope));
      const found = scopesOf(permissions, { ...user, role });
      assert.equal(found, new Set(expected), `${permissions} of ${role}`);
    }
  }
});

principals('a key may use the templates that both it and its owner may use', () => {
  const templatesOf = (own?: string[], owners?: string[]) =>
    keyPrincipal(
      { ...key, ...(own && { templates: own }) },
      { ...admin, ...(owners && { templates: owners }) },
      limits,
    ).templates;
  assert.is(templatesOf(), undefined);
  assert.equal(templatesOf(['a', 'b']), new Set(['a', 'b']));
  assert.equal(templatesOf(undefined, ['b']), new Set(['b']));
  assert.equal(templatesOf(['a', 'b'], ['b', 'c']), new Set(['b']));
  assert.equal(templatesOf(['a'], ['c']), new Set());
});

principals('the stamp of a key is the stamp of its owner, and ends when the key expires', () => {
  const { id: userId } = user;
  const { stamp } = statusOf(user);
  assert.equal(statusOf(user), { userId, stamp, endsAtMs: Number.POSITIVE_INFINITY });
  const expiring = { ...key, ownerId: userId, expiresAt: at };
  assert.equal(statusOf(user, expiring), { userId, stamp, endsAtMs: Date.parse(at) });
  assert.equal(statusOf(undefined, key), { stamp: '', endsAtMs: Number.POSITIVE_INFINITY });
});

principals.run();
