// What the authorization server refuses, and what ends a grant.

import { get } from 'node:http';
import { connect } from 'node:net';
import * as assert from 'uvu/assert';
import { databaseUnavailable } from '../../src/domain/errors/gateway-errors.ts';
import { textOf } from '../helpers/browsers/scripted-browser.ts';
import { PASSWORD } from '../helpers/http/accounts.ts';
import { appFor } from '../helpers/http/app.ts';
import {
  allow,
  askToken,
  Browser,
  begin,
  partsOf,
  REDIRECT,
  register,
  startSignIn,
  tokensOf,
} from '../helpers/identity/sign-in.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('refusals of the authorization server');
const app = appFor(test, () => startSignIn(), 'each');

const refresh = (client_id: string, refresh_token = '') =>
  askToken(app.url, { grant_type: 'refresh_token', client_id, refresh_token });
async function lastUseOf(clientId: string): Promise<unknown> {
  const { text } = await app.as(app.admin, 'GET', '/auth/clients');
  const listed: { client_id: string; last_used_at: unknown }[] = JSON.parse(text);
  return listed.find(({ client_id: id }) => id === clientId)?.last_used_at;
}
const grants = () => app.oauthStore.oauth.count({ kind: 'grant' });

test('a replayed code ends the grant, and so do concurrent redemptions', async () => {
  const { client_id, ...client } = await register(app.url);
  const { code, verifier, refresh_token } = await tokensOf(app.url, { client_id, ...client });
  const redeem = {
    grant_type: 'authorization_code',
    code,
    client_id,
    redirect_uri: REDIRECT,
    code_verifier: verifier,
  };
  assert.is(await grants(), 1);
  assert.equal((await askToken(app.url, redeem)).body.error, 'invalid_grant');
  assert.is(await grants(), 0);
  assert.is((await refresh(client_id, refresh_token)).body.error, 'invalid_grant');
  const begun = await begin(app.url, { client_id, ...client });
  const again = { ...redeem, code: (await allow(begun)).get('code') ?? '', code_verifier: begun.verifier };
  const answers = await Promise.all([1, 2, 3].map(() => askToken(app.url, again)));
  assert.ok(answers.filter(({ status }) => status === 200).length <= 1);
  assert.is(await grants(), 0);
});

test('a grant of a client that does not refresh ends with its access token', async () => {
  const redirects = [REDIRECT];
  const plain = { client_name: 'Plain', redirect_uris: redirects, token_endpoint_auth_method: 'none' };
  for (const [grant_types, isKept] of [
    [['authorization_code'], false],
    [['authorization_code', 'refresh_token'], true],
  ] as const) {
    const client = await register(app.url, { ...plain, grant_types: [...grant_types] });
    const { access_token, refresh_token } = await tokensOf(app.url, client);
    assert.is(refresh_token !== undefined, isKept);
    const { grant_id: id, exp } = partsOf(access_token).claims;
    const rows = await app.oauthStore.oauth.list({ kind: 'grant' }, 100);
    const endMs = Date.parse(rows.find(({ grantId }) => grantId === id)?.expiresAt ?? '');
    if (isKept) assert.ok(endMs > Number(exp) * 1_000 + 24 * 3_600_000);
    else assert.ok(Math.abs(endMs - Number(exp) * 1_000) < 5_000, `${endMs} ${exp}`);
  }
});

test('failed logins of the page are audited up to a number per minute; the next entry says how many others', async () => {
  const { browser, page } = await begin(app.url, await register(app.url));
  const attempt = (username: string, password = 'wrong horse') =>
    browser.submit(page, 'Sign in', { username, password });
  for (let n = 0; n < 35; n += 1) await attempt(`nobody-${n}`);
  const entries = async () =>
    (await app.auth.audit.list({ limit: 200 })).filter(({ action }) => action === 'POST /oauth/login');
  const failed = await entries();
  assert.is(failed.length, 30);
  assert.equal(
    [...new Set(failed.map(({ actorName, status }) => `${actorName} ${status}`))],
    ['unknown 401'],
  );
  assert.not.match(JSON.stringify(failed), /nobody/);
  await attempt('ada', PASSWORD);
  const [last] = await entries();
  assert.equal([last?.actorName, last?.status, last?.suppressed], ['ada', 200, 5]);
});

test('so are the sign-ins and the answers of one user, which need no right', async () => {
  const { browser, page } = await begin(app.url, await register(app.url));
  for (let n = 0; n < 35; n += 1)
    await browser.submit(page, 'Sign in', { username: 'ada', password: PASSWORD });
  const entries = (await app.auth.audit.list({ limit: 200 })).filter(({ actorName }) => actorName === 'ada');
  assert.is(entries.length, 30);
});

test('equal refreshes get the same answer; one after its successor was used ends the grant', async () => {
  const client = await register(app.url);
  const { refresh_token: first } = await tokensOf(app.url, client);
  const answers = await Promise.all([1, 2, 3].map(() => refresh(client.client_id, first)));
  assert.equal(
    answers.map(({ status }) => status),
    [200, 200, 200],
  );
  assert.is(new Set(answers.map(({ body }) => body.refresh_token)).size, 1);
  const second = String(answers[0]?.body.refresh_token);
  assert.is((await refresh(client.client_id, second)).status, 200);
  assert.is((await refresh(client.client_id, first)).body.error, 'invalid_grant');
  assert.is(await grants(), 0);
  assert.is((await refresh(client.client_id, second)).body.error, 'invalid_grant');
});

test('the revocation of an access token and of a refresh token ends the grant, for its own client only', async () => {
  const client = await register(app.url);
  const other = await register(app.url);
  for (const kind of ['access_token', 'refresh_token'] as const) {
    const tokens = await tokensOf(app.url, client);
    const revoke = (client_id: string) =>
      fetch(`${app.url}/oauth/revoke`, {
        method: 'POST',
        body: new URLSearchParams({ token: tokens[kind] ?? '', client_id }),
      });
    await revoke(other.client_id);
    assert.is(await grants(), 1, kind);
    assert.is((await revoke(client.client_id)).status, 200);
    assert.is(await grants(), 0, kind);
  }
});

test('scopes that change the gateway are dropped; when nothing is left the client is told', async () => {
  const client = await register(app.url);
  const begun = await begin(app.url, client, {
    scope: 'openid offline_access tools:call admin gateway:write',
  });
  const consent = await begun.browser.signIn(begun.page, 'admin');
  assert.match(consent.text, /It also asked to/);
  const fields = new URL((await begun.browser.submit(consent, 'Allow')).url).searchParams;
  const { body } = await askToken(app.url, {
    ...{ grant_type: 'authorization_code', code: fields.get('code') ?? '', client_id: client.client_id },
    ...{ redirect_uri: REDIRECT, code_verifier: begun.verifier },
  });
  assert.is(partsOf(String(body.access_token)).claims.scope, 'tools:call');
  const nothing = await begin(app.url, client, { scope: 'admin' });
  assert.is(new URL(nothing.page.url).searchParams.get('error'), 'invalid_scope');
});

test('no answer goes to an address that was not registered', async () => {
  const client = await register(app.url);
  const right = await authorizationUrl(client.client_id);
  for (const uri of [
    'http://127.0.0.1:53111/callback/more',
    'http://127.0.0.1:53111/callback?x=1',
    'http://127.0.0.1:53111/callback#x',
    'http://user@127.0.0.1:53111/callback',
    'http://127.0.0.1.evil.example/callback',
    'http://localhost:53111/callback',
    'https://127.0.0.1:53111/callback',
    'http://127.0.0.1:53111/CALLBACK',
  ]) {
    right.searchParams.set('redirect_uri', uri);
    const page = await new Browser(app.url).open(right.href);
    assert.is(page.status, 400, uri);
  }
  right.searchParams.set('redirect_uri', 'http://127.0.0.1:61234/callback');
  assert.is((await new Browser(app.url).open(right.href)).status, 200, 'another port of this machine');
  right.searchParams.delete('code_challenge');
  right.searchParams.set('redirect_uri', REDIRECT);
  const refused = await new Browser(app.url).open(right.href);
  assert.is(new URL(refused.url).searchParams.get('error'), 'invalid_request', 'without PKCE');
});

test('an error before the consent leads to no address that a client chose for itself, without a click', async () => {
  const WEB = 'https://app.example.com/callback?x=1';
  const fields = { token_endpoint_auth_method: 'none', client_name: '<Spec>' };
  const client = await register(app.url, {
    ...fields,
    redirect_uris: [WEB, 'spec-app://callback', REDIRECT],
  });
  const address = await authorizationUrl(client.client_id);
  address.searchParams.set('state', 'mine');
  const bad: readonly (readonly [string, string | undefined, string])[] = [
    ['code_challenge', undefined, 'invalid_request'],
    ['response_type', 'none', 'unsupported_response_type'],
    ['prompt', 'none', 'consent_required'],
    ['scope', 'admin', 'invalid_scope'],
    ['resource', 'https://other.example/', 'invalid_target'],
  ];
  const ask = (browser: Browser, uri: string, [name, value]: (typeof bad)[number]) => {
    const wrong = new URL(address);
    wrong.searchParams.set('redirect_uri', uri);
    if (value === undefined) wrong.searchParams.delete(name);
    else wrong.searchParams.set(name, value);
    return browser.open(wrong.href);
  };
  for (const each of bad) {
    for (const uri of [WEB, 'spec-app://callback']) {
      const page = await ask(new Browser(app.url), uri, each);
      assert.equal([page.status, page.headers.get('location')], [400, null], `${each} at ${uri}`);
      const [, link = ''] = /<a href="([^"]+)">Go to/.exec(page.text) ?? [];
      const answer = new URL(link.replaceAll('&#38;', '&'));
      assert.is(answer.protocol, new URL(uri).protocol);
      const { searchParams: said } = answer;
      assert.equal([said.get('error'), said.get('state'), said.get('iss')], [each[2], 'mine', app.url]);
      assert.match(page.text, '&#60;Spec&#62; cannot be connected');
    }
    const native = await ask(new Browser(app.url), REDIRECT, each);
    assert.is(new URL(native.url).searchParams.get('error'), each[2], 'a program on this computer');
  }
  const resumed = new URL(`/oauth/authorize/${'a'.repeat(43)}${address.search}`, app.url);
  for (const uri of [WEB, REDIRECT]) {
    resumed.searchParams.set('redirect_uri', uri);
    const { status, headers } = await new Browser(app.url).open(resumed.href);
    assert.equal(
      [status, headers.get('location')],
      [400, null],
      `the way back to an unknown request, at ${uri}`,
    );
  }
  const begun = await begin(app.url, client);
  await begun.browser.submit(await begun.browser.signIn(begun.page), 'Allow');
  for (const each of bad) {
    const back = await ask(begun.browser, WEB, each);
    assert.is(new URL(back.url).searchParams.get('error'), each[2], 'the user has allowed this client');
  }
});

test('forms of another origin, of another sign-in and of a page that was answered change nothing', async () => {
  const client = await register(app.url);
  const { browser, page } = await begin(app.url, client);
  const consent = await browser.signIn(page);
  const foreign = await fetch(`${consent.url}/consent`, {
    method: 'POST',
    headers: { origin: 'https://evil.example' },
    body: new URLSearchParams({ decision: 'allow' }),
  });
  assert.is(foreign.status === 403 || foreign.status === 400, true, String(foreign.status));
  const forged = await browser.open(
    `${consent.url}/consent`,
    new URLSearchParams({ decision: 'allow', form_token: 'x' }),
  );
  assert.match(forged.text, />Allow<\/button>/);
  assert.is(await grants(), 0);
  await browser.submit(consent, 'Allow');
  assert.is(await grants(), 1);
  const twice = await browser.submit(consent, 'Allow');
  assert.is(twice.status, 400);
  assert.match(twice.text, /begun in another browser/);
  const bare = await fetch(consent.url);
  assert.is(bare.status, 400);
  assert.match(await bare.text(), /Allow cookies for this address/);
  assert.is(await grants(), 1);
});

test('of two clicks on a button the first one counts, and the second goes on with it', async () => {
  const client = await register(app.url);
  for (const [first, answer] of [
    ['allow', 'code'],
    ['deny', 'error'],
  ] as const) {
    const { browser, page } = await begin(app.url, client);
    const consent = await browser.signIn(page);
    const fields = [...consent.text.matchAll(/name="(form_token)" value="([^"]*)"/g)].map(
      ([, name = '', value = '']): [string, string] => [name, value],
    );
    const { pathname } = new URL(consent.url);
    // A browser drops the answer to this form when it sends the next one.
    const dropped = await fetch(`${consent.url}/consent`, {
      ...{ method: 'POST', redirect: 'manual', body: new URLSearchParams([['decision', first], ...fields]) },
      headers: { origin: app.url, cookie: browser.cookiesFor(pathname) },
    });
    assert.is(dropped.status, 303);
    const { searchParams } = new URL((await browser.submit(consent, 'Allow')).url);
    assert.ok(searchParams.has(answer), String(searchParams));
    assert.is(await grants(), 1);
  }
});

test('a wrong password and a stopped account get no sign-in; the page has no script and a strict policy', async () => {
  const client = await register(app.url);
  const { browser, page } = await begin(app.url, client);
  const policy = page.headers.get('content-security-policy') ?? '';
  assert.match(policy, /default-src 'none'.*frame-ancestors 'none'/);
  assert.not.match(page.text, /<script|onclick|javascript:/);
  const wrong = await browser.signIn(page, 'ada', 'wrong horse');
  assert.is(wrong.status, 401);
  assert.match(wrong.text, /wrong/);
  const tokens = await tokensOf(app.url, client);
  const [ada] = (await app.oauthStore.accounts.findUsers()).filter(({ username }) => username === 'ada');
  await app.auth.accounts.changeUser(ada?.id ?? '', { isActive: false });
  assert.is((await refresh(client.client_id, tokens.refresh_token)).body.error, 'invalid_grant');
});

test('registrations drop what they do not know, and refuse addresses that nothing should answer to', async () => {
  const ask = async (fields: object) => {
    const response = await fetch(`${app.url}/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(fields),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  const cursor = await ask({
    client_name: 'Cursor',
    redirect_uris: ['cursor://anysphere.cursor-mcp/oauth/callback', 'https://www.cursor.com/callback'],
    grant_types: ['authorization_code', 'refresh_token', 'urn:unknown'],
    scope: 'openid offline_access',
    contacts: 'nobody',
    token_endpoint_auth_method: 'none',
  });
  assert.is(cursor.status, 201, JSON.stringify(cursor.body));
  assert.equal([cursor.body.scope, cursor.body.contacts], [undefined, undefined]);
  for (const uri of [
    'javascript:alert(1)',
    'http://evil.example/',
    'https://a.example/#x',
    'https://u@a.example/',
    'nothing',
  ])
    assert.is((await ask({ redirect_uris: [uri] })).body.error, 'invalid_redirect_uri', uri);
  const rest = await Promise.all(Array.from({ length: 8 }, () => ask({ redirect_uris: [REDIRECT] })));
  assert.ok(rest.some(({ status }) => status === 429));
});

test('addresses that a browser handles itself, and hosts that mean something in a policy, cannot be registered', async () => {
  for (const uri of [
    ...['https://*/x', 'https://a;sandbox/x', 'https://a,b.example/x', 'https:a.example/x'],
    ...[
      'filesystem:https://a.example/x',
      'view-source:https://a.example/',
      'intent://a',
      'mailto:a@b.example',
    ],
  ]) {
    const response = await fetch(`${app.url}/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ redirect_uris: [uri] }),
    });
    assert.is(Object(await response.json()).error, 'invalid_redirect_uri', uri);
  }
});

test('a private scheme is no address of this computer, whatever its host', async () => {
  const metadata = { redirect_uris: ['web+evil://localhost/x'], token_endpoint_auth_method: 'none' };
  const { browser, page } = await begin(app.url, await register(app.url, metadata));
  const { text, headers } = await browser.signIn(page);
  assert.match(text, 'the program that opens links with web+evil:');
  assert.match(headers.get('content-security-policy') ?? '', "form-action 'self' web+evil:;");
});

test('a body that its client does not finish ends its connection, and is no error of the gateway', async () => {
  for (const path of ['token', 'revoke', 'register']) {
    const socket = connect(app.port, '127.0.0.1');
    const head = `POST /oauth/${path} HTTP/1.1\r\nHost: 127.0.0.1:${app.port}\r\n`;
    const type = path === 'register' ? 'application/json' : 'application/x-www-form-urlencoded';
    socket.write(`${head}Content-Type: ${type}\r\nContent-Length: 2000000\r\n\r\n`);
    // Over 1 MiB the gateway ends it.
    const isOver = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    socket.on('error', () => {
      // Reset by the gateway.
    });
    socket.write('a'.repeat(1_500_000));
    await isOver;
  }
  assert.equal(app.warnings, []);
  assert.is((await fetch(`${app.url}/oauth/jwks`)).status, 200);
});

test('while the database is away the answer is 503, and a token works again after it', async () => {
  const { oauthStore: store } = app;
  const client = await register(app.url);
  const { refresh_token, access_token } = await tokensOf(app.url, client);
  const { find, end } = store.oauth;
  store.oauth.find = () => Promise.reject(databaseUnavailable(undefined));
  store.oauth.end = () => Promise.reject(databaseUnavailable(undefined));
  const away = await refresh(client.client_id, refresh_token);
  assert.equal([away.status, away.body.error], [503, 'temporarily_unavailable']);
  const body = new URLSearchParams({ client_id: client.client_id, token: access_token });
  const revoked = await fetch(`${app.url}/oauth/revoke`, { method: 'POST', body });
  assert.equal([revoked.status, revoked.headers.get('retry-after')], [503, '5']);
  Object.assign(store.oauth, { find, end });
  assert.is((await refresh(client.client_id, refresh_token)).status, 200);
  assert.equal(app.warnings, []);
});

test('by another name than its own the server is not there', async () => {
  const { port } = app;
  for (const path of ['/.well-known/oauth-authorization-server', '/oauth/jwks'])
    assert.is(await statusBy(`localhost:${port}`, path), 404, path);
});

test('an admin adds a client that may change the gateway, and removes it with its grants', async () => {
  const body = { name: 'build', redirect_uris: [REDIRECT], scopes: ['gateway:write'], confidential: true };
  const made = await app.as(app.admin, 'POST', '/auth/clients', { body });
  assert.is(made.status, 201, made.text);
  const client = { ...made.body, client_id: String(made.body.client_id), redirect_uris: [REDIRECT] };
  assert.is(await lastUseOf(client.client_id), null);
  const options = { scope: 'tools:call gateway:write', username: 'admin' };
  const tokens = await tokensOf(app.url, client, options);
  assert.is(partsOf(tokens.access_token).claims.scope, 'gateway:write tools:call');
  const stranger = await refresh(client.client_id, tokens.refresh_token);
  assert.equal([stranger.status, stranger.body.error], [401, 'invalid_client'], 'without its secret');
  assert.type(await lastUseOf(client.client_id), 'string');
  const listed = await app.as(app.admin, 'GET', '/auth/clients');
  assert.not.match(listed.text, /secret/);
  assert.is((await app.as(app.admin, 'DELETE', `/auth/clients/${client.client_id}`)).status, 204);
  assert.is(await grants(), 0);
  for (const id of [client.client_id, 'nonsense']) {
    const again = await app.as(app.admin, 'DELETE', `/auth/clients/${id}`);
    assert.equal([again.status, again.body.detail], [404, `There is no client "${id}".`]);
  }
});

test('an admin limits a client to tools and views, whatever its user may use', async () => {
  const lists = { tools: ['demo/read_*'], views: ['desk'] };
  const body = { name: 'limited', redirect_uris: [REDIRECT], ...lists };
  const made = await app.as(app.admin, 'POST', '/auth/clients', { body });
  assert.equal([made.status, made.body.tools, made.body.views], [201, lists.tools, lists.views]);
  const client = { ...made.body, client_id: String(made.body.client_id), redirect_uris: [REDIRECT] };
  const tokens = await tokensOf(app.url, client, { username: 'admin' });
  const me = async ({ access_token }: { readonly access_token: unknown }) => {
    const bearer = { authorization: `Bearer ${access_token}` };
    const { tools, views } = (await app.as(bearer, 'GET', '/auth/me')).body;
    return { tools, views };
  };
  assert.equal(await me(tokens), lists);
  const again = await refresh(client.client_id, tokens.refresh_token);
  assert.equal(await me({ access_token: again.body.access_token }), lists);
});

test('the consent page names the servers, views and tools that client and user have in common', async () => {
  const consentOf = async (lists: object) => {
    const body = { name: 'limited', redirect_uris: [REDIRECT], ...lists };
    const { body: made } = await app.as(app.admin, 'POST', '/auth/clients', { body });
    const client = { ...made, client_id: String(made.client_id), redirect_uris: [REDIRECT] };
    const { browser, page } = await begin(app.url, client);
    const { text } = await browser.signIn(page, 'admin');
    return textOf({ html: /<dl>.*<\/dl>/s.exec(text)?.[0] ?? text });
  };
  const limited = { templates: ['demo'], views: ['desk'], tools: ['demo/read_*', '!demo/read_mail'] };
  assert.match(
    await consentOf(limited),
    /Servers demo Views desk Tools only demo\/read_\*, !demo\/read_mail It may/,
  );
  assert.match(await consentOf({ templates: ['demo'] }), /Servers demo It may/);
  assert.match(await consentOf({}), /Servers all, also later ones It may/);
});

function statusBy(host: string, path: string): Promise<number | undefined> {
  const options = { port: app.port, path, headers: { host } };
  return new Promise((resolve, reject) => {
    get(options, (response) => {
      response.resume();
      resolve(response.statusCode);
    }).on('error', reject);
  });
}

async function authorizationUrl(clientId: string): Promise<URL> {
  const url = new URL('/oauth/authorize', app.url);
  const fields = {
    ...{ response_type: 'code', client_id: clientId, redirect_uri: REDIRECT },
    ...{ code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM', code_challenge_method: 'S256' },
  };
  for (const [name, value] of Object.entries(fields)) url.searchParams.set(name, value);
  return url;
}

test('requests of unknown clients are bounded for each address, those of others are not', async () => {
  const client = await register(app.url);
  const { refresh_token: token } = await tokensOf(app.url, client);
  for (let n = 0; n < 119; n += 1) assert.is((await refresh('unknown', 'x')).status, 401);
  for (let n = 0; n < 3; n += 1) assert.is((await refresh(client.client_id, 'x')).status, 400);
  assert.is((await refresh(client.client_id, token)).status, 200);
  assert.is((await refresh('unknown', 'x')).status, 401);
  const body = new URLSearchParams({ client_id: 'unknown', token: 'x' });
  for (const path of ['token', 'revoke']) {
    const answer = await fetch(`${app.url}/oauth/${path}`, { method: 'POST', body });
    assert.is(answer.status, 429, path);
    assert.ok(Number(answer.headers.get('retry-after')) > 0);
    await answer.body?.cancel();
  }
});

test('those that are sent together are bounded, too', async () => {
  const answers = await Promise.all(Array.from({ length: 150 }, () => refresh('unknown', 'x')));
  const statuses = answers.map(({ status }) => status);
  assert.equal(
    [401, 429].map((status) => statuses.filter((each) => each === status).length),
    [120, 30],
  );
});

test.run();
