// A gateway whose users sign in at an identity provider: a second authorization server, on a port of its own. Another provider is down.

import { decodeJwt } from 'jose/jwt/decode';
import { pino } from 'pino';
import * as assert from 'uvu/assert';
import { loadConfig } from '../../src/config/config.ts';
import { ConfigError } from '../../src/config/config-error.ts';
import { type RunningServer, startServer } from '../../src/server/server.ts';
import { serving } from '../helpers/backends/function-backend.ts';
import { newProof, pageOf, ScriptedBrowser, textOf } from '../helpers/browsers/scripted-browser.ts';
import { folderOfAll } from '../helpers/folder.ts';
import { PASSWORD } from '../helpers/http/accounts.ts';
import {
  answerOf,
  type CompanyProvider,
  linkTo,
  signInAt,
  startCompanyProvider,
} from '../helpers/identity/company-provider.ts';
import { CALLBACK, OAuthCaller } from '../helpers/identity/oauth-caller.ts';
import { rejects } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('a gateway with the accounts of a company', { timeoutMs: 120_000 });
const folder = folderOfAll(test);
const DOWN = { issuer: 'http://127.0.0.1:1', client_id: 'gateway', client_secret: 'unused', label: 'Down' };

let provider: CompanyProvider;
let server: RunningServer;
let oauth: OAuthCaller;
let clientId = '';
test.before(async () => {
  provider = await startCompanyProvider();
  const roles = {
    staff: { role: 'user', templates: ['tools'] },
    writers: { role: 'user', templates: ['secrets'] },
    readers: { role: 'user', scopes: ['gateway:read'] },
    operators: { role: 'admin', scopes: ['gateway:read', 'gateway:write'], templates: ['tools'] },
  };
  const env = {
    ...{ GATEWAY_ADMIN_PASSWORD: PASSWORD, GATEWAY_DATABASE_URL: 'sqlite:///gateway.db' },
    GATEWAY_AUTH_PROVIDERS: JSON.stringify([
      provider.setting({ roles, require: { hd: 'a.example' }, id_jag: true }),
      { ...DOWN, roles },
    ]),
  };
  const config = loadConfig({ cwd: folder(), env, flags: { port: '0', host: '127.0.0.1' } });
  server = await startServer(config, { log: pino({ level: 'silent' }) });
  for (const name of ['tools', 'secrets'])
    await server.gateway.register(name, { id: name, handler: serving({}) }, { waitMs: 20_000 });
  oauth = new OAuthCaller(server.urls[0] ?? '');
  clientId = await oauth.client();
});
test.after(async () => {
  await server?.close();
  await provider?.close();
});

/** The login page of a client's request. */
async function opened() {
  const proof = newProof();
  const browser = new ScriptedBrowser(oauth.url);
  pageOf(await browser.open(await oauth.authorizationUrl(clientId, proof)));
  return { browser, proof };
}

async function tokensOf(user: string) {
  const { browser, proof } = await opened();
  const consent = await signInAt(provider, browser, user);
  assert.match(textOf(consent), 'Allow Spec client?');
  const back = (await browser.press('Allow')) as URL;
  const { body } = await oauth.redeem(clientId, back.searchParams.get('code') ?? '', proof);
  return { access: String(body.access_token), refresh: String(body.refresh_token) };
}

test('makes an account at the first sign-in, with the role of its group, and finds it again by its subject', async () => {
  provider.users.set('s-1', {
    preferred_username: 'eve',
    hd: 'a.example',
    email: 'eve@example.com',
    groups: ['staff'],
  });
  const { access: token } = await tokensOf('s-1');
  assert.is(await oauth.use(token), 200);
  assert.is(await oauth.use(token, '/mcp/secrets/tools/list'), 404);
  provider.users.set('s-1', { preferred_username: 'renamed', hd: 'a.example', groups: ['staff'] });
  const { browser } = await opened();
  assert.match(textOf(await signInAt(provider, browser, 's-1')), 'It acts as eve', 'a name is only a name');
});

test('a refresh reads the groups again; a leaver is out then, until the next sign-in', async () => {
  const claims = { preferred_username: 'fay', hd: 'a.example', groups: ['staff'] };
  provider.users.set('s-6', claims);
  const { access, refresh } = await tokensOf('s-6');
  assert.is(await oauth.use(access), 200);
  provider.users.set('s-6', { ...claims, groups: ['writers'] });
  const { body } = await oauth.refresh(clientId, refresh);
  const token = String(body.access_token);
  assert.equal([await oauth.use(token), await oauth.use(token, '/mcp/secrets/tools/list')], [404, 200]);
  provider.users.delete('s-6');
  assert.is((await oauth.refresh(clientId, String(body.refresh_token))).body.error, 'invalid_grant');
  assert.is(await oauth.use(token, '/mcp/secrets/tools/list'), 401);
  provider.users.set('s-6', claims);
  assert.is(await oauth.use((await tokensOf('s-6')).access), 200);
});

test('a provider that returns another user ends the account until the next sign-in', async () => {
  const claims = { preferred_username: 'una', hd: 'a.example', groups: ['staff'] };
  provider.users.set('s-20', claims);
  const { access, refresh } = await tokensOf('s-20');
  provider.lie.userinfo = { ...claims, sub: 's-21', groups: ['writers'] };
  const { body } = await oauth.refresh(clientId, refresh);
  provider.lie.userinfo = undefined;
  assert.is(body.error, 'invalid_grant', JSON.stringify(body));
  assert.equal([await oauth.use(access), await oauth.use(access, '/mcp/secrets/tools/list')], [401, 401]);
  assert.is(await oauth.use((await tokensOf('s-20')).access), 200);
});

test('a userinfo that is refused ends the account; one that fails is asked for again with the next token', async () => {
  const claims = { preferred_username: 'ute', hd: 'a.example', groups: ['staff'] };
  provider.users.set('s-24', claims);
  const { access, refresh } = await tokensOf('s-24');
  provider.lie.userinfo = 503;
  const unavailable = await oauth.refresh(clientId, refresh);
  // Of a proxy in front of it, or because it was asked too often.
  provider.lie.userinfo = 403;
  const { body } = await oauth.refresh(clientId, String(unavailable.body.refresh_token));
  assert.is(await oauth.use(access), 200);
  provider.lie.userinfo = undefined;
  provider.users.set('s-24', { ...claims, groups: ['writers'] });
  const again = await oauth.refresh(clientId, String(body.refresh_token));
  const token = String(again.body.access_token);
  assert.equal([await oauth.use(token), await oauth.use(token, '/mcp/secrets/tools/list')], [404, 200]);
  provider.lie.userinfo = 403;
  provider.lie.challenge = 'Bearer error="insufficient_scope"';
  const { body: refused } = await oauth.refresh(clientId, String(again.body.refresh_token));
  provider.lie.userinfo = undefined;
  provider.lie.challenge = undefined;
  assert.equal([refused.error, await oauth.use(token, '/mcp/secrets/tools/list')], ['invalid_grant', 401]);
});

test('a refresh that names another user ends the account until the next sign-in, and gives nothing of that user', async () => {
  const claims = {
    ...{ preferred_username: 'ulf', email: 'ulf@example.com' },
    ...{ hd: 'a.example', groups: ['staff'] },
  };
  provider.users.set('s-22', claims);
  const { access, refresh } = await tokensOf('s-22');
  provider.lie.idToken = { ...claims, sub: 's-23', groups: ['writers'] };
  const { body } = await oauth.refresh(clientId, refresh);
  provider.lie.idToken = undefined;
  assert.is(body.error, 'invalid_grant', JSON.stringify(body));
  assert.equal([await oauth.use(access), await oauth.use(access, '/mcp/secrets/tools/list')], [401, 401]);
  const ulf = (await server.auth.accounts.users()).find(({ username }) => username === 'ulf');
  assert.equal([ulf?.isActive, ulf?.templates], [false, ['tools']]);
  assert.is(await oauth.use((await tokensOf('s-22')).access), 200);
});

/** What a token may do, as the gateway says and as it does. */
async function rightsOf(token: string) {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const me = await fetch(`${oauth.url}/auth/me`, { headers });
  const { scopes } = (await me.json()) as { readonly scopes: readonly string[] };
  const body = JSON.stringify({ name: 'any', arguments: {} });
  const called = await fetch(`${oauth.url}/mcp/tools/tools/call`, { method: 'POST', headers, body });
  await called.body?.cancel();
  return { scopes, mayCall: called.status !== 403 };
}

test('the scopes of a group limit the account at every door, and follow the group', async () => {
  const claims = { preferred_username: 'lea', hd: 'a.example', groups: ['readers'] };
  provider.users.set('s-9', claims);
  const proof = newProof();
  const browser = new ScriptedBrowser(oauth.url);
  await browser.open(await oauth.authorizationUrl(clientId, proof));
  assert.not.match(textOf(await signInAt(provider, browser, 's-9')), 'Call tools');
  const back = (await browser.press('Allow')) as URL;
  const { body } = await oauth.redeem(clientId, back.searchParams.get('code') ?? '', proof);
  const LIMITED = { scopes: ['gateway:read'], mayCall: false };
  assert.is(body.scope, 'gateway:read');
  assert.equal(await rightsOf(String(body.access_token)), LIMITED);

  const { accounts } = server.auth;
  const lea = (await accounts.users()).find(({ username }) => username === 'lea');
  assert.ok(lea);
  const console = await server.auth.logins.issueToken(lea, 'provider');
  assert.equal(await rightsOf(console.accessToken), LIMITED, 'the token of the console');
  const { key } = await accounts.createApiKey({ name: 'of lea', permissions: ['admin'], ownerId: lea.id });
  assert.equal(await rightsOf(key), LIMITED, 'a key of the account');

  provider.users.set('s-9', { ...claims, groups: ['staff'] });
  const wider = await oauth.refresh(clientId, String(body.refresh_token));
  assert.is(wider.body.scope, 'gateway:read', 'the consent was for no more');
  const ALL = { scopes: ['gateway:read', 'tools:call'], mayCall: true };
  assert.equal(await rightsOf(key), ALL);
  const { access, refresh } = await tokensOf('s-9');
  assert.equal(await rightsOf(access), ALL);
  provider.users.set('s-9', { ...claims, groups: ['operators'] });
  const { body: renewed } = await oauth.refresh(clientId, refresh);
  assert.equal(await rightsOf(String(renewed.access_token)), LIMITED);
  assert.equal(await rightsOf(access), LIMITED, 'also the earlier token');
  assert.equal(await rightsOf(key), { scopes: ['gateway:read', 'gateway:write'], mayCall: false });
});

test('its identity assertions give tokens of the account, by issuer and subject, and nothing else', async () => {
  const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
  const agent = { grant_types: ['authorization_code', JWT_BEARER] };
  const { body: client } = await oauth.register({
    ...{ client_name: 'Agent', redirect_uris: [CALLBACK], token_endpoint_auth_method: 'client_secret_post' },
    ...agent,
  });
  const { client_id: id, client_secret: secret } = client;
  const exchange = async (claims: object, more: Readonly<Record<string, string>> = {}) => {
    const own = {
      aud: oauth.url,
      client_id: id,
      hd: 'a.example',
      preferred_username: 'kim',
      groups: ['staff'],
    };
    const assertion = await provider.assertion({ ...own, ...claims });
    const fields = {
      grant_type: JWT_BEARER,
      client_id: String(id),
      client_secret: String(secret),
      assertion,
    };
    return { ...(await oauth.token({ ...fields, ...more })), assertion };
  };
  const metadata = await oauth.metadata();
  assert.ok((metadata.grant_types_supported as string[]).includes(JWT_BEARER));
  const refused = {
    'no account, and nothing that makes one': { sub: 's-10', groups: undefined },
    'another company': { sub: 's-10', hd: 'b.example' },
    'no group with a role': { sub: 's-10', groups: ['admin'] },
    'the name of a local account': { sub: 's-10', preferred_username: 'admin' },
    'another client': { sub: 's-10', client_id: clientId },
    'another gateway': { sub: 's-10', aud: 'https://other.example' },
  };
  for (const [what, claims] of Object.entries(refused)) {
    const { status, body } = await exchange(claims);
    assert.equal([status, body.error], [400, 'invalid_grant'], `${what}: ${JSON.stringify(body)}`);
  }
  const { body, assertion } = await exchange({ sub: 's-10' });
  const token = String(body.access_token);
  assert.equal([body.refresh_token, await oauth.use(token)], [undefined, 200], JSON.stringify(body));
  assert.is(await oauth.use(token, '/mcp/secrets/tools/list'), 404, 'the templates of its group');
  assert.is(await oauth.use(assertion), 401, 'it is no access token');
  const kim = (await server.auth.accounts.users()).find(({ username }) => username === 'kim');
  assert.match(JSON.stringify(decodeJwt(token)), `"sub":"${kim?.id}"`);

  provider.users.set('s-10', { preferred_username: 'kim', hd: 'a.example', groups: ['staff'] });
  const consented = await tokensOf('s-10');
  const limited = await exchange({ sub: 's-10', groups: ['readers'], preferred_username: 'other' });
  assert.equal([limited.status, limited.body.scope], [200, 'gateway:read'], JSON.stringify(limited.body));
  const bare = await exchange({ sub: 's-10', hd: undefined, groups: undefined });
  assert.is(bare.status, 200, 'the account is there, and its provider knows the user');
  const again = await exchange({ sub: 's-10', jti: decodeJwt(assertion).jti });
  assert.is(again.body.error, 'invalid_grant', 'used before');

  provider.users.delete('s-10');
  assert.is((await oauth.refresh(clientId, consented.refresh)).body.error, 'invalid_grant');
  assert.is(await oauth.use(token), 401, 'the account is disabled');
  assert.is((await exchange({ sub: 's-10', groups: undefined })).body.error, 'invalid_grant');
});

test('does not start when an issuer vouches for accounts and for subjects without one', async () => {
  const both = { issuer: provider.issuer, id_jag: true, roles: { staff: { role: 'user' } } };
  const env = {
    ...{ GATEWAY_ADMIN_PASSWORD: PASSWORD, GATEWAY_DATABASE_URL: 'memory://' },
    GATEWAY_AUTH_PROVIDERS: JSON.stringify([provider.setting(both)]),
    GATEWAY_AUTH_ISSUERS: JSON.stringify([both]),
  };
  const config = loadConfig({ cwd: folder(), env, flags: { port: '0', host: '127.0.0.1' } });
  await rejects(startServer(config, { log: pino({ level: 'silent' }) }), ConfigError, /auth\.issuers, too/);
});

test('refuses users without a role, and the name of a local account, and says what to do', async () => {
  provider.users.set('s-2', { preferred_username: 'guest', hd: 'a.example', groups: ['guests'] });
  provider.users.set('s-3', { preferred_username: 'admin', hd: 'a.example', groups: ['staff'] });
  // A group of the provider with the name of our role.
  provider.users.set('s-4', { preferred_username: 'boss', hd: 'a.example', groups: ['admin'] });
  for (const [user, words] of [
    ['s-4', 'No group of the token has a role'],
    ['s-2', 'No group of the token has a role'],
    ['s-3', 'has the name admin already'],
  ] as const) {
    const { browser } = await opened();
    const page = await signInAt(provider, browser, user);
    assert.ok([400, 403].includes(page.status), `${user}: ${page.status} ${textOf(page)}`);
    assert.match(textOf(page), words);
    assert.match(textOf(page), 'Back to the sign-in');
  }
});

test('signs in to a local account that an admin has linked, by the command that the page shows', async () => {
  const { accounts } = server.auth;
  const local = { username: 'hal', email: 'hal@localhost', password: PASSWORD, role: 'admin' } as const;
  const { id } = await accounts.createUser(local);
  provider.users.set('-s 7', { preferred_username: 'hal', hd: 'a.example', groups: ['staff'] });
  const refused = textOf(await signInAt(provider, (await opened()).browser, '-s 7'));
  assert.match(refused, `user link hal --issuer=${provider.issuer} --subject='-s 7'`);
  const { key } = await accounts.createApiKey({ name: 'links', permissions: ['admin'] });
  const { status } = await fetch(`${oauth.url}/auth/users/${id}/link`, {
    method: 'POST',
    headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
    body: JSON.stringify({ issuer: provider.issuer, subject: '-s 7' }),
  });
  assert.is(status, 200);
  assert.is(await oauth.use((await tokensOf('-s 7')).access), 200);
  assert.is((await accounts.user(id)).role, 'user', 'its groups decide');
});

test('signs in on the page of connections, too, and comes back to it', async () => {
  provider.users.set('s-8', { preferred_username: 'ivy', hd: 'a.example', groups: ['staff'] });
  const browser = new ScriptedBrowser(oauth.url);
  assert.match(textOf(pageOf(await browser.open(`${oauth.url}/connections`))), 'Sign in to see the accounts');
  assert.match(textOf(await signInAt(provider, browser, 's-8')), 'None yet');
});

test('several pages of one browser are on their way at the same time, wherever they began', async () => {
  provider.users.set('s-11', { preferred_username: 'max', hd: 'a.example', groups: ['staff'] });
  const browser = new ScriptedBrowser(oauth.url);
  const begin = async (address: string | URL) => {
    await browser.open(address);
    return (await browser.open(linkTo('Example Corp', browser))) as URL;
  };
  const client = () => oauth.authorizationUrl(clientId, newProof());
  const first = await begin(await client());
  const listed = await begin(`${oauth.url}/connections`);
  const third = await begin(await client());
  assert.match(textOf(pageOf(await browser.open(await answerOf(provider, listed, 's-11')))), 'None yet');
  for (const there of [third, first])
    assert.match(
      textOf(pageOf(await browser.open(await answerOf(provider, there, 's-11')))),
      'It acts as max',
    );
  const names = () => browser.cookies.filter(({ name }) => name.includes('signing_in'));
  assert.equal(names(), [], 'those that are over have no cookie');

  for (let n = 0; n < 3; n += 1) await begin(await client());
  const twice = [...new Set(names().map(({ name, value }) => `${name}=${value}`))].flatMap((one) => [
    one,
    one,
    one,
  ]);
  const further = await fetch(`${oauth.url}${linkTo('Example Corp', browser)}`, {
    headers: { cookie: twice.join('; ') },
    redirect: 'manual',
  });
  assert.not.match(
    further.headers.getSetCookie().join(),
    'Max-Age=0',
    'a cookie that is sent twice counts once',
  );

  const console = `${oauth.url}/oauth/console/${new URL(provider.issuer).host.replace(':', '-')}`;
  const many: URL[] = [];
  for (let n = 0; n < 12; n += 1) many.push((await browser.open(console)) as URL);
  assert.ok(names().length <= 16, `${names().length} cookies for two paths`);
  const [oldest, newest] = [many.at(0), many.at(-1)];
  assert.match(
    textOf(pageOf(await browser.open(await answerOf(provider, oldest as URL, 's-11')))),
    'no longer valid',
  );
  await browser.open(await answerOf(provider, newest as URL, 's-11'));
  assert.is(browser.page?.url.pathname, '/console/');
});

test('takes an answer once, and only in the browser that asked for it', async () => {
  provider.users.set('s-5', { preferred_username: 'carl', hd: 'a.example', groups: ['staff'] });
  const answered = async () => {
    const { browser } = await opened();
    const there = await browser.open(linkTo('Example Corp', browser));
    return { browser, answer: await answerOf(provider, there as URL, 's-5') };
  };
  const first = await answered();
  const stranger = new ScriptedBrowser(oauth.url);
  assert.match(textOf(pageOf(await stranger.open(first.answer))), 'no longer valid');
  assert.match(textOf(pageOf(await first.browser.open(first.answer))), 'no longer valid', 'it was used up');
  const second = await answered();
  const forged = new URL(second.answer);
  forged.searchParams.set('iss', 'https://other.example');
  assert.is(pageOf(await second.browser.open(forged)).status, 503, 'the answer of another issuer');
  const third = await answered();
  assert.match(textOf(pageOf(await third.browser.open(third.answer))), 'It acts as carl');
});

test('a provider that cannot be reached is named on the login page, which goes on', async () => {
  const { browser } = await opened();
  const page = pageOf(await browser.open(linkTo('Down', browser)));
  assert.is(page.status, 503);
  assert.match(textOf(page), 'Down cannot be reached at this moment. Try again in a minute');
  const consent = pageOf(await browser.press('Sign in', { username: 'admin', password: PASSWORD }));
  assert.match(textOf(consent), 'It acts as admin');
});

test('sign-ins that one address begins and does not finish are bounded, at every page that begins them', async () => {
  const paths = ['/connections/provider/', '/oauth/device/BCDFGHJK/provider/', '/oauth/console/'];
  const browser = new ScriptedBrowser(oauth.url);
  await browser.open(`${oauth.url}/connections`);
  const id = linkTo('Example Corp', browser).split('/').at(-1);
  const statuses = new Map<number, number>();
  for (let n = 0; n < 90; n += 1) {
    const { status } = await fetch(`${oauth.url}${paths[n % 3]}${id}`, { redirect: 'manual' });
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }
  assert.ok((statuses.get(303) ?? 0) <= 60, JSON.stringify([...statuses]));
  assert.is((statuses.get(303) ?? 0) + (statuses.get(429) ?? 0), 90, JSON.stringify([...statuses]));
});

test.run();
