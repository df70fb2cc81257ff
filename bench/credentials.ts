// `node bench/credentials.ts`: what the check of a known credential costs per call, for an API key, a login token and an access token.
// The times of one round are those of all three, in turn; printed is the least of the rounds, which other programs disturb least.

import { generateKeyPairSync } from 'node:crypto';
import { SignJWT } from 'jose/jwt/sign';
import { NEVER } from 'rxjs';
import { CHANGES_ONLY } from '../spec/helpers/http/anonymous-auth.ts';
import { Passwords } from '../src/auth/accounts/passwords.ts';
import { composeAuth } from '../src/auth/auth.ts';
import type { Credentials } from '../src/auth/credentials.ts';
import { rowOfGrant } from '../src/auth/grants/grant-rows.ts';
import { GatewayAddress } from '../src/domain/accounts/resource.ts';
import { systemClock } from '../src/domain/time/clock.ts';
import { MemoryStore } from '../src/persistence/memory/memory-store.ts';

const CALLS = 20_000;
const ROUNDS = 60;
const BASE = 'https://gateway.example';
const kid = 'key-1';
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const store = new MemoryStore();
const auth = composeAuth({
  ...{ authEnabled: true, store, secrets: [Buffer.from('the secret of the bench, long enough')] },
  ...{ tokenLifetimeMs: 3_600_000, clock: systemClock, storeChanges$: NEVER, audit: CHANGES_ONLY },
  ...{ userHourlyLimit: 1_000, apiKeyHourlyLimit: 5_000, passwords: new Passwords(systemClock, 4) },
  oauth: {
    store: store.oauth,
    keys: { publicKeys: async () => new Map([[kid, publicKey]]) },
    address: new GatewayAddress(BASE, () => []),
  },
  log: { info: () => {}, warn: () => {} },
});
const password = 'correct horse battery';
const user = await auth.accounts.createUser({ username: 'ada', email: 'a@b', password, role: 'user' });
const { key } = await auth.accounts.createApiKey({ name: 'bench', permissions: ['tools:call'] });
const nowSeconds = Math.floor(Date.now() / 1_000);
const grant = {
  id: '0b8f61f6-3f3c-4f0e-8f0a-6f2f4b6f2f10',
  userId: user.id,
  clientId: '5ed1b7a2-14f7-4c5e-9d1c-0a54f0a7f3aa',
};
await store.oauth.save(
  rowOfGrant({
    ...grant,
    ...{ clientName: 'Bench', resource: `${BASE}/mcp/files`, scopes: ['tools:call', 'gateway:read'] },
    createdAt: new Date().toISOString(),
    expiresAt: new Date(Date.now() + 86_400_000).toISOString(),
  }),
);
const token = await new SignJWT({
  ...{ iss: BASE, aud: `${BASE}/mcp/files`, sub: user.id, client_id: grant.clientId, grant_id: grant.id },
  ...{ scope: 'tools:call gateway:read', iat: nowSeconds, exp: nowSeconds + 3_600, jti: 'x'.repeat(43) },
})
  .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid })
  .sign(privateKey);
const login = await auth.logins.login({ username: 'ada', password, address: '127.0.0.1' });
const cases: readonly (readonly [string, Credentials])[] = [
  ['API key', { apiKey: key }],
  ['API key as a bearer', bearer(key)],
  ['login token', bearer(login.accessToken)],
  [`access token of ${token.length} characters`, bearer(token)],
];
const least = cases.map(() => Number.POSITIVE_INFINITY);
const address = () => '127.0.0.1';
for (let round = 0; round < ROUNDS; round += 1)
  for (const [index, [, credentials]] of cases.entries()) {
    await auth.authenticate(credentials, address);
    const beganMs = performance.now();
    for (let call = 0; call < CALLS; call += 1) auth.authenticate(credentials, address);
    least[index] = Math.min(least[index] ?? 0, ((performance.now() - beganMs) * 1_000) / CALLS);
  }
for (const [index, [name]] of cases.entries()) console.log(`${name}: ${least[index]?.toFixed(2)} us`);
await auth.close();

/** As a parser makes it: one string, not a concatenation. */
function bearer(credential: string): Credentials {
  return { authorization: Buffer.from(`Bearer ${credential}`).toString('latin1') };
}
