// Access tokens of MCP clients: which are accepted, with which rights, and what ends them.

import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { SignJWT } from 'jose/jwt/sign';
import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { Passwords } from '../../../src/auth/accounts/passwords.ts';
import { composeAuth } from '../../../src/auth/auth.ts';
import { rowOfGrant } from '../../../src/auth/grants/grant-rows.ts';
import type { Role, Scope } from '../../../src/domain/accounts/account.ts';
import { countedIdOf, type Principal } from '../../../src/domain/accounts/principal.ts';
import { GatewayAddress } from '../../../src/domain/accounts/resource.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import type { RevisionChange } from '../../../src/persistence/revision-watch.ts';
import { CHANGES_ONLY } from '../../helpers/http/anonymous-auth.ts';
import { errorOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { passTurns } from '../../helpers/time/turns.ts';
import { stoppedClock } from '../auth-harness.ts';

const test = suite('access tokens');

const base = 'https://gateway.example';
const secret = Buffer.from('the secret of the specs, long enough');
const kid = 'key-1';
const pair = (): { privateKey: KeyObject; publicKey: KeyObject } =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' });
const ours = pair();

interface TokenParts {
  readonly claims?: Record<string, unknown>;
  readonly header?: Record<string, unknown>;
  readonly key?: KeyObject | Uint8Array;
}

async function setup(role: Role = 'user', templates?: readonly string[]) {
  const store = new MemoryStore();
  const clock = stoppedClock();
  const storeChanges$ = new Subject<RevisionChange>();
  const auth = composeAuth({
    ...{ authEnabled: true, store, secrets: [secret], tokenLifetimeMs: 3_600_000, clock, storeChanges$ },
    ...{ userHourlyLimit: 1_000, apiKeyHourlyLimit: 5_000, audit: CHANGES_ONLY },
    passwords: new Passwords(systemClock, 4),
    oauth: {
      store: store.oauth,
      keys: { publicKeys: async () => new Map([[kid, ours.publicKey]]) },
      address: new GatewayAddress(base, () => []),
    },
    log: { info: () => {}, warn: () => {} },
  });
  const user = await auth.accounts.createUser({
    ...{ username: 'ada', email: 'a@b', password: 'correct horse', role, templates },
  });
  const grantOf = async (id: string, scopes: readonly Scope[] = ['tools:call', 'gateway:read']) => {
    const at = new Date(clock.wall()).toISOString();
    const expiresAt = new Date(clock.wall() + 180 * 86_400_000).toISOString();
    const client = { clientId: 'client-1', clientName: 'Claude Code', resource: `${base}/mcp/files` };
    await store.oauth.save(rowOfGrant({ id, userId: user.id, ...client, scopes, createdAt: at, expiresAt }));
    return id;
  };
  const token = async (
    grantId: string,
    { claims = {}, header = {}, key = ours.privateKey }: TokenParts = {},
  ) => {
    const nowSeconds = Math.floor(clock.wall() / 1000);
    const all = {
      ...{ iss: base, aud: `${base}/mcp/files`, sub: user.id, client_id: 'client-1', grant_id: grantId },
      ...{ scope: 'tools:call gateway:read', iat: nowSeconds, exp: nowSeconds + 3_600 },
      ...claims,
    };
    const jwt = new SignJWT(all).setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid, ...header });
    return `Bearer ${await jwt.sign(key)}`;
  };
  const of = async (authorization: string): Promise<Principal> => auth.authenticate({ authorization });
  return { store, clock, storeChanges$, auth, user, grantOf, token, of };
}

test('are of the grant, with the rights that token, grant, user and audience have in common', async () => {
  const { grantOf, token, of, user } = await setup('user', ['files', 'other']);
  const id = await grantOf('grant-1');
  const principal = await of(await token(id));
  assert.is(principal.id, `grant:grant-1@${user.id}`);
  assert.is(countedIdOf(principal.id), `user:${user.id}`);
  assert.equal([principal.kind, principal.name, principal.userId], ['user', 'ada', user.id]);
  assert.equal([principal.client?.name, principal.client?.audience], ['Claude Code', '/mcp/files']);
  assert.equal([...principal.scopes], ['tools:call', 'gateway:read']);
  assert.equal([...(principal.templates ?? [])], ['files']);
  const narrow = await of(await token(id, { claims: { scope: 'tools:call openid', aud: `${base}/mcp` } }));
  assert.equal([...narrow.scopes], ['tools:call']);
  assert.equal([...(narrow.templates ?? [])], ['files', 'other']);
  const foreign = await of(await token(id, { claims: { aud: `${base}/mcp/secret` } }));
  assert.equal([...(foreign.templates ?? [])], []);
});

test('give no scope that the grant or the user does not have', async () => {
  const admin = await setup('admin');
  const all = { claims: { scope: 'admin gateway:write tools:call gateway:read', aud: base } };
  const few = await admin.of(await admin.token(await admin.grantOf('grant-1'), all));
  assert.equal([...few.scopes].sort(), ['gateway:read', 'tools:call']);
  const user = await setup('user');
  const granted = await user.grantOf('grant-1', ['admin', 'tools:call']);
  const limited = await user.of(await user.token(granted, all));
  assert.equal([...limited.scopes].sort(), ['gateway:read', 'tools:call']);
  assert.is(limited.hourlyLimit, 1_000);
});

test('are refused when they are not of this issuer, for this gateway, of this type and signed by its key', async () => {
  const { grantOf, token, of, user, store } = await setup();
  const id = await grantOf('grant-1');
  const publicPem = Buffer.from(String(ours.publicKey.export({ type: 'spki', format: 'pem' })));
  const login = {
    claims: { iss: 'stagedoor', jti: 'x', credentials_at: Date.parse(user.credentialsChangedAt) },
  };
  const bad: Record<string, TokenParts> = {
    'of another issuer with our kid': { key: pair().privateKey },
    'of another issuer, signed by us': { claims: { iss: 'https://other.example' } },
    'for another gateway': { claims: { aud: 'https://other.example/mcp/files' } },
    'for several resources': { claims: { aud: [`${base}/mcp/files`, `${base}/mcp/other`] } },
    'for a path that is none': { claims: { aud: `${base}/mcp/files/../other` } },
    'without a resource': { claims: { aud: undefined } },
    'that never expires': { claims: { exp: undefined } },
    'without a grant': { claims: { grant_id: undefined } },
    'of an unknown grant': { claims: { grant_id: 'grant-2' } },
    'of another client': { claims: { client_id: 'client-2' } },
    'of another user': { claims: { sub: '00000000-0000-4000-8000-000000000000' } },
    'of another type': { header: { typ: 'JWT' } },
    'of an id token': { header: { typ: 'id+jwt' } },
    'with an unknown key': { header: { kid: 'key-2' } },
    'by HMAC with the public key': { header: { alg: 'HS256' }, key: publicPem },
    'by HMAC with our secret': { header: { alg: 'HS256' }, key: secret },
    'like a login, by the other key': { ...login, header: { typ: 'JWT' } },
    'like a login, by HMAC with the public key': {
      ...login,
      header: { alg: 'HS256', typ: 'JWT' },
      key: publicPem,
    },
  };
  for (const [what, parts] of Object.entries(bad)) {
    const authorization = await token(id, parts);
    assert.is((await errorOf(of(authorization))).code, 'INVALID_CREDENTIALS', what);
  }
  const [, payload = ''] = (await token(id)).split('.');
  const head = Buffer.from(JSON.stringify({ alg: 'none', typ: 'at+jwt', kid })).toString('base64url');
  const unsigned = await errorOf(of(`Bearer ${head}.${payload}.`));
  assert.is(unsigned.code, 'INVALID_CREDENTIALS');
  assert.is((await of(await token(id))).name, 'ada');
  await store.oauth.end({ grantId: id });
});

test('end by themselves, with their grant, and with their user', async () => {
  const { grantOf, token, of, user, auth, clock, storeChanges$, store } = await setup();
  const outcome = async (authorization: string) =>
    of(authorization).then(
      () => 'accepted',
      (thrown) => thrown.code,
    );
  const short = await token(await grantOf('grant-1'), {
    claims: { exp: Math.floor(clock.wall() / 1000) + 5 },
  });
  assert.is(await outcome(short), 'accepted');
  clock.pass(5_000);
  assert.is(await outcome(short), 'TOKEN_EXPIRED');

  const ended: string[] = [];
  auth.changed$.subscribe((id) => ended.push(id));
  const [here, elsewhere, disabled] = await Promise.all(
    ['grant-2', 'grant-3', 'grant-4'].map(async (id) => token(await grantOf(id))),
  );
  for (const each of [here, elsewhere, disabled]) assert.is(await outcome(each ?? ''), 'accepted');
  await auth.grants?.revoke('grant-2');
  assert.equal(ended, [`grant:grant-2@${user.id}`]);
  assert.is(await outcome(here ?? ''), 'INVALID_CREDENTIALS');
  // Another node ends it: the store says that something has changed.
  await store.oauth.end({ grantId: 'grant-3' });
  storeChanges$.next({ kind: 'changed' });
  assert.is(await outcome(elsewhere ?? ''), 'INVALID_CREDENTIALS');
  // Without word of it, within 10 s.
  await store.oauth.end({ grantId: 'grant-4' });
  clock.pass(10_001);
  assert.is(await outcome(disabled ?? ''), 'INVALID_CREDENTIALS');
  const last = await token(await grantOf('grant-5'));
  assert.is(await outcome(last), 'accepted');
  await auth.accounts.changeUser(user.id, { isActive: false });
  assert.is(await outcome(last), 'INVALID_CREDENTIALS');
  assert.ok(ended.includes(`grant:grant-5@${user.id}`));
});

test('are cached, and count as one user together with its logins', async () => {
  const { grantOf, token, of, auth, user } = await setup();
  const [first, second] = await Promise.all(
    ['grant-1', 'grant-2'].map(async (id) => token(await grantOf(id))),
  );
  const one = await of(first ?? '');
  const two = await of(second ?? '');
  assert.is(auth.authenticate({ authorization: first }), one);
  for (const id of [one.id, two.id, `user:${user.id}`]) await auth.limiter.take(countedIdOf(id), 1_000);
  assert.is(auth.limiter.peek(one)?.remaining, 997);
  assert.equal((await auth.accounts.names([one.id])).get(one.id), 'ada via Claude Code');
});

test('of a grant are listed with the time of their use, and ended by a logout', async () => {
  const { grantOf, token, of, auth, user } = await setup();
  const authorization = await token(await grantOf('grant-1'));
  await of(authorization);
  const [view] = (await auth.grants?.list()) ?? [];
  assert.equal([view?.username, view?.grant.clientName], ['ada', 'Claude Code']);
  assert.type(view?.grant.lastUsedAt, 'string');
  assert.equal(await auth.grants?.list('another user'), []);
  assert.is(
    (await errorOf(Promise.resolve(auth.grants?.revoke('grant-1', 'another user')))).code,
    'NOT_FOUND',
  );
  await auth.tokenEnds.end({ authorization });
  assert.equal(await auth.grants?.list(user.id), []);
});

test('a grant that a clock which was set ahead calls expired loses no session', async () => {
  const { auth, clock, storeChanges$, grantOf, token, of } = await setup();
  const { id } = await of(await token(await grantOf('grant-1')));
  const ended: string[] = [];
  auth.changed$.subscribe((each) => ended.push(each));
  auth.watchSessions(() => [id]);
  const check = async (): Promise<void> => {
    storeChanges$.next({ kind: 'changed' });
    await passTurns(20);
  };
  clock.step(200 * 86_400_000);
  await check();
  clock.step(-200 * 86_400_000);
  await check();
  assert.equal(ended, []);
  clock.pass(200 * 86_400_000);
  await check();
  assert.equal(ended, [id]);
  await auth.close();
});

test.run();
