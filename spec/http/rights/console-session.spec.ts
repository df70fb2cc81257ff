// The session of the console: a cookie that is valid only with a header that no page of another origin can send.

import type { RequestListener } from 'node:http';
import * as assert from 'uvu/assert';
import { head, openRaw, readAll, readUntil } from '../../helpers/clients/raw-http.ts';
import { PASSWORD, startWithAccounts } from '../../helpers/http/accounts.ts';
import { type AppFixture, appFor, headersOf } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';
import { withRawServer } from '../../transports/raw-server.ts';

const test = suite('the console session');
const app = appFor(test, () => startWithAccounts({ callerCheckMs: 50, logLevel: 'debug' }));
test.before(() => app.serve('demo', 'one'));

const CONSOLE = { 'x-stagedoor-console': '1' };

async function signIn(name = 'ada', headers: Readonly<Record<string, string>> = CONSOLE, on = app) {
  const body = { username: name, password: PASSWORD };
  const answer = await on.ask('POST', '/auth/login', { body, headers });
  const set = answer.headers.get('set-cookie') ?? '';
  return { ...answer, set, cookie: set.split(';')[0] ?? '' };
}

/** Browsers send cookies to every port of their host. */
const nameAt = ({ url }: { readonly url: string }): string => `stagedoor_session_${new URL(url).port}`;

/** Asks as a page of the console who is signed in; `headers`: further ones. */
const whoIs = (cookie: string, headers: Readonly<Record<string, string>> = {}, on: AppFixture = app) =>
  on.ask('GET', '/auth/me', { headers: { cookie, ...CONSOLE, ...headers } });

test('is an HttpOnly, SameSite=Strict cookie with the token of the login', async () => {
  const { status, set, body, headers } = await signIn();
  assert.is(status, 200);
  assert.is(set, `${nameAt(app)}=${body.access_token}; HttpOnly; SameSite=Strict; Path=/; Max-Age=3600`);
  assert.is(headers.get('cache-control'), 'no-store');
});

test('begins only with the console header: other logins set no cookie', async () => {
  for (const headers of [{}, { 'x-stagedoor-console': '0' }, { 'x-stagedoor-console': '' }])
    assert.is((await signIn('ada', headers)).set, '');
  const body = { username: 'ada', password: 'wrong horse' };
  const wrong = await app.ask('POST', '/auth/login', { body, headers: CONSOLE });
  assert.equal([wrong.status, wrong.headers.get('set-cookie')], [401, null]);
});

const PRIVATE = ['x-ratelimit-limit', 'cache-control'];
test('has the permissions and the rate limit of its user', async () => {
  const { cookie } = await signIn();
  const as = (method: string, path: string, body?: unknown) =>
    app.ask(method, path, { headers: { cookie, ...CONSOLE }, body });
  assert.equal((await as('GET', '/auth/me')).body.name, 'ada');
  assert.is((await as('GET', '/auth/users')).status, 403);
  const called = await as('POST', '/mcp/demo/tools/call', { name: 'echo', arguments: { message: 'hi' } });
  assert.is(called.status, 200);
  for (const [method, path] of [
    ...[['HEAD', '/gateway/registry'] as const, ['GET', '/nope'] as const, ['PUT', '/stats'] as const],
  ])
    assert.equal(headersOf(await as(method, path), ...PRIVATE), ['1000', 'no-store'], path);
});

test('is refused with 401 without the console header', async () => {
  const { cookie } = await signIn('admin');
  for (const extra of [{}, { 'x-stagedoor-console': 'true' }, { 'x-stagedoor-console': '1, 1' }]) {
    for (const [method, path] of [
      ['GET', '/auth/me'],
      ['HEAD', '/auth/users'],
      ['GET', '/events'],
      ['POST', '/mcp/demo'],
      ['POST', '/mcp'],
      ['POST', '/auth/logout'],
    ] as const) {
      const body = method === 'POST' ? { jsonrpc: '2.0', id: 1, method: 'ping' } : undefined;
      const { status } = await app.ask(method, path, { headers: { cookie, ...extra }, body });
      assert.is(status, 401, `${method} ${path}`);
    }
  }
});

test('is not used when the request also sends invalid credentials', async () => {
  const { cookie } = await signIn('admin');
  const refused = [{ authorization: 'Bearer nonsense' }, { 'x-api-key': 'sd_0_0' }, { authorization: '' }];
  for (const wrong of refused) assert.is((await whoIs(cookie, { ...wrong })).status, 401);
});

test('is refused when the cookie is not a token or is sent twice', async () => {
  const { cookie } = await signIn('admin');
  const { 'x-api-key': key = '' } = await app.key(['admin']);
  const name = nameAt(app);
  for (const cookies of [
    `${name}=${key}`,
    `${cookie}; ${name}=a.b.c`,
    `${cookie}; ${cookie}`,
    `${name}=`,
    `${name}="a.b.c"`,
    `other_${cookie}`,
    `${name}=${'x'.repeat(5_000)}.y.z`,
  ])
    assert.is((await whoIs(cookies)).status, 401, cookies.slice(0, 60));
  assert.is((await whoIs(`a=b;${cookie} ; c=d`)).status, 200);
});

test('is another one at another gateway of the same host', async () => {
  const other = await startWithAccounts();
  const cookies = [(await signIn('ada')).cookie, (await signIn('admin', CONSOLE, other)).cookie].join('; ');
  assert.is((await whoIs(cookies)).body.name, 'ada');
  assert.is((await whoIs(cookies, {}, other)).body.name, 'admin');
  const out = await other.ask('POST', '/auth/logout', { headers: { cookie: cookies, ...CONSOLE } });
  assert.match(out.headers.get('set-cookie') ?? '', new RegExp(`^${nameAt(other)}=;`));
  assert.is((await whoIs(cookies)).body.name, 'ada');
  await other.close();
});

test('has no port in its name where the address that the browser shows has none', async () => {
  const other = await startWithAccounts({ trustedProxies: ['127.0.0.1/32'] });
  for (const host of ['localhost', 'localhost:443', 'localhost:80', '[::1]']) {
    const forwarded = { 'x-forwarded-host': host };
    const { cookie } = await signIn('ada', { ...CONSOLE, ...forwarded }, other);
    assert.match(cookie, /^stagedoor_session=/, host);
    assert.is((await whoIs(cookie, forwarded, other)).status, 200, host);
  }
  await other.close();
});

test('is refused for a page of another origin, even of an allowed one', async () => {
  const allowedOrigins = ['https://friend.example'];
  const other = await startWithAccounts({ isPublic: true, corsOrigins: ['*'], allowedOrigins });
  const { cookie } = await signIn('admin', CONSOLE, other);
  for (const origin of ['https://evil.example', 'https://friend.example', 'null', 'http://127.0.0.1:1']) {
    const headers = { origin, cookie, ...CONSOLE };
    assert.is((await whoIs(cookie, { origin }, other)).status, 401, origin);
    assert.is((await other.ask('POST', '/mcp', { headers, body: {} })).status, 401, origin);
    const login = await signIn('admin', { origin, ...CONSOLE }, other);
    assert.equal([login.outcome, login.set], ['403 ORIGIN_NOT_ALLOWED', ''], origin);
    const wanted = { 'access-control-request-headers': 'x-stagedoor-console' };
    const asked = { origin, 'access-control-request-method': 'GET', ...wanted };
    const preflight = await other.ask('OPTIONS', '/auth/me', { headers: asked });
    assert.is(preflight.status, 204);
    assert.not.match(preflight.headers.get('access-control-allow-headers') ?? '', /console/i);
    assert.is(preflight.headers.get('access-control-allow-credentials'), null);
  }
  assert.is((await whoIs(cookie, { origin: other.url }, other)).status, 200);
  await other.close();
});

test('has a Secure cookie only behind a trusted proxy that reports HTTPS', async () => {
  const forwarded = { ...CONSOLE, 'x-forwarded-proto': 'https' };
  assert.not.match((await signIn('ada', forwarded)).set, /Secure/);
  const other = await startWithAccounts({ trustedProxies: ['127.0.0.1/32'] });
  assert.match((await signIn('ada', forwarded, other)).set, /; Max-Age=3600; Secure$/);
  assert.not.match((await signIn('ada', CONSOLE, other)).set, /Secure/);
  await other.close();
});

test('ends at logout, as does its token in a header; other sessions continue', async () => {
  const first = await signIn();
  const second = await signIn();
  const logOut = () => app.ask('POST', '/auth/logout', { headers: { cookie: first.cookie, ...CONSOLE } });
  assert.equal([(await whoIs(first.cookie)).status, (await whoIs(second.cookie)).status], [200, 200]);
  const out = await logOut();
  assert.equal([out.status, out.text], [204, '']);
  const found = out.headers.get('set-cookie');
  assert.is(found, `${nameAt(app)}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0`);
  assert.is((await whoIs(first.cookie)).outcome, '401 INVALID_CREDENTIALS');
  const bearer = { authorization: `Bearer ${first.body.access_token}` };
  assert.is((await app.ask('GET', '/auth/me', { headers: bearer })).status, 401);
  assert.is((await logOut()).status, 401);
  assert.is((await whoIs(second.cookie)).status, 200);
});

test('can be ended by a caller over its rate limit', async () => {
  const other = await startWithAccounts({ limits: { userHourlyLimit: 1, apiKeyHourlyLimit: 1 } });
  const { cookie } = await signIn('ada', CONSOLE, other);
  const status = async () => (await whoIs(cookie, {}, other)).status;
  assert.equal([await status(), await status()], [200, 429]);
  const out = await other.ask('POST', '/auth/logout', { headers: { cookie, ...CONSOLE } });
  assert.equal([out.status, await status()], [204, 401]);
  await other.close();
});

test('logout with a bearer token revokes it and sets no cookie; an API key stays valid', async () => {
  const { body } = await signIn('ada', {});
  const bearer = { authorization: `Bearer ${body.access_token}` };
  const padded = { authorization: `${bearer.authorization}=` }; // the same token in another encoding
  assert.is((await app.as(padded, 'GET', '/auth/me')).status, 200);
  const out = await app.as(bearer, 'POST', '/auth/logout');
  assert.equal([out.status, out.headers.get('set-cookie')], [204, null]);
  for (const ended of [bearer, padded]) assert.is((await app.as(ended, 'GET', '/auth/me')).status, 401);
  const key = await app.key(['gateway:read']);
  for (const sent of [key, { authorization: `Bearer ${key['x-api-key']}` }])
    assert.is((await app.as(sent, 'POST', '/auth/logout')).status, 204);
  assert.is((await app.as(key, 'GET', '/auth/me')).status, 200);
});

test('ends its event streams at logout', async () => {
  const { cookie } = await signIn();
  const socket = await openRaw(app.port);
  socket.write(
    head('GET /events?follow=true', {
      ...{ Host: new URL(app.url).host, Cookie: cookie, 'X-Stagedoor-Console': '1', Connection: 'close' },
    }),
  );
  await readUntil(socket, 'event: ');
  await app.ask('POST', '/auth/logout', { headers: { cookie, ...CONSOLE } });
  assert.match(await readAll(socket), /event: error\r?\n?[\s\S]*INVALID_CREDENTIALS/);
});

test('is never forwarded to a backend', async () => {
  const seen: string[] = [];
  const { cookie } = await signIn('admin');
  const headers = { cookie, ...CONSOLE };
  const note: RequestListener = (request, response) => {
    seen.push(JSON.stringify(request.rawHeaders));
    request.resume();
    response.writeHead(400).end();
  };
  await withRawServer(note, async ({ url: endpoint }) => {
    await app.ask('POST', '/gateway/register?wait=1', { headers, body: { template_name: 'far', endpoint } });
    await app.ask('POST', '/mcp/far/tools/call', { headers, body: { name: 'echo' } });
    await app.ask('POST', '/mcp/far', { headers, body: { jsonrpc: '2.0', id: 1, method: 'ping' } });
  });
  assert.ok(seen.length > 0);
  assert.not.match(seen.join(), /cookie|console|stagedoor_session/i);
});

test.run();
