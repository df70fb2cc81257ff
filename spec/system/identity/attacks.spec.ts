// Attacks on the authorization server, and mistakes that look like them: each is refused, and a stolen code or token ends its grant.

import * as assert from 'uvu/assert';
import {
  authorize,
  isPage,
  newProof,
  pageOf,
  ScriptedBrowser,
  textOf,
} from '../../helpers/browsers/scripted-browser.ts';
import { statusAndCode } from '../../helpers/clients/caller.ts';
import { becomes } from '../../helpers/eventually.ts';
import { CALLBACK } from '../../helpers/identity/oauth-caller.ts';
import { type OAuthHarness, startWithSignIn } from '../../helpers/identity/oauth-gateway.ts';
import { PASSWORD, startGuarded } from '../../helpers/programs/mcp-program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: attacks on the sign-in', { timeoutMs: 120_000 });
/** A grant has to end everywhere within this time, in ms. */
const ENDED_WITHIN_MS = 12_000;
const WEB = 'https://app.example.com/callback';
const USER = { username: 'ada' };

let gateway: OAuthHarness;
let clientId = '';
let webClientId = '';
test.before(async () => {
  gateway = await startWithSignIn();
  clientId = await gateway.oauth.client([CALLBACK]);
  webClientId = await gateway.oauth.client([WEB]);
});
test.after(() => gateway.remove());

test('a redirect URI that only resembles a registered one gets a page, and no answer', async () => {
  const { oauth } = gateway;
  const tricks = [
    ...[
      `${WEB}/more`,
      `${WEB}?x=1`,
      `${WEB}#x`,
      `${WEB}/..`,
      `${WEB}%2F`,
      WEB.replace('callback', 'Callback'),
    ],
    ...[
      WEB.replace('app.', 'app.example.com.evil.'),
      WEB.replace('https:', 'http:'),
      WEB.replace('.com', '.com:8443'),
    ],
    ...[
      WEB.replace('https://', 'https://me@'),
      WEB.replace('https://app.example.com', 'https://app.example.com@evil.example'),
    ],
    ...[
      'https://evil.example/callback',
      '//app.example.com/callback',
      'javascript:alert(1)',
      WEB.replace('app', 'APP'),
    ],
  ];
  for (const redirectUri of tricks)
    await refusesOnPage(await oauth.authorizationUrl(webClientId, newProof(), { redirect_uri: redirectUri }));
  const local = [
    ...[
      'http://127.0.0.1:43117/callback/more',
      'http://127.0.0.1:43117/CALLBACK',
      'http://127.0.0.1.evil.example/callback',
    ],
    ...[
      'http://127.0.0.1@evil.example/callback',
      'https://127.0.0.1:43117/callback',
      'http://10.0.0.1:43117/callback',
    ],
  ];
  for (const redirectUri of local)
    await refusesOnPage(await oauth.authorizationUrl(clientId, newProof(), { redirect_uri: redirectUri }));
});

test('a program on this computer may choose its port, and nothing else', async () => {
  const { oauth, url } = gateway;
  const redirectUri = CALLBACK.replace('43117', '43118');
  const asked = await oauth.authorizationUrl(clientId, newProof(), { redirect_uri: redirectUri });
  const back = await authorize(new ScriptedBrowser(url), asked);
  assert.ok(back.href.startsWith(`${redirectUri}?`), back.href);
});

test('redirect URIs that no client needs cannot be registered', async () => {
  const uris = [
    ...[
      'http://app.example.com/callback',
      'https://app.example.com/callback#x',
      'javascript:alert(1)',
      'data:text/html,x',
    ],
    ...['https://me@app.example.com/callback', 'callback', `https://app.example.com/${'x'.repeat(500)}`],
  ];
  // Together, so that they are one registration each of few.
  const { status, body } = await gateway.oauth.register({ redirect_uris: uris });
  assert.is(status, 400, JSON.stringify(body));
  assert.match(String(body.error), /^invalid_(?:redirect_uri|client_metadata)$/);
});

test('PKCE cannot be left out or weakened', async () => {
  const { oauth, url } = gateway;
  const proof = newProof();
  for (const more of [
    { code_challenge: undefined, code_challenge_method: undefined },
    { code_challenge_method: 'plain' },
    { code_challenge_method: undefined },
  ]) {
    const at = await new ScriptedBrowser(url).open(await oauth.authorizationUrl(clientId, proof, more));
    const said = isPage(at) ? textOf(at) : at.searchParams.get('error');
    assert.match(String(said), /invalid_request|PKCE|code_challenge/, JSON.stringify(more));
  }
  const back = await authorize(new ScriptedBrowser(url), await oauth.authorizationUrl(clientId, proof));
  const code = back.searchParams.get('code') ?? '';
  const { status, body } = await oauth.redeem(clientId, code, newProof());
  assert.equal([status, body.error], [400, 'invalid_grant']);
});

test('a code works once: used again it ends the grant with its tokens', async () => {
  const { oauth, url } = gateway;
  const proof = newProof();
  const back = await authorize(new ScriptedBrowser(url), await oauth.authorizationUrl(clientId, proof));
  const code = back.searchParams.get('code') ?? '';
  const first = await oauth.redeem(clientId, code, proof);
  assert.is(first.status, 200, JSON.stringify(first.body));
  const token = String(first.body.access_token);
  assert.is(await oauth.use(token), 200);
  const second = await oauth.redeem(clientId, code, proof);
  assert.equal([second.status, second.body.error], [400, 'invalid_grant']);
  await becomes(() => oauth.use(token), 401, ENDED_WITHIN_MS);
  const refreshed = await oauth.refresh(clientId, String(first.body.refresh_token));
  assert.equal([refreshed.status, refreshed.body.error], [400, 'invalid_grant']);
});

test('two requests with one code get one answer', async () => {
  const { oauth, url } = gateway;
  const proof = newProof();
  const back = await authorize(new ScriptedBrowser(url), await oauth.authorizationUrl(clientId, proof));
  const code = back.searchParams.get('code') ?? '';
  const answers = await Promise.all(Array.from({ length: 6 }, () => oauth.redeem(clientId, code, proof)));
  assert.ok(answers.filter(({ status }) => status === 200).length <= 1);
});

test('another client cannot redeem a code', async () => {
  const { oauth, url } = gateway;
  const proof = newProof();
  const back = await authorize(new ScriptedBrowser(url), await oauth.authorizationUrl(clientId, proof));
  const { status, body } = await oauth.redeem(webClientId, back.searchParams.get('code') ?? '', proof);
  assert.equal([status, body.error], [400, 'invalid_grant']);
});

test('a refresh token that was replaced may be sent again until its successor is used, and then ends the grant', async () => {
  const { oauth } = gateway;
  const { refresh_token: first } = await oauth.signIn(clientId);
  const once = await oauth.refresh(clientId, first);
  assert.is(once.status, 200, JSON.stringify(once.body));
  const again = await oauth.refresh(clientId, first);
  assert.equal([again.status, again.body.refresh_token], [200, once.body.refresh_token], 'the lost answer');
  const together = await Promise.all(Array.from({ length: 4 }, () => oauth.refresh(clientId, first)));
  assert.equal([...new Set(together.map(({ body }) => body.refresh_token))], [once.body.refresh_token]);
  const next = await oauth.refresh(clientId, String(once.body.refresh_token));
  assert.is(next.status, 200, JSON.stringify(next.body));
  const stolen = await oauth.refresh(clientId, first);
  assert.equal([stolen.status, stolen.body.error], [400, 'invalid_grant']);
  await becomes(() => oauth.use(String(next.body.access_token)), 401, ENDED_WITHIN_MS);
  const after = await oauth.refresh(clientId, String(next.body.refresh_token));
  assert.equal([after.status, after.body.error], [400, 'invalid_grant']);
});

test('a refresh gives no further scopes, and no other resource', async () => {
  const { oauth, url } = gateway;
  const more = { scope: 'gateway:read', resource: `${url}/mcp/tools` };
  const { refresh_token: token, scope } = await oauth.signIn(clientId, {}, more);
  assert.is(scope, 'gateway:read');
  const wider = await oauth.refresh(clientId, token, { scope: 'gateway:read tools:call admin' });
  assert.ok(wider.status === 400 || wider.body.scope === 'gateway:read', JSON.stringify(wider.body));
  const again = await oauth.signIn(clientId, {}, more);
  const elsewhere = await oauth.refresh(clientId, again.refresh_token, { resource: `${url}/mcp/others` });
  assert.is(elsewhere.status, 400, JSON.stringify(elsewhere.body));
  assert.is(elsewhere.body.error, 'invalid_target');
});

test('a token for one template opens no other, and a token for all opens each', async () => {
  const { oauth, url } = gateway;
  const one = await oauth.signIn(clientId, {}, { resource: `${url}/mcp/tools` });
  assert.equal(
    [await oauth.use(one.access_token), await oauth.use(one.access_token, '/mcp/others/tools/list')],
    [200, 401],
  );
  const all = await oauth.signIn(clientId, {}, { resource: url });
  assert.equal(
    [await oauth.use(all.access_token), await oauth.use(all.access_token, '/gateway/registry')],
    [200, 200],
  );
});

test('revoking a refresh token ends its access token, and other grants go on', async () => {
  const { oauth } = gateway;
  const [a, b] = [await oauth.signIn(clientId), await oauth.signIn(clientId)];
  const { revocation_endpoint: endpoint } = await oauth.metadata();
  const body = new URLSearchParams({ client_id: clientId, token: a.refresh_token });
  assert.is((await fetch(endpoint, { method: 'POST', body })).status, 200);
  await becomes(() => oauth.use(a.access_token), 401, ENDED_WITHIN_MS);
  assert.is(await oauth.use(b.access_token), 200);
});

test('each answer names its issuer, also a refusal', async () => {
  const { oauth, url } = gateway;
  const { issuer, authorization_response_iss_parameter_supported: isNamed } = await oauth.metadata();
  assert.equal([issuer, isNamed], [url, true]);
  for (const decision of ['Allow', 'Deny'] as const) {
    const asked = await oauth.authorizationUrl(clientId, newProof());
    const back = await authorize(new ScriptedBrowser(url), asked, { decision });
    assert.is(back.searchParams.get('iss'), issuer);
  }
});

test('a user who is disabled in the middle ends what the user has', async () => {
  const { oauth, admin } = gateway;
  const tokens = await oauth.signIn(clientId, { username: 'bob' });
  assert.is(await oauth.use(tokens.access_token), 200);
  const users: { id: string; username: string }[] = Object((await admin('GET /auth/users')).body);
  const { id } = users.find(({ username }) => username === 'bob') ?? { id: '' };
  const changed = await admin(`PATCH /auth/users/${id}`, { is_active: false });
  assert.is(changed.status, 200, JSON.stringify(changed.body));
  await becomes(() => oauth.use(tokens.access_token), 401, ENDED_WITHIN_MS);
  const { status, body } = await oauth.refresh(clientId, tokens.refresh_token);
  assert.equal([status, body.error], [400, 'invalid_grant']);
});

// --- the pages

test('no page may be framed, and forms lead to the client and nowhere else', async () => {
  const { oauth, url } = gateway;
  const browser = new ScriptedBrowser(url);
  const login = pageOf(await browser.open(await oauth.authorizationUrl(clientId, newProof())));
  const consent = pageOf(await browser.press('Sign in', { username: 'ada', password: PASSWORD }));
  for (const { headers } of [login, consent]) {
    const policy = headers.get('content-security-policy') ?? '';
    assert.match(policy, "frame-ancestors 'none'");
    assert.match(policy, "default-src 'none'");
    assert.match(policy, "base-uri 'none'");
    assert.match(policy, /form-action 'self'( http:\/\/127\.0\.0\.1:43117)?(;|$)/);
    assert.is(headers.get('cache-control'), 'no-store');
    assert.match(String(headers.get('referrer-policy')), /^(?:no-referrer|same-origin)$/);
  }
});

test('another site cannot sign a user in, or agree for one', async () => {
  const { oauth, url } = gateway;
  const values = { username: 'ada', password: PASSWORD };
  const foreign = { Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' };
  const browser = new ScriptedBrowser(url);
  pageOf(await browser.open(await oauth.authorizationUrl(clientId, newProof())));
  const login = pageOf(await browser.press('Sign in', values, foreign));
  assert.is(login.status, 403);
  assert.equal(
    browser.cookies.filter(({ written }) => /sign|session_id/i.test(written) && written.includes('ada')),
    [],
  );
  const another = new ScriptedBrowser(url);
  pageOf(await another.open(await oauth.authorizationUrl(clientId, newProof())));
  const consent = pageOf(await another.press('Sign in', values));
  assert.is(consent.status, 200);
  assert.is(pageOf(await another.press('Allow', {}, foreign)).status, 403);
});

test('the page of one browser is of no use in another: neither to sign in there, nor to agree', async () => {
  const { oauth, url } = gateway;
  const attacker = new ScriptedBrowser(url);
  const page = pageOf(await attacker.open(await oauth.authorizationUrl(clientId, newProof())));
  const victim = new ScriptedBrowser(url);
  const opened = await victim.open(page.url);
  assert.ok(isPage(opened) && opened.status >= 400, 'the interaction belongs to the browser that began it');
  const before = attacker.cookies.map(({ value }) => value);
  pageOf(await attacker.press('Sign in', { username: 'ada', password: PASSWORD }));
  const fresh = attacker.cookies.filter(({ value }) => !before.includes(value));
  assert.ok(fresh.length > 0, 'a sign-in has a new cookie');
});

test('a cookie that was planted before the sign-in is signed in by nothing', async () => {
  const { oauth, url } = gateway;
  const victim = new ScriptedBrowser(url);
  const known = new ScriptedBrowser(url);
  await authorize(known, await oauth.authorizationUrl(clientId, newProof()));
  const planted = known.cookies.find(({ name, path }) => name.includes('sign_in') && path === '/oauth');
  assert.ok(planted);
  const guess = { ...planted, value: newProof().challenge } as typeof planted;
  victim.cookies.push(guess as NonNullable<typeof planted>);
  await authorize(victim, await oauth.authorizationUrl(clientId, newProof()), { username: 'ada' });
  assert.not.ok(victim.cookies.some(({ value }) => value === guess?.value));
  const attacker = new ScriptedBrowser(url);
  attacker.cookies.push(guess as NonNullable<typeof planted>);
  const page = pageOf(await attacker.open(await oauth.authorizationUrl(clientId, newProof())));
  assert.match(textOf(page), 'Sign in');
  assert.not.match(textOf(page), 'Allow');
});

test('a session is of the client that began it: another client of the same user does not find it', async () => {
  const { oauth, url } = gateway;
  const [one, two] = [await oauth.signIn(clientId, USER), await oauth.signIn(await oauth.client(), USER)];
  const ask = async (token: string, method: string, session?: string) => {
    const params =
      method === 'initialize'
        ? { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'spec', version: '1' } }
        : {};
    const answer = await fetch(`${url}/mcp/tools`, {
      method: 'POST',
      headers: {
        ...{ Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
        Accept: 'application/json, text/event-stream',
        ...(session === undefined ? {} : { 'Mcp-Session-Id': session }),
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
    await answer.body?.cancel();
    return answer;
  };
  const begun = await ask(one.access_token, 'initialize');
  const session = begun.headers.get('mcp-session-id') ?? '';
  assert.equal([begun.status, session === ''], [200, false]);
  assert.is((await ask(one.access_token, 'tools/list', session)).status, 200);
  assert.is((await ask(two.access_token, 'tools/list', session)).status, 404);
  assert.is((await ask(one.access_token, 'tools/list', session)).status, 200);
});

test('cookies of the sign-in are for its pages only, and for this port', async () => {
  const { oauth, url } = gateway;
  const { port } = new URL(url);
  const browser = new ScriptedBrowser(url);
  pageOf(await browser.open(await oauth.authorizationUrl(clientId, newProof())));
  await browser.press('Sign in', { username: 'ada', password: PASSWORD });
  assert.ok(browser.cookies.length > 0);
  for (const { name, path, written } of browser.cookies) {
    assert.match(path, /^\/(?:oauth|connections)/, written);
    assert.match(name, port, written);
    assert.match(written, /HttpOnly/i);
    assert.match(written, /SameSite=(?:Lax|Strict)/i);
  }
  // Another program on this computer gets all cookies that a browser sends to its port: they open nothing here.
  const cookie = browser.cookies.map(({ name, value }) => `${name}=${value}`).join('; ');
  for (const path of ['/gateway/registry', '/auth/me', '/mcp/tools/tools/list']) {
    const headers = { Cookie: cookie, 'X-Stagedoor-Console': '1', Origin: url };
    assert.is((await fetch(url + path, { headers })).status, 401, path);
  }
});

test('no parameter leads a browser away', async () => {
  const { oauth, url } = gateway;
  const evil = 'https://evil.example/';
  const { authorization_endpoint: endpoint } = await oauth.metadata();
  const places = [
    `${endpoint}?client_id=unknown&response_type=code&redirect_uri=${encodeURIComponent(evil)}`,
    `${endpoint}?client_id=${clientId}&response_type=code&redirect_uri=${encodeURIComponent(evil)}`,
    `${url}/oauth/authorize//evil.example?client_id=${clientId}`,
    `${url}/oauth/interaction/none?return_to=${evil}`,
    `${url}//evil.example/oauth`,
  ];
  for (const place of places) {
    const at = await new ScriptedBrowser(url).open(place);
    assert.ok(isPage(at), `${place} led to ${at}`);
    assert.ok(pageOf(at).status >= 400, place);
  }
});

test('a Host that is not ours changes no document, and is refused', async () => {
  const { wire, url } = gateway;
  const forged = await wire.exchange('/.well-known/oauth-authorization-server', {
    ...{ method: 'GET', headers: { Host: 'evil.example' } },
  });
  assert.is(forged.status, 403);
  for (const headers of [
    { 'X-Forwarded-Host': 'evil.example', 'X-Forwarded-Proto': 'https' },
    { Forwarded: 'host=evil.example' },
  ]) {
    const { text } = await wire.exchange('/.well-known/oauth-authorization-server', {
      method: 'GET',
      headers,
    });
    assert.not.match(text, 'evil.example');
    assert.is(JSON.parse(text).issuer, url);
  }
});

test('on a public address without TLS there is no sign-in by any name but those of this machine', async () => {
  const open = await startGuarded({ env: { GATEWAY_HOST: '0.0.0.0', MCP_GATEWAY_HOST: '0.0.0.0' } });
  try {
    const port = new URL(open.url).port;
    const statuses = async (host: string) => {
      const paths = [
        '/.well-known/oauth-authorization-server',
        '/.well-known/oauth-protected-resource',
        '/oauth/jwks',
      ];
      const headers = { Host: `${host}:${port}` };
      const answers = paths.map((path) => open.wire.exchange(path, { method: 'GET', headers }));
      return (await Promise.all(answers)).map(({ status }) => status);
    };
    assert.equal(await statuses('localhost'), [200, 200, 200]);
    assert.equal(await statuses('gateway.example'), [404, 404, 404]);
    const refused = await open.wire.exchange('/mcp', {
      body: '{}',
      headers: { Host: `gateway.example:${port}` },
    });
    assert.equal([refused.status, refused.headers['www-authenticate']], [401, 'Bearer']);
  } finally {
    await open.remove();
  }
});

test('tokens in a query are refused, and appear in no log', async () => {
  const { oauth, program } = gateway;
  const tokens = await oauth.signIn(clientId);
  assert.is(
    (await fetch(`${gateway.url}/mcp/tools/tools/list?access_token=${tokens.access_token}`)).status,
    401,
  );
  await oauth.use(tokens.access_token);
  await oauth.refresh(clientId, tokens.refresh_token);
  for (const secret of [tokens.access_token, tokens.refresh_token, PASSWORD])
    assert.not.match(program.out + program.err, secret);
  const { body } = await gateway.admin('GET /gateway/audit?limit=200');
  assert.not.match(JSON.stringify(body), tokens.refresh_token);
});

// The last ones: they use up the registrations of this address.

test('a registration over 8 KiB, or with too many redirect URIs, is refused', async () => {
  const { oauth } = gateway;
  const many = Array.from({ length: 11 }, (_, n) => `https://app.example.com/${n}`);
  for (const body of [
    { redirect_uris: many },
    { redirect_uris: [CALLBACK], contacts: ['x'.repeat(9_000)] },
  ]) {
    const { status } = await oauth.register(body);
    assert.ok([400, 413].includes(status), String(status));
  }
});

test('a flood of registrations ends with 429, before anything else is looked at', async () => {
  const { oauth, admin } = gateway;
  const statuses: number[] = [];
  for (let n = 0; n < 15; n += 1) statuses.push((await oauth.register({ redirect_uris: [CALLBACK] })).status);
  assert.is(statuses.at(-1), 429, statuses.join());
  const broken = await oauth.register({ redirect_uris: 'none' });
  assert.is(broken.status, 429);
  assert.ok(Number(broken.headers.get('retry-after')) > 0);
  assert.equal(statusAndCode(await admin('GET /gateway/registry')), [200, undefined]);
});

test.run();

/** Whoever sent the user there gets no answer, not even a refusal. */
async function refusesOnPage(asked: URL): Promise<void> {
  const at = await new ScriptedBrowser(gateway.url).open(asked);
  assert.ok(isPage(at), `sent to ${at}`);
  const { status } = pageOf(at);
  assert.ok(status >= 400 && status < 500, `${status} for ${asked.searchParams.get('redirect_uri')}`);
}
