import { createHmac } from 'node:crypto';
import { SignJWT } from 'jose';
import * as assert from 'uvu/assert';
import { newUser } from '../../src/auth/accounts.ts';
import { createTokens } from '../../src/auth/tokens.ts';
import { suite } from '../helpers/suite.ts';
import { codeOf, LIFETIME_MS, SECRET, START_MS, stoppedClock } from './auth-harness.ts';

const user = newUser({ username: 'ada', email: 'ada@localhost', role: 'user' }, 'hash', START_MS - 5_000);
const seconds = Math.floor(START_MS / 1000);

const test = suite('tokens');

test('carry the claims that are promised, and are read back', async () => {
  const { tokens } = made();
  const { accessToken, expiresInSeconds } = await tokens.issue(user);
  assert.is(expiresInSeconds, 3_600);
  const { jti, ...claims } = claimsOf(accessToken);
  assert.match(String(jti), /^[0-9a-f-]{36}$/);
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
  });
});

test('end at the second that they say', async () => {
  const { tokens, clock } = made();
  const { accessToken } = await tokens.issue(user);
  clock.nowMs = (seconds + 3_600) * 1_000 - 1;
  assert.is(await codeOf(() => tokens.read(accessToken)), 'none');
  clock.pass(1);
  assert.is(await codeOf(() => tokens.read(accessToken)), 'TOKEN_EXPIRED');
});

test('every other token is refused', async () => {
  const { tokens } = made();
  const { accessToken } = await tokens.issue(user);
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
  const hs512 = new SignJWT({ ...claims }).setProtectedHeader({ alg: 'HS512' });
  const table: Record<string, string> = {
    'another secret': sign(jwt, claims, new TextEncoder().encode('another secret, also long enough')),
    'alg none, no signature': `${encode({ alg: 'none' })}.${body}.`,
    'alg none, the old signature': `${encode({ alg: 'none' })}.${body}.${signature}`,
    'alg NONE': `${encode({ alg: 'NONE' })}.${body}.`,
    HS512: await hs512.sign(Buffer.concat([SECRET, SECRET])),
    'HS512 with our secret': sign({ alg: 'HS512' }, claims),
    RS256: sign({ alg: 'RS256' }, claims),
    'a key of its own in the header': sign(
      { alg: 'HS256', jwk: { kty: 'oct', k: 'AAAA' } },
      claims,
      Buffer.alloc(3),
    ),
    'an unknown critical extension': sign({ ...jwt, crit: ['b64'], b64: false }, claims),
    'not yet valid': sign(jwt, { ...claims, nbf: seconds + 60 }),
    'another issuer': sign(jwt, { ...claims, iss: 'somebody' }),
    'an expiry that is a text': sign(jwt, { ...claims, exp: String(claims.exp) }),
    'a subject that is a number': sign(jwt, { ...claims, sub: 5 }),
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
    'a body that is no JSON': `${head}.!!!.${signature}`,
    empty: '',
    dots: '..',
    'an expired one of another secret': sign(jwt, { ...claims, exp: 1 }, Buffer.alloc(32, 7)),
  };
  for (const [what, token] of Object.entries(table))
    assert.is(await codeOf(() => tokens.read(token)), 'INVALID_CREDENTIALS', what);
  assert.is(
    await codeOf(() => tokens.read(sign(jwt, claims))),
    'none',
    'the table signs like the real thing',
  );
  assert.is(await codeOf(() => tokens.read(sign(jwt, { ...claims, exp: 1 }))), 'TOKEN_EXPIRED');
});

test('another size of HMAC with the right secret is refused, however long the secret is', async () => {
  const secret = Buffer.alloc(128, 'long enough for every HMAC');
  const tokens = createTokens({ secret, lifetimeMs: LIFETIME_MS, now: () => START_MS });
  const { accessToken } = await tokens.issue(user);
  for (const alg of ['HS256', 'HS384', 'HS512']) {
    const token = await new SignJWT(claimsOf(accessToken)).setProtectedHeader({ alg }).sign(secret);
    assert.is(await codeOf(() => tokens.read(token)), alg === 'HS256' ? 'none' : 'INVALID_CREDENTIALS', alg);
  }
});

test('a secret under 32 bytes is no secret', () => {
  const options = { lifetimeMs: LIFETIME_MS, now: Date.now };
  assert.throws(() => createTokens({ ...options, secret: new Uint8Array(31) }), /fewer than 32 bytes/);
  assert.not.throws(() => createTokens({ ...options, secret: new Uint8Array(32) }));
});

function made() {
  const clock = stoppedClock();
  return { clock, tokens: createTokens({ secret: SECRET, lifetimeMs: LIFETIME_MS, now: clock.now }) };
}

function claimsOf(token: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
}

test.run();
