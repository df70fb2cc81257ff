// The registrations that well-known clients have published, replayed: each is accepted, asks its user, and gets a token.

import * as assert from 'uvu/assert';
import { PUBLISHED_REGISTRATIONS } from '../../fixtures/published-registrations.ts';
import {
  authorize,
  newProof,
  pageOf,
  ScriptedBrowser,
  textOf,
} from '../../helpers/browsers/scripted-browser.ts';
import { type OAuthHarness, startWithSignIn } from '../../helpers/identity/oauth-gateway.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: published clients', { timeoutMs: 120_000 });
let gateway: OAuthHarness;
test.before(async () => {
  gateway = await startWithSignIn();
});
test.after(() => gateway.remove());

for (const { name, registration, redirectUri, scope = 'tools:call' } of PUBLISHED_REGISTRATIONS) {
  test(`${name}: from registration to a call`, async () => {
    const { oauth, url } = gateway;
    const made = await oauth.register(registration);
    assert.is(made.status, 201, JSON.stringify(made.body));
    assert.equal(made.body.redirect_uris, registration.redirect_uris);
    const clientId = String(made.body.client_id);
    const proof = newProof();
    const asked = await oauth.authorizationUrl(clientId, proof, {
      ...{ redirect_uri: redirectUri, scope, resource: `${url}/mcp/tools` },
    });
    const browser = new ScriptedBrowser(url);
    pageOf(await browser.open(asked));
    const back = await authorize(browser, asked, { username: 'ada' });
    assert.ok(back.href.startsWith(redirectUri), back.href);
    assert.is(back.searchParams.get('iss'), new URL(url).origin);
    const { status, body } = await oauth.redeem(
      clientId,
      back.searchParams.get('code') ?? '',
      proof,
      redirectUri,
    );
    assert.is(status, 200, JSON.stringify(body));
    assert.match(String(body.scope), 'tools:call');
    assert.not.match(String(body.scope), /openid|offline/);
    assert.type(body.refresh_token, 'string');
    const call = { name: 'test_simple_text', arguments: {} };
    const response = await fetch(`${url}/mcp/tools/tools/call`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${body.access_token}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(call),
    });
    assert.is(response.status, 200, await response.text());
  });
}

test('the consent page says who asks, what for, and where the answer goes', async () => {
  const { oauth, url } = gateway;
  const evil = 'Claude\u202e edoC\u0007 <b>'.padEnd(300, 'x');
  const clientId = await oauth.client(undefined, { client_name: evil });
  const browser = new ScriptedBrowser(url);
  const asked = await oauth.authorizationUrl(clientId, newProof(), {
    ...{ scope: 'tools:call gateway:read admin', resource: `${url}/mcp/tools` },
  });
  pageOf(await browser.open(asked));
  const consent = pageOf(
    await browser.press('Sign in', { username: 'ada', password: 'correct horse battery' }),
  );
  const text = textOf(consent);
  for (const word of [/unverified/, /a program on this computer/, /only tools/, /\bada\b/, /Not you\?/])
    assert.match(text, word);
  assert.not.match(consent.html, /[\u202a-\u202e\u2066-\u2069]|<b>|<script/);
  assert.not.ok(consent.html.includes('\u0007'));
  assert.not.match(text, 'x'.repeat(61));
  assert.match(text, /do everything, accounts included.*Only clients that an admin added/);
});

test('a scope that no such client gets, and nothing else, is refused to the client', async () => {
  const { oauth, url } = gateway;
  const clientId = await oauth.client();
  const asked = await oauth.authorizationUrl(clientId, newProof(), { scope: 'admin gateway:write' });
  const back = await authorize(new ScriptedBrowser(url), asked, { username: 'admin' });
  assert.is(back.searchParams.get('error'), 'invalid_scope');
});

test('a user who denies ends the request, and the client is told so', async () => {
  const { oauth, url } = gateway;
  const clientId = await oauth.client();
  const asked = await oauth.authorizationUrl(clientId, newProof());
  const back = await authorize(new ScriptedBrowser(url), asked, { username: 'bob', decision: 'Deny' });
  const { searchParams: said } = back;
  assert.equal(
    [said.get('error'), said.get('state'), said.get('iss'), said.get('code')],
    ['access_denied', 'a state of the spec', new URL(url).origin, null],
  );
});

test.run();
