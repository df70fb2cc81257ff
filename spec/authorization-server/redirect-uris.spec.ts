// Which redirect URIs a client may have: programs that a link starts with the text of a stranger get no answer. Source: ADR 393.

import * as assert from 'uvu/assert';
import { appFor } from '../helpers/http/app.ts';
import { Browser, begin, REDIRECT, register, startSignIn } from '../helpers/identity/sign-in.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('redirect URIs');
const app = appFor(test, () => startSignIn());

async function statusFor(uri: string): Promise<number> {
  const body = { name: 'a', redirect_uris: [uri] };
  return (await app.as(app.admin, 'POST', '/auth/clients', { body })).status;
}

test('schemes of the system and of browsers are refused', async () => {
  for (const uri of [
    ...[
      'ms-msdt:/id',
      'MS-MSDT://a/b',
      'search-ms:query=a',
      'search-ms://a/b',
      'ms-word:ofe|u|x',
      'shell:startup',
    ],
    ...[
      'ms-officecmd://a',
      'x-apple.systempreferences:a',
      'microsoft.windows.camera:a',
      'x-man-page://ls',
      'ldap://a.example/b',
      'ssh://a.example',
    ],
    ...[
      'vbscript:a',
      'data:text/html,a',
      'file:///etc',
      'res://a/b',
      'jnlp://a',
      'telnet://a.example',
      'app-prefs:a',
    ],
  ])
    assert.is(await statusFor(uri), 422, uri);
});

test('a private scheme has a dot, or a name behind it', async () => {
  for (const uri of ['myapp:callback', 'myapp:/callback', 'myapp:///callback', 'urn:ietf:wg:oauth:2.0:oob'])
    assert.is(await statusFor(uri), 422, uri);
  for (const uri of [
    ...[
      'cursor://anysphere.cursor-mcp/oauth/callback',
      'vscode://vscode.github-authentication/did-authenticate',
    ],
    ...[
      'vscode-insiders://a.b/c',
      'windsurf://codeium.windsurf/cb',
      'com.example.app:/oauth',
      'com.raycast:/oauth?a=b',
    ],
    ...[
      'claude://callback',
      'raycast://oauth',
      'web+app://localhost/x',
      'http://127.0.0.1/cb',
      'http://[::1]:1/cb',
      'https://a.example/cb',
    ],
  ])
    assert.is(await statusFor(uri), 201, uri);
});

test('one with a query may be sent as it is', async () => {
  const redirectUri = `${REDIRECT}?from=gateway`;
  const { client_id: id } = await register(app.url, { client_name: 'a', redirect_uris: [redirectUri] });
  const { page } = await begin(app.url, { client_id: id, redirect_uris: [redirectUri] });
  assert.is(page.status, 200);
  const fields = [
    `client_id=${id}&redirect_uri=${redirectUri}&response_type=code`,
    'code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256',
  ];
  const sent = await new Browser(app.url).open(`/oauth/authorize?${fields.join('&')}`);
  assert.is(sent.status, 200, sent.text.slice(-400));
});

test.run();
