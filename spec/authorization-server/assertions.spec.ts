// Identity assertions (ID-JAG) of another issuer, which a client exchanges for access tokens without a browser.

import { generateKeyPairSync, randomBytes } from 'node:crypto';
import * as assert from 'uvu/assert';
import { OAuthKeys } from '../../src/auth/grants/oauth-keys.ts';
import type { AuthorizationServerOptions } from '../../src/authorization-server/authorization-server.ts';
import type { IssuerSetting } from '../../src/config/issuer-settings.ts';
import { systemClock } from '../../src/domain/time/clock.ts';
import { appFor, startApp } from '../helpers/http/app.ts';
import { KeyServer, type TokenParts } from '../helpers/identity/key-server.ts';
import { askToken, partsOf, REDIRECT, register, startSignIn } from '../helpers/identity/sign-in.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('identity assertions of another issuer');
const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const TYPE = 'oauth-id-jag+jwt';
const ROLES: IssuerSetting['roles'] = [
  ['owners', { role: 'admin' }],
  ['staff', { role: 'user', templates: ['files'] }],
  ['readers', { role: 'user', scopes: ['gateway:read'] }],
];
const clock = { ...systemClock, offsetMs: 0, wall: () => systemClock.wall() + clock.offsetMs };
const issuer = new KeyServer(() => clock.wall());
test.before(() => issuer.start());
test.after(() => issuer.stop());
test.before.each(() => {
  clock.offsetMs = 0;
});
const settings = (change: Partial<IssuerSetting> = {}): readonly IssuerSetting[] => [
  { issuer: issuer.issuer, claims: {}, idJag: true, roles: ROLES, ...change },
];
const app = appFor(test, () => startSignIn({ issuers: settings(), clock }), 'each');

const CONFIDENTIAL = {
  client_name: 'Agent',
  redirect_uris: [REDIRECT],
  grant_types: ['authorization_code', JWT_BEARER],
  token_endpoint_auth_method: 'client_secret_post',
};

async function agent(url = app.url) {
  const { client_id, client_secret = '' } = await register(url, CONFIDENTIAL);
  return { client_id, client_secret };
}

let number = 0;
/** An assertion for this client, with what the case changes. */
async function assertionFor(clientId: string, { claims = {}, header = {}, key }: TokenParts = {}) {
  number += 1;
  const seconds = Math.floor(clock.wall() / 1_000);
  const own = {
    aud: app.url,
    client_id: clientId,
    jti: `jti-${number}`,
    groups: ['staff'],
    exp: seconds + 300,
  };
  const parts = { claims: { ...own, ...claims }, header: { typ: TYPE, ...header } };
  const text = await issuer.token(key === undefined ? parts : { ...parts, key });
  return text.slice('Bearer '.length);
}

type Client = Awaited<ReturnType<typeof agent>>;

function exchange(
  client: Client,
  assertion: string,
  more: Readonly<Record<string, string>> = {},
  url = app.url,
) {
  return askToken(url, { grant_type: JWT_BEARER, assertion, ...client, ...more });
}

async function tokenFor(client: Client, parts: TokenParts = {}, more: Readonly<Record<string, string>> = {}) {
  const { status, body } = await exchange(client, await assertionFor(client.client_id, parts), more);
  assert.is(status, 200, JSON.stringify(body));
  assert.is(body.refresh_token, undefined);
  const text = String(body.access_token);
  return { text, ...partsOf(text) };
}

const me = (token: string) => app.ask('GET', '/auth/me', { headers: { authorization: `Bearer ${token}` } });
const grants = () => app.oauthStore.oauth.list({ kind: 'grant' }, 100);

test('are announced, and give a token with the rights of the groups, which belongs to a grant', async () => {
  const metadata = await app.ask('GET', '/.well-known/oauth-authorization-server');
  assert.equal(metadata.body.authorization_grant_profiles_supported, [
    'urn:ietf:params:oauth:grant-profile:id-jag',
  ]);
  assert.ok((metadata.body.grant_types_supported as string[]).includes(JWT_BEARER));
  const client = await agent();
  const { text, claims } = await tokenFor(client);
  assert.equal([claims.aud, claims.client_id], [app.url, client.client_id]);
  assert.is(claims.scope, 'gateway:read tools:call');
  const own = await me(text);
  assert.is(own.status, 200, own.text);
  const who = `ada of ${new URL(issuer.issuer).host}`;
  const [listed] = JSON.parse((await app.as(app.admin, 'GET', '/auth/grants')).text);
  assert.equal([listed.id, listed.username, listed.client_name], [claims.grant_id, who, 'Agent']);
  const [entry] = (await app.auth.audit.list({ limit: 50 })).filter(
    ({ action }) => action === 'POST /oauth/token',
  );
  assert.equal([entry?.actorName, entry?.status], [`${who} via Agent`, 201]);
  assert.match(entry?.subject ?? '', `/auth/grants/${claims.grant_id} for Agent`);
  const made = { name: 'key', permissions: ['tools:call'] };
  const owner = await tokenFor(client, { claims: { groups: ['owners'] } });
  const headers = { authorization: `Bearer ${owner.text}` };
  assert.is((await app.ask('POST', '/auth/api-keys', { headers, body: made })).status, 403);
});

test('are used once, also at the same time at two nodes', async () => {
  const { url, auth, oauthStore: store, issuers: assertions } = app;
  const authorizationServer: AuthorizationServerOptions = {
    ...{ store, auth, clock, assertions, secrets: [randomBytes(32)], tokenSeconds: 3_600 },
    ...{ rule: 'any', openNetworks: [], keepsSecrets: true },
    keys: new OAuthKeys({ store: store.oauth, clock }),
    // Both are reached by the address of the first.
    address: { issuer: url, baseFor: () => url, pathOf: () => '', normalise: () => url },
    log: { warn: () => {}, error: () => {} },
  };
  const two = await startApp({ auth, authorizationServer });
  try {
    const client = await agent();
    const assertion = await assertionFor(client.client_id);
    const asks = [url, two.url, url, two.url].map((node) => exchange(client, assertion, {}, node));
    const answers = await Promise.all(asks);
    assert.is(answers.filter(({ status }) => status === 200).length, 1, JSON.stringify(answers));
    assert.is((await exchange(client, assertion, {}, two.url)).body.error, 'invalid_grant');
  } finally {
    two.app.authorizationServer?.close();
    await two.close();
  }
});

test('are refused when they are for another client, gateway or use, too long, or not signed by the issuer', async () => {
  const client = await agent();
  const other = await agent();
  const seconds = Math.floor(clock.wall() / 1_000);
  const foreign = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  const publicKey = JSON.stringify((await (await fetch(`${issuer.issuer}/keys`)).json()) as object);
  const bad: Readonly<Record<string, TokenParts>> = {
    'for another client': { claims: { client_id: other.client_id } },
    'for no client': { claims: { client_id: undefined } },
    'for another gateway': { claims: { aud: 'https://other.example' } },
    'for a resource': { claims: { aud: `${app.url}/mcp` } },
    'for two': { claims: { aud: [app.url, 'https://other.example'] } },
    'with a final slash': { claims: { aud: `${app.url}/` } },
    'as an access token': { header: { typ: 'at+jwt' } },
    'as an ID token': { header: { typ: 'JWT' } },
    'without a type': { header: { typ: undefined } },
    'that lives longer': { claims: { iat: seconds, exp: seconds + 301 } },
    'that began long ago': { claims: { iat: seconds - 400, exp: seconds - 100 } },
    'that is expired': { claims: { iat: seconds - 300, exp: seconds - 61 } },
    'of the future': { claims: { iat: seconds + 120, exp: seconds + 300 } },
    'without an end': { claims: { exp: undefined } },
    'without a beginning': { claims: { iat: undefined } },
    'without an id': { claims: { jti: undefined } },
    'with an endless id': { claims: { jti: 'x'.repeat(501) } },
    'without a subject': { claims: { sub: undefined } },
    'without a group that has a role': { claims: { groups: ['admin'] } },
    'of an unknown issuer': { claims: { iss: 'https://other.example' } },
    'in our own name': { claims: { iss: app.url } },
    'signed by another key': { key: foreign },
    'of an unknown key': { header: { kid: 'other' } },
    'by HMAC with the public key': { header: { alg: 'HS256' }, key: Buffer.from(publicKey) },
  };
  for (const [what, parts] of Object.entries(bad)) {
    const { status, body } = await exchange(client, await assertionFor(client.client_id, parts));
    assert.equal([status, body.error], [400, 'invalid_grant'], `${what}: ${JSON.stringify(body)}`);
  }
  const [, claims = ''] = (await assertionFor(client.client_id)).split('.');
  for (const alg of ['none', 'None', undefined]) {
    const head = Buffer.from(JSON.stringify({ alg, typ: TYPE, kid: 'their-1' })).toString('base64url');
    assert.is((await exchange(client, `${head}.${claims}.`)).body.error, 'invalid_grant', String(alg));
  }
  for (const text of ['', 'x', '..', `${'x'.repeat(9_000)}.y.z`])
    assert.is((await exchange(client, text)).status, 400, text.slice(0, 10));
  assert.equal(await grants(), []);
  assert.is(await app.oauthStore.oauth.count({ kind: 'assertion' }), 0, 'a refused one costs no row');
});

test('that lack a claim are refused with its name', async () => {
  const client = await agent();
  const seconds = Math.floor(clock.wall() / 1_000);
  const lacking = ['exp', 'iat', 'jti', 'client_id', 'aud'].map(
    (name) => [name, { [name]: undefined }] as const,
  );
  for (const [claim, claims] of [...lacking, ['iat', { iat: seconds + 120, exp: seconds + 300 }]] as const) {
    const { body } = await exchange(client, await assertionFor(client.client_id, { claims }));
    assert.match(String(body.error_description), `"${claim}"`, JSON.stringify(claims));
  }
});

test('are for clients that authenticate and registered the grant type only', async () => {
  const body = { ...CONFIDENTIAL, token_endpoint_auth_method: 'none' };
  const plain = await register(app.url, body);
  assert.equal(plain.grant_types, ['authorization_code']);
  const without = await register(app.url, { ...CONFIDENTIAL, grant_types: ['authorization_code'] });
  const client = await agent();
  const asks: Readonly<Record<string, Client>> = {
    'a public client': { client_id: plain.client_id, client_secret: '' },
    'one without the type': { client_id: without.client_id, client_secret: without.client_secret ?? '' },
    'a wrong secret': { ...client, client_secret: 'wrong' },
    'no secret': { client_id: client.client_id } as Client,
  };
  for (const [what, asking] of Object.entries(asks)) {
    const answer = await exchange(asking, await assertionFor(asking.client_id));
    assert.ok([400, 401].includes(answer.status), `${what}: ${JSON.stringify(answer)}`);
  }
  assert.equal(await grants(), []);
});

test('are no access tokens by themselves', async () => {
  const client = await agent();
  for (const typ of [TYPE, `application/${TYPE}`, TYPE.toUpperCase()])
    assert.is((await me(await assertionFor(client.client_id, { header: { typ } }))).status, 401, typ);
  assert.is((await me(await assertionFor(client.client_id, { header: { typ: 'JWT' } }))).status, 200);
});

test('limit resource and scopes together with the request, the role and the client', async () => {
  const client = await agent();
  const files = `${app.url}/mcp/files`;
  const at = async (parts: TokenParts, more: Readonly<Record<string, string>> = {}) => {
    const { claims } = await tokenFor(client, parts, more);
    return `${claims.scope} at ${String(claims.aud).slice(app.url.length)}`;
  };
  const both = 'gateway:read tools:call';
  assert.is(await at({ claims: { resource: files } }), `${both} at /mcp/files`);
  assert.is(
    await at({ claims: { resource: [app.url] } }, { resource: `${files}/` }),
    `${both} at /mcp/files`,
  );
  assert.is(await at({}, { resource: files, scope: 'tools:call openid' }), 'tools:call at /mcp/files');
  assert.is(await at({ claims: { scope: 'tools:call admin' } }), 'tools:call at ');
  assert.is(await at({ claims: { groups: ['readers'] } }), 'gateway:read at ');
  assert.is(await at({ claims: { groups: ['owners'], scope: 'admin gateway:read' } }), 'gateway:read at ');
  const refused: readonly (readonly [TokenParts, Record<string, string>, string])[] = [
    [{ claims: { resource: files } }, { resource: app.url }, 'invalid_target'],
    [{ claims: { resource: files } }, { resource: `${app.url}/mcp/db` }, 'invalid_target'],
    [{ claims: { resource: 'https://other.example/mcp' } }, {}, 'invalid_target'],
    [{ claims: { resource: [files, `${app.url}/mcp/db`] } }, {}, 'invalid_target'],
    [{}, { resource: 'https://other.example/mcp' }, 'invalid_target'],
    [{ claims: { scope: 'todo.read' } }, {}, 'invalid_scope'],
    [{ claims: { scope: '' } }, {}, 'invalid_scope'],
    [{ claims: { scope: 'tools:call' } }, { scope: 'gateway:read' }, 'invalid_scope'],
    [{}, { scope: 'admin' }, 'invalid_scope'],
  ];
  for (const [parts, more, error] of refused) {
    const { body } = await exchange(client, await assertionFor(client.client_id, parts), more);
    assert.is(body.error, error, JSON.stringify([parts, more, body]));
  }
});

test('prolong the grant of the same subject, client, resource and scopes', async () => {
  const client = await agent();
  const first = await tokenFor(client);
  clock.offsetMs = 50 * 60_000;
  const second = await tokenFor(client, { claims: { groups: ['readers'] } }, { scope: 'gateway:read' });
  assert.is.not(second.claims.grant_id, first.claims.grant_id, 'other scopes are another grant');
  const third = await tokenFor(client);
  assert.is(third.claims.grant_id, first.claims.grant_id);
  const bob = await tokenFor(client, { claims: { sub: 'bob' } });
  assert.is.not(bob.claims.grant_id, first.claims.grant_id);
  const [row] = (await grants()).filter(({ grantId }) => grantId === third.claims.grant_id);
  const leftMs = Date.parse(row?.expiresAt ?? '') - clock.wall();
  assert.ok(Math.abs(leftMs - 65 * 60_000) < 5_000, String(leftMs));
});

test('keep a session over their renewal, which an admin sees with the subject and the client', async () => {
  await app.serve('files', 'one');
  const client = await agent();
  const ask = async (body: object, session: Readonly<Record<string, string>> = {}) => {
    const { text } = await tokenFor(client);
    const headers = { accept: 'application/json, text/event-stream', authorization: `Bearer ${text}` };
    return app.ask('POST', '/mcp/files', { headers: { ...headers, ...session }, body });
  };
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'c', version: '1' } };
  const opened = await ask({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
  const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
  assert.is((await ask({ jsonrpc: '2.0', id: 2, method: 'ping' }, session)).status, 200);
  const { body } = await app.as(app.admin, 'GET', '/gateway/sessions');
  assert.match(JSON.stringify(body), `"principal_name":"ada of ${new URL(issuer.issuer).host} via Agent"`);
});

test('end with their grant, for an admin, for their own client and for themselves', async () => {
  const client = await agent();
  const byAdmin = await tokenFor(client);
  assert.is((await me(byAdmin.text)).status, 200);
  const path = `/auth/grants/${byAdmin.claims.grant_id}`;
  const stranger = await tokenFor(client, { claims: { sub: 'bob' } });
  const headers = { authorization: `Bearer ${stranger.text}` };
  assert.is((await app.ask('DELETE', path, { headers })).status, 404);
  assert.is(JSON.parse((await app.ask('GET', '/auth/grants', { headers })).text).length, 1);
  assert.is((await app.as(app.admin, 'DELETE', path)).status, 204);
  assert.is((await me(byAdmin.text)).status, 401);
  const revoke = (fields: Record<string, string>) =>
    fetch(`${app.url}/oauth/revoke`, { method: 'POST', body: new URLSearchParams(fields) });
  const again = await tokenFor(client);
  assert.is.not(again.claims.grant_id, byAdmin.claims.grant_id);
  assert.is((await revoke({ ...client, token: again.text })).status, 200);
  assert.is((await app.oauthStore.oauth.count({ kind: 'grant' })) > 1, false);
  assert.is((await app.ask('POST', '/auth/logout', { headers })).status, 204);
  assert.equal(await grants(), []);
});

test('of unknown keys cause no request while the keys are 5 s old at most, and without keys are neither accepted nor refused', async () => {
  const client = await agent();
  const keyRequests = () => issuer.asked.filter((path) => path === '/keys').length;
  await tokenFor(client);
  const before = keyRequests();
  for (let n = 0; n < 30; n += 1)
    await exchange(client, await assertionFor(client.client_id, { header: { kid: `storm-${n}` } }));
  assert.is(keyRequests(), before);
  const fresh = await startSignIn({ issuers: settings(), clock });
  try {
    issuer.answer = (_, response) => void response.writeHead(503).end('secret of the issuer');
    const one = await agent(fresh.url);
    const assertion = await assertionFor(one.client_id, { claims: { aud: fresh.url } });
    const away = await exchange(one, assertion, {}, fresh.url);
    assert.equal([away.status, away.body.error], [503, 'temporarily_unavailable']);
    assert.not.match(JSON.stringify([away.body, fresh.warnings]), /secret of the issuer/);
  } finally {
    issuer.answer = undefined;
    await fresh.close();
  }
});

test('of an issuer without the setting are refused, and nothing is announced without one', async () => {
  const { idJag: _, ...without } = settings()[0] as IssuerSetting;
  const closed = await startSignIn({ issuers: [without], signIn: { assertions: undefined } });
  try {
    const client = await agent();
    const { body } = await closed.ask('GET', '/.well-known/oauth-authorization-server');
    assert.is(body.authorization_grant_profiles_supported, undefined);
    const grantTypes = body.grant_types_supported;
    assert.ok(
      Array.isArray(grantTypes) && !grantTypes.includes('urn:ietf:params:oauth:grant-type:jwt-bearer'),
    );
    const assertion = await assertionFor(client.client_id, { claims: { aud: closed.url } });
    const registered = await agent(closed.url);
    const answer = await exchange(registered, assertion, {}, closed.url);
    assert.is(answer.body.error, 'unsupported_grant_type', JSON.stringify(answer));
  } finally {
    await closed.close();
  }
});

test.run();
