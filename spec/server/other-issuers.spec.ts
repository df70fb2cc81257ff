// A gateway that accepts the tokens of another authorization server as they are: a second one of the same library, on a port of its own.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK } from 'jose/key/export';
import { generateKeyPair } from 'jose/key/generate/keypair';
import { Provider } from 'oidc-provider';
import { pino } from 'pino';
import * as assert from 'uvu/assert';
import { loadConfig } from '../../src/config/config.ts';
import { startServer } from '../../src/server/server.ts';
import { serving } from '../helpers/backends/function-backend.ts';
import { folderOfAll } from '../helpers/folder.ts';
import { PASSWORD } from '../helpers/http/accounts.ts';
import { send } from '../helpers/http/app.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('a gateway with the tokens of another issuer');
const folder = folderOfAll(test);
const AUDIENCE = 'api://stagedoor';
const SECRET = 'a-secret-of-the-client-of-this-spec';

/** Issues signed access tokens to two clients by their secret; `groups` of a token are those of the client. */
async function startIssuer() {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { privateKey } = await generateKeyPair('ES256', { extractable: true });
  const client = (id: string) => ({
    ...{ client_id: id, client_secret: SECRET, grant_types: ['client_credentials'] },
    ...{ redirect_uris: [], response_types: [], id_token_signed_response_alg: 'ES256' as const },
  });
  const provider = new Provider(issuer, {
    clients: [client('staff-agent'), client('visitor')],
    jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'ES256', use: 'sig', kid: 'one' }] },
    ttl: { ClientCredentials: 300 },
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context, audience) => ({
          ...{ audience, scope: 'tools:call gateway:read', accessTokenTTL: 300 },
          accessTokenFormat: 'jwt' as const,
          jwt: { sign: { alg: 'ES256' as const } },
        }),
      },
    },
    extraTokenClaims: (_context, token) => ({
      groups: token.clientId === 'staff-agent' ? ['staff'] : ['admin'],
      // The subject of a client without a user.
      sub: token.clientId,
    }),
  });
  server.on('request', provider.callback());
  const tokenOf = async (id: string, resource = AUDIENCE, scope = '') => {
    const body = new URLSearchParams({
      ...{ grant_type: 'client_credentials', client_id: id, client_secret: SECRET, resource },
      ...(scope === '' ? {} : { scope }),
    });
    const answer = await fetch(`${issuer}/token`, { method: 'POST', body });
    const text = await answer.text();
    const { access_token: token } = JSON.parse(text) as { access_token?: string };
    assert.type(token, 'string', text);
    return String(token);
  };
  return { issuer, tokenOf, close: () => server.close() };
}

test('finds the keys of the issuer, and gives its groups the rights of their roles', async () => {
  const other = await startIssuer();
  const issuers = [
    { issuer: other.issuer, audience: AUDIENCE, roles: { staff: { role: 'user', templates: ['files'] } } },
  ];
  const env = {
    ...{ GATEWAY_ADMIN_PASSWORD: PASSWORD, GATEWAY_DATABASE_URL: 'sqlite:///gateway.db' },
    GATEWAY_AUTH_ISSUERS: JSON.stringify(issuers),
  };
  const config = loadConfig({ cwd: folder(), env, flags: { port: '0', host: '127.0.0.1' } });
  const server = await startServer(config, { log: pino({ level: 'silent' }) });
  const [url = ''] = server.urls;
  for (const name of ['files', 'secrets'])
    await server.gateway.register(name, { id: name, handler: serving({}) }, { waitMs: 5_000 });
  const headersOf = (token: string) => ({ authorization: `Bearer ${token}` });
  const list = async (template: string, token: string) =>
    (await send('GET', `${url}/mcp/${template}/tools/list`, { headers: headersOf(token) })).status;
  const change = async (path: string, token: string) =>
    (await send('POST', `${url}${path}`, { body: {}, headers: headersOf(token) })).status;

  const staff = await other.tokenOf('staff-agent');
  assert.equal([await list('files', staff), await list('secrets', staff)], [200, 404]);
  const reading = await other.tokenOf('staff-agent', AUDIENCE, 'gateway:read');
  assert.is(await change('/mcp/files/tools/call', reading), 403, 'a token only narrows what its groups give');
  assert.is(await list('files', await other.tokenOf('visitor')), 403, 'its group has no role here');
  assert.is(await list('files', await other.tokenOf('staff-agent', 'https://other.example')), 401);
  assert.is(await change('/auth/api-keys', staff), 403);
  other.close();
  assert.is(await list('files', staff), 200, 'the keys are known');
  await server.close();
});

test.run();
