// From a URL to tokens: the OAuth code of the official SDK, and a browser without script.

import {
  discoverAuthorizationServerMetadata,
  refreshAuthorization,
} from '@modelcontextprotocol/sdk/client/auth.js';
import * as assert from 'uvu/assert';
import { AccessTokens } from '../../src/auth/grants/access-tokens.ts';
import { GatewayAddress } from '../../src/domain/accounts/resource.ts';
import { appFor } from '../helpers/http/app.ts';
import {
  allow,
  askToken,
  begin,
  partsOf,
  REDIRECT,
  register,
  startSignIn,
  tokensOf,
} from '../helpers/identity/sign-in.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('sign-in by URL alone');
const app = appFor(test, () => startSignIn());

test('a client finds, registers, sends its user, and gets a token for the resource', async () => {
  const metadata = await discoverAuthorizationServerMetadata(app.url);
  assert.is(metadata?.issuer, app.url);
  const client = await register(app.url);
  const tokens = await tokensOf(app.url, client, { resource: `${app.url}/mcp/files/` });
  const { header, claims } = partsOf(tokens.access_token);
  assert.equal([header.alg, header.typ, typeof header.kid], ['ES256', 'at+jwt', 'string']);
  const { iss, aud, client_id, scope, grant_id, sub, exp, iat } = claims;
  assert.equal(
    [iss, aud, client_id, scope],
    [app.url, `${app.url}/mcp/files`, client.client_id, 'gateway:read tools:call'],
  );
  assert.is(Number(exp) - Number(iat), 3_600);
  const [user] = (await app.oauthStore.accounts.findUsers()).filter(({ username }) => username === 'ada');
  assert.is(sub, user?.id);
  const publicKeys = () => app.keys.publicKeys();
  const own = new AccessTokens(publicKeys, new GatewayAddress(app.url, () => []), Date.now);
  const signed = {
    ...{ userId: sub, clientId: client_id, grantId: grant_id, expiresAtMs: Number(exp) * 1_000 },
    scopes: ['gateway:read', 'tools:call'],
  };
  assert.equal(await own.read(tokens.access_token), { ...signed, audience: '/mcp/files' });
  assert.equal(await own.readForAny(tokens.access_token), signed);
  const other = new GatewayAddress('http://other.example', () => []);
  const elsewhere = new AccessTokens(publicKeys, other, Date.now);
  assert.is(await elsewhere.readForAny(tokens.access_token), undefined);
});

test('an answer names the issuer and the state, and a refusal says so', async () => {
  const client = await register(app.url);
  const fields = await allow(await begin(app.url, client));
  assert.equal([fields.get('iss'), fields.get('state')], [app.url, 'state-1']);
  const { browser, page } = await begin(app.url, client);
  const denied = await browser.submit(await browser.signIn(page), 'Deny');
  assert.ok(denied.url.startsWith(REDIRECT));
  assert.is(new URL(denied.url).searchParams.get('error'), 'access_denied');
  assert.is(new URL(denied.url).searchParams.get('iss'), app.url);
});

test('a refresh token gives new tokens of the same grant', async () => {
  const client = await register(app.url);
  const first = await tokensOf(app.url, client);
  const metadata = await discoverAuthorizationServerMetadata(app.url);
  assert.ok(metadata);
  const second = await refreshAuthorization(app.url, {
    metadata,
    clientInformation: client,
    refreshToken: first.refresh_token ?? '',
    resource: new URL(app.url),
  });
  assert.is.not(second.refresh_token, first.refresh_token);
  assert.is(partsOf(second.access_token).claims.grant_id, partsOf(first.access_token).claims.grant_id);
  assert.is(partsOf(second.access_token).claims.aud, app.url);
});

test('a second authorization of the same client is another grant, and needs no second sign-in', async () => {
  const client = await register(app.url);
  const first = await begin(app.url, client);
  const code = await allow(first);
  const second = await begin(app.url, client, { browser: first.browser });
  assert.match(second.page.text, />Allow<\/button>/);
  assert.is.not((await allow(second)).get('code'), code.get('code'));
  const grants = await app.oauthStore.oauth.list({ kind: 'grant' }, 100);
  assert.is(new Set(grants.map(({ grantId }) => grantId)).size, grants.length);
});

test('the wrong verifier, another client and another address get no token', async () => {
  const client = await register(app.url);
  const other = await register(app.url);
  const begun = await begin(app.url, client);
  const code = (await allow(begun)).get('code') ?? '';
  const right = {
    grant_type: 'authorization_code',
    code,
    client_id: client.client_id,
    redirect_uri: REDIRECT,
    code_verifier: begun.verifier,
  };
  for (const wrong of [
    { code_verifier: 'x'.repeat(43) },
    { client_id: other.client_id },
    { redirect_uri: 'http://127.0.0.1:53111/other' },
    { resource: 'https://elsewhere.example/mcp' },
  ]) {
    const { status, body } = await askToken(app.url, { ...right, ...wrong });
    assert.is(status, 400, JSON.stringify(wrong));
    assert.ok(['invalid_grant', 'invalid_target'].includes(String(body.error)), JSON.stringify(body));
  }
});

test('no answer of the authorization server is sniffed, redirects included', async () => {
  const { client_id } = await register(app.url);
  const asked = new URLSearchParams({
    ...{ client_id, response_type: 'code', redirect_uri: REDIRECT, resource: app.url },
    ...{ code_challenge: 'c'.repeat(43), code_challenge_method: 'S256' },
  });
  for (const [path, status, method] of [
    [`/oauth/authorize?${asked}`, 303, 'GET'],
    ['/oauth/jwks', 200, 'GET'],
    ['/oauth/token', 400, 'POST'],
  ] as const) {
    const answer = await fetch(`${app.url}${path}`, { method, redirect: 'manual' });
    assert.equal([answer.status, answer.headers.get('x-content-type-options')], [status, 'nosniff'], path);
  }
});

test.run();
