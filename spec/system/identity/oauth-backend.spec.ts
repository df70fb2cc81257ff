// The fixture against the clients of the official SDK, so that a failure with the gateway is one of the gateway.

import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
} from '@modelcontextprotocol/client';
import {
  discoverOAuthServerInfo,
  exchangeAuthorization,
  refreshAuthorization,
  registerClient,
  startAuthorization,
} from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as assert from 'uvu/assert';
import { type OAuthBackend, startOAuthBackend } from '../../fixtures/oauth-backend.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('fixture: a backend with OAuth');
const redirectUrl = 'http://127.0.0.1:43118/back';
let backend: OAuthBackend;
test.after.each(() => backend.close());

test('a 401 leads to the documents, and tokens are for one account', async () => {
  backend = await startOAuthBackend();
  const refused = await fetch(backend.url, { method: 'POST' });
  assert.is(refused.status, 401);
  assert.match(refused.headers.get('www-authenticate') ?? '', '/.well-known/oauth-protected-resource/mcp');
  const ada = await tokensAs('ada');
  const bob = await tokensAs('bob');
  for (const [{ access_token: token }, account] of [
    [ada, 'ada'],
    [bob, 'bob'],
  ] as const) {
    const requestInit = { headers: { Authorization: `Bearer ${token}` } };
    const legacy = new Client({ name: 'spec', version: '1' });
    await legacy.connect(new StreamableHTTPClientTransport(new URL(backend.url), { requestInit }));
    const modern = new ModernClient(
      { name: 'spec', version: '1' },
      { versionNegotiation: { mode: { pin: '2026-07-28' } } },
    );
    await modern.connect(new ModernTransport(new URL(backend.url), { requestInit }));
    for (const client of [legacy, modern]) {
      const said = await client.callTool({ name: 'whoami', arguments: {} });
      assert.equal(said.content, [{ type: 'text', text: account }]);
      const refusal = await client
        .callTool({ name: 'write', arguments: {} })
        .catch((error: unknown) => error);
      assert.instance(refusal, Error);
      await client.close();
    }
    assert.equal(
      [...new Set(backend.seen.filter((each) => each.token === token).map((each) => each.account))],
      [account],
    );
  }
});

test('a refresh token is for one use, and a second use ends its grant', async () => {
  backend = await startOAuthBackend();
  const { access_token: first, refresh_token: refresh = '', again } = await tokensAs('ada');
  const next = await again(refresh);
  assert.is.not(next.access_token, first);
  assert.is(await statusWith(next.access_token), 415); // let in, and no message
  assert.is(await again(refresh).catch(({ errorCode }) => errorCode), 'invalid_grant');
  assert.is(await statusWith(next.access_token), 401);
  assert.equal([backend.refreshes, backend.refreshAttempts], [1, 2]);
});

test('variants: no refresh tokens, no registration, expired tokens, a provider that is down', async () => {
  backend = await startOAuthBackend({ hasRefreshTokens: false });
  const { access_token: token, refresh_token: none } = await tokensAs('ada');
  assert.is(none, undefined);
  backend.expireTokens();
  assert.is(await statusWith(token), 401);
  backend.isDown = true;
  assert.is((await fetch(`${backend.issuer}token`, { method: 'POST' })).status, 503);
  await backend.close();
  backend = await startOAuthBackend({ registersClients: false });
  const { authorizationServerMetadata } = await discoverOAuthServerInfo(backend.url);
  assert.is(authorizationServerMetadata?.registration_endpoint, undefined);
});

test.run();

async function tokensAs(account: string) {
  const { authorizationServerUrl: server, authorizationServerMetadata } = await discoverOAuthServerInfo(
    backend.url,
  );
  const metadata = authorizationServerMetadata;
  const clientMetadata = { redirect_uris: [redirectUrl], token_endpoint_auth_method: 'none' };
  const clientInformation = await registerClient(server, {
    ...(metadata === undefined ? {} : { metadata }),
    clientMetadata,
  });
  const known = {
    ...(metadata === undefined ? {} : { metadata }),
    clientInformation,
    resource: new URL(backend.url),
  };
  backend.account = account;
  const { authorizationUrl, codeVerifier } = await startAuthorization(server, { ...known, redirectUrl });
  const back = new URL((await fetch(authorizationUrl, { redirect: 'manual' })).headers.get('location') ?? '');
  const tokens = await exchangeAuthorization(server, {
    ...known,
    ...{ authorizationCode: back.searchParams.get('code') ?? '', codeVerifier, redirectUri: redirectUrl },
  });
  return {
    ...tokens,
    again: (refreshToken: string) => refreshAuthorization(server, { ...known, refreshToken }),
  };
}

async function statusWith(token: string): Promise<number> {
  const response = await fetch(backend.url, {
    method: 'POST',
    body: '{}',
    headers: { Authorization: `Bearer ${token}` },
  });
  await response.body?.cancel();
  return response.status;
}
