// Requests that leave a row are bounded, and so are the rows of one user and of one grant.

import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import * as assert from 'uvu/assert';
import { grantOf, rowOfGrant } from '../../src/auth/grants/grant-rows.ts';
import { oauthKey } from '../../src/persistence/oauth-rows.ts';
import { head, openRaw } from '../helpers/clients/raw-http.ts';
import { until } from '../helpers/eventually.ts';
import { appFor } from '../helpers/http/app.ts';
import { askToken, begin, REDIRECT, register, startSignIn, tokensOf } from '../helpers/identity/sign-in.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('floods at the authorization server');
const app = appFor(test, () => startSignIn(), 'each');

test('requests to authorize are bounded for a user who is signed in, too', async () => {
  const client = await register(app.url);
  const { browser, page } = await begin(app.url, client);
  await browser.signIn(page);
  const url = new URL('/oauth/authorize', app.url);
  const fields = {
    response_type: 'code',
    client_id: client.client_id,
    redirect_uri: REDIRECT,
    code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
    code_challenge_method: 'S256',
  };
  for (const [name, value] of Object.entries(fields)) url.searchParams.set(name, value);
  const ask = async () => {
    const headers = { cookie: browser.cookiesFor('/oauth/authorize') };
    const answer = await fetch(url, { redirect: 'manual', headers });
    await answer.body?.cancel();
    return answer.status;
  };
  for (let n = 0; n < 100; n += 1) assert.is(await ask(), 303, `${n}: more often than without a sign-in`);
  let last = 0;
  for (let n = 0; n < 1_110; n += 1) last = await ask();
  assert.is(last, 429);
});

test('fields of requests are bounded, since the library looks for each among all', async () => {
  const many = Array.from({ length: 1_000 }, (_, field) => `f${field}`).join('&');
  for (const path of ['/oauth/authorize', '/oauth/authorize/unknown', '/oauth/device']) {
    const answer = await fetch(`${app.url}${path}?${many}`, { redirect: 'manual' });
    assert.is(answer.status, 400, path);
    assert.match(await answer.text(), 'more than 100 parameters');
  }
  for (const path of ['/oauth/token', '/oauth/revoke']) {
    const body = new URLSearchParams(`client_id=x&${many}`);
    const answer = await fetch(`${app.url}${path}`, { method: 'POST', body });
    assert.is(answer.status, 400, path);
    assert.match(await answer.text(), '100 fields');
  }
});

test('a connection whose form does not arrive is known as that of an unknown caller', async () => {
  const receiving: (string | undefined)[] = [];
  const connections = { receive: ({ req }: ServerResponse) => void receiving.push(req.url) };
  const other = await startSignIn({ connections });
  const paths = ['token', 'revoke', 'register', 'device_authorization', 'device'].map(
    (name) => `/oauth/${name}`,
  );
  for (const path of paths) {
    const socket = await openRaw(other.port);
    const type = { 'Content-Type': 'application/x-www-form-urlencoded' };
    const form = { Host: `127.0.0.1:${other.port}`, ...type, 'Content-Length': '9' };
    socket.write(head(`POST ${path}`, form));
    await until(() => receiving.at(-1) === path);
    socket.destroy();
  }
  await other.close();
  assert.equal(receiving, paths);
});

test('a user has at most 500 grants: those that were used longest ago go', async () => {
  const { oauth } = app.oauthStore;
  const client = await register(app.url);
  const first = await tokensOf(app.url, client);
  const [row] = await oauth.list({ kind: 'grant' }, 1);
  const [present] = row === undefined ? [] : [grantOf(row)];
  assert.ok(present);
  const now = new Date().toISOString();
  for (let n = 0; n < 600; n += 1) {
    const old = { ...present, id: `old-${n}`, createdAt: '2026-01-01T00:00:00.000Z' };
    await oauth.save(rowOfGrant(n === 0 ? { ...old, lastUsedAt: now } : old));
  }
  const { browser } = first;
  for (let n = 0; n < 9; n += 1) {
    const { page } = await begin(app.url, client, { browser });
    assert.is((await browser.submit(page, 'Allow')).status, 0);
  }
  const left = (await oauth.list({ kind: 'grant' }, 1_000)).map(({ grantId }) => grantId);
  assert.is(left.length, 500);
  assert.equal(
    [present.id, 'old-0'].map((id) => left.includes(id)),
    [true, true],
  );
  const { text } = await app.as(app.admin, 'GET', '/gateway/audit?limit=20');
  assert.match(text, '110 older grants ended: a user has at most 500');
});

test('the 500 latest replaced refresh tokens of one grant are remembered', async () => {
  const { oauth } = app.oauthStore;
  const client = await register(app.url);
  const { refresh_token: token = '' } = await tokensOf(app.url, client);
  const [row] = await oauth.find('refresh', [oauthKey('refresh', token)]);
  assert.ok(row);
  await oauth.save({ ...row, value: JSON.stringify({ ...JSON.parse(row.value), rotations: 499 }) });
  const at = '2026-01-01T00:00:00.000Z';
  for (let n = 0; n < 998; n += 1)
    await oauth.save({ ...row, key: `old-${n}`, createdAt: at, consumedAt: at });
  const fields = { grant_type: 'refresh_token', client_id: client.client_id };
  const { status, body } = await askToken(app.url, { ...fields, refresh_token: token });
  assert.is(status, 200);
  assert.is(await oauth.count({ kind: 'refresh' }), 500);
  const next = await askToken(app.url, { ...fields, refresh_token: String(body.refresh_token) });
  assert.is(next.status, 200);
});

test('a registration that takes the place of an unused one reads none of the others', async () => {
  const { oauth } = app.oauthStore;
  const first = await register(app.url);
  const [row] = await oauth.find('client', [oauthKey('client', first.client_id)]);
  assert.ok(row);
  for (let n = 0; n < 999; n += 1)
    await oauth.save({ ...row, key: oauthKey('client', `${n}`), createdAt: new Date(n).toISOString() });
  let read = 0;
  const { list } = oauth;
  oauth.list = async (...asked) => {
    const rows = await list(...asked);
    read += rows.length;
    return rows;
  };
  try {
    await register(app.url);
  } finally {
    oauth.list = list;
  }
  assert.is(read, 0);
  assert.is(await oauth.count({ kind: 'client' }), 1_000);
  assert.equal(await oauth.find('client', [oauthKey('client', '0')]), []);
});

test('requests of clients whose forms have not arrived yet keep no others of their network away', async () => {
  const head = [
    'POST /oauth/token HTTP/1.1',
    `Host: 127.0.0.1:${app.port}`,
    'Content-Type: application/x-www-form-urlencoded',
    'Content-Length: 20',
    'Expect: 100-continue',
  ];
  const sockets = Array.from({ length: 120 }, () => connect(app.port, '127.0.0.1'));
  await Promise.all(
    sockets.map(async (socket) => {
      socket.write(`${head.join('\r\n')}\r\n\r\n`);
      await once(socket, 'data'); // the server goes on with it
    }),
  );
  assert.is((await askToken(app.url, { grant_type: 'refresh_token', client_id: 'unknown' })).status, 401);
  for (const socket of sockets) socket.destroy();
});

test('a refusal that ends as soon as those under way are known says so', async () => {
  const { oauth } = app.oauthStore;
  const { find } = oauth;
  const released = Promise.withResolvers<void>();
  let asked = 0;
  oauth.find = async (...wanted) => {
    if (wanted[0] === 'client') {
      asked += 1;
      await released.promise;
    }
    return find.apply(oauth, wanted);
  };
  const ask = (n: number) =>
    fetch(`${app.url}/oauth/token`, {
      method: 'POST',
      body: new URLSearchParams({ grant_type: 'refresh_token', client_id: `unknown-${n}` }),
    });
  const waitOf = async () => {
    const answer = await ask(120);
    await answer.body?.cancel();
    return [answer.status, Number(answer.headers.get('retry-after')) > 1];
  };
  const underWay = Array.from({ length: 120 }, (_, n) => ask(n));
  await until(() => asked >= 120, 'all are under way');
  assert.equal(await waitOf(), [429, false]);
  released.resolve();
  for (const answer of await Promise.all(underWay)) await answer.body?.cancel();
  oauth.find = find;
  assert.equal(await waitOf(), [429, true]);
});

test.run();
