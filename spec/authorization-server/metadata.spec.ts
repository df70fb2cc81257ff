// The metadata of the authorization server, compared whole: a new version of the library must announce nothing by itself. And the
// registrations that clients in use send.

import * as assert from 'uvu/assert';
import { appFor } from '../helpers/http/app.ts';
import { register, startSignIn } from '../helpers/identity/sign-in.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('metadata and registrations');
const app = appFor(test, () => startSignIn(), 'each');

test('both documents are this one, whatever the request says', async () => {
  const methods = ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'];
  const algorithms = ['ES256', 'RS256', 'PS256', 'EdDSA'];
  const expected = {
    issuer: app.url,
    authorization_endpoint: `${app.url}/oauth/authorize`,
    token_endpoint: `${app.url}/oauth/token`,
    registration_endpoint: `${app.url}/oauth/register`,
    device_authorization_endpoint: `${app.url}/oauth/device_authorization`,
    revocation_endpoint: `${app.url}/oauth/revoke`,
    jwks_uri: `${app.url}/oauth/jwks`,
    scopes_supported: ['tools:call', 'gateway:read'],
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: [
      'authorization_code',
      'refresh_token',
      'urn:ietf:params:oauth:grant-type:device_code',
    ],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: methods,
    token_endpoint_auth_signing_alg_values_supported: algorithms,
    revocation_endpoint_auth_methods_supported: methods,
    revocation_endpoint_auth_signing_alg_values_supported: algorithms,
    authorization_response_iss_parameter_supported: true,
    client_id_metadata_document_supported: true,
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
  };
  for (const name of ['oauth-authorization-server', 'openid-configuration']) {
    const headers = { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https' };
    assert.equal((await app.ask('GET', `/.well-known/${name}`, { headers })).body, expected, name);
  }
});

test('the library has no further doors', async () => {
  const doors = [
    'me',
    'session/end',
    'request',
    'introspection',
    'token/introspection',
    'device_authorization/x',
    'reg',
    'ciba',
  ];
  for (const door of doors)
    for (const method of ['GET', 'POST'])
      assert.is((await app.ask(method, `/oauth/${door}`)).status, 404, `${method} ${door}`);
  for (const mode of ['fragment', 'form_post']) {
    const client = await register(app.url);
    const query = new URLSearchParams({
      ...{ client_id: client.client_id, response_type: 'code', response_mode: mode },
      ...{
        redirect_uri: client.redirect_uris[0] ?? '',
        code_challenge: 'x'.repeat(43),
        code_challenge_method: 'S256',
      },
    });
    const answer = await fetch(`${app.url}/oauth/authorize?${query}`, { redirect: 'manual' });
    assert.not.match(answer.headers.get('location') ?? '/oauth/', /\/oauth\/interaction/, mode);
  }
});

/** As these programs send them. */
const REGISTRATIONS: Readonly<Record<string, object>> = {
  'Claude Code': {
    client_name: 'Claude Code (files)',
    redirect_uris: ['http://localhost:52345/callback'],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    scope: 'tools:call gateway:read',
  },
  'VS Code': {
    client_name: 'Visual Studio Code',
    client_uri: 'https://code.visualstudio.com',
    grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
    response_types: ['code'],
    redirect_uris: [
      'https://insiders.vscode.dev/redirect',
      'https://vscode.dev/redirect',
      'http://127.0.0.1/',
      'http://127.0.0.1:33418/',
    ],
    token_endpoint_auth_method: 'none',
    application_type: 'native',
  },
  Cursor: {
    client_name: 'Cursor',
    redirect_uris: ['cursor://anysphere.cursor-mcp/oauth/callback'],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  },
  inspector: {
    client_name: 'MCP Inspector',
    client_uri: 'https://github.com/modelcontextprotocol/inspector',
    redirect_uris: ['http://localhost:6274/oauth/callback'],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    scope: '',
  },
};

for (const [name, body] of Object.entries(REGISTRATIONS))
  test(`the registration of ${name} passes, and its page is shown`, async () => {
    const made = await app.ask('POST', '/oauth/register', { body });
    assert.is(made.status, 201, made.text);
    const uris = Object(body).redirect_uris as readonly string[];
    assert.equal(made.body.redirect_uris, uris);
    for (const uri of uris) {
      const query = new URLSearchParams({
        ...{ client_id: String(made.body.client_id), response_type: 'code', redirect_uri: uri },
        ...{ code_challenge: 'x'.repeat(43), code_challenge_method: 'S256', scope: 'openid profile' },
      });
      const answer = await fetch(`${app.url}/oauth/authorize?${query}`, { redirect: 'manual' });
      assert.match(answer.headers.get('location') ?? '', /\/oauth\/interaction\//, uri);
    }
  });

test('the oldest of 1,000 unused clients makes room, also when a clock was ahead at their registration', async () => {
  const { oauth } = app.oauthStore;
  const registered = () =>
    register(app.url).then(
      () => 'done',
      (error: Error) => error.message,
    );
  const unused = async (createdAt: string) => {
    for (let number = 0; number < 1_000; number += 1) {
      const key = `client-${number}`;
      await oauth.save({ kind: 'client', key, clientKey: key, createdAt, value: '{}' });
    }
  };
  await unused(new Date(Date.now() - 60_000).toISOString());
  assert.match(await registered(), 'too many');
  await unused(new Date(Date.now() + 100 * 86_400_000).toISOString());
  assert.is(await registered(), 'done');
  assert.is(await oauth.count({ kind: 'client' }), 1_000);
});

test.run();
