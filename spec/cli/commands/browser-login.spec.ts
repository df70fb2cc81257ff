// `gateway login --sso`: the browser of a user signs the command line in, which keeps, renews and ends its tokens.

import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { findToken, type StoredToken, storeToken } from '../../../src/cli/accounts/stored-tokens.ts';
import { credentialsPath } from '../../../src/templates/command-exposure.ts';
import { authorize, ScriptedBrowser } from '../../helpers/browsers/scripted-browser.ts';
import { becomes, eventually } from '../../helpers/eventually.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { fetchFor } from '../../helpers/network/replaced-fetch.ts';
import { suite } from '../../helpers/suite.ts';
import { ADMIN_PASSWORD, gatewayFor, printed, runAtTerminal } from './against-gateway.ts';

const test = suite('gateway login --sso');
const folder = folderOfEach(test);
const replaceFetch = fetchFor(test);
const gateway = gatewayFor(test, { withAccounts: true });

const home = () => ({ XDG_CONFIG_HOME: folder(), APPDATA: folder(), STAGEDOOR_URL: gateway.url });
const path = () => credentialsPath(home());
const run = (line: string, env: Record<string, string> = {}) =>
  runAtTerminal(line.split(' '), { env: { ...home(), ...env }, folder: folder() });
const stored = (): StoredToken => {
  const token = findToken(path(), gateway.url);
  assert.ok(token, 'a token is stored');
  return token as StoredToken;
};

type Visit = (address: URL) => Promise<unknown>;

/** The user of this browser: signs in as admin, decides, and follows the answer to the command line. */
async function agree(address: URL, decision: 'Allow' | 'Deny' = 'Allow'): Promise<Response> {
  const answer = { username: 'admin', password: ADMIN_PASSWORD, decision };
  return fetch(await authorize(new ScriptedBrowser(gateway.url), address, answer));
}

/** A login whose address is opened by this visit. */
async function login(visit: Visit = agree, words = '') {
  const visits: Promise<unknown>[] = [];
  const options = {
    ...{ env: home(), folder: folder() },
    onComplaint: (text: string) => {
      const [, address] = /^sign in with a browser on this machine: (\S+)$/.exec(text) ?? [];
      if (address !== undefined) visits.push(visit(new URL(address)));
    },
  };
  const line = `gateway login --sso --no-browser${words}`;
  const outcome = await runAtTerminal(line.split(' '), options);
  await Promise.all(visits);
  assert.is(visits.length, 1, outcome.err);
  return outcome;
}

const statusOf = async (token: string) => {
  const headers = { authorization: `Bearer ${token}` };
  return (await fetch(`${gateway.url}/auth/me`, { headers })).status;
};

test('signs in without a password of its own, and has all rights of the account', async () => {
  const { code, out, err } = await login();
  assert.is(code, 0, err);
  assert.is(out, `admin is logged in at ${gateway.url} until "gateway logout"; the token is in ${path()}`);
  const { access_token: access, refresh_token: refresh, proof_secret: proof } = stored();
  for (const secret of [access, refresh ?? '', proof ?? '']) {
    assert.ok(secret.length > 30);
    assert.not.match(out + err, secret);
  }
  if (process.platform !== 'win32') assert.is(statSync(path()).mode & 0o777, 0o600);
  for (const line of [
    'user create ada --password correct-horse',
    'api-key create nightly',
    'instance list',
    'client add build --redirect https://build.example/callback',
    'gateway audit',
  ])
    assert.is((await run(line)).code, 0, line);
  const { out: grants, err: fault } = await run('grant list');
  assert.match(grants, /stagedoor command line/, fault);
});

test('a refusal, and an answer of another server, store nothing', async () => {
  const denied = await login((address) => agree(address, 'Deny'));
  assert.equal([denied.code, denied.out], [1, '']);
  assert.match(denied.err, /the sign-in was refused: the user denied the request$/);
  const mixed = await login(async (address) => {
    const back = new URL(String(address.searchParams.get('redirect_uri')));
    back.search = String(
      new URLSearchParams({
        code: 'x',
        iss: 'https://evil.example',
        state: address.searchParams.get('state') ?? '',
      }),
    );
    await fetch(back);
  });
  assert.match(mixed.err, /the answer in the browser comes from another server$/);
  assert.is(findToken(path(), gateway.url), undefined);
});

test('requests of other pages and programs do not end the wait', async () => {
  const { code, err } = await login(async (address) => {
    const back = new URL(String(address.searchParams.get('redirect_uri')));
    for (const query of ['', '?error=access_denied', '?code=x&state=y'])
      assert.is((await fetch(`${back}${query}`)).status, 404);
    assert.is((await fetch(`${back.origin}//[`)).status, 404);
    const state = address.searchParams.get('state');
    assert.is((await fetch(`${back}?code=x&state=${state}`, { method: 'POST' })).status, 404);
    await agree(address);
  });
  assert.is(code, 0, err);
});

test('opens the browser of the user with the address', async () => {
  const [script, seen] = [folder('browser.sh'), folder('seen')];
  writeFileSync(script, `#!/bin/sh\necho "$1" > ${seen}.part && mv ${seen}.part ${seen}\n`);
  chmodSync(script, 0o700);
  const running = run('gateway login --sso --quiet', { BROWSER: script });
  const read = async () => (existsSync(seen) ? readFileSync(seen, 'utf8').trim() : '');
  const address = await eventually(read, (text) => text !== '');
  await agree(new URL(address));
  assert.is((await running).code, 0);
});

test('renews a token that expires, for several commands at once', async () => {
  await login();
  const before = stored();
  storeToken(path(), gateway.url, { ...before, expires_at: new Date(Date.now() + 30_000).toISOString() });
  const outcomes = await Promise.all([1, 2, 3].map(() => run('user list --json')));
  for (const { code, err } of outcomes) assert.is(code, 0, err);
  const after = stored();
  assert.is.not(after.access_token, before.access_token);
  assert.is.not(after.refresh_token, before.refresh_token);
  assert.ok(Date.parse(after.expires_at) > Date.now() + 3_000_000);
  // Also long after it expired.
  storeToken(path(), gateway.url, { ...after, expires_at: '2026-01-01T00:00:00.000Z' });
  assert.is((await run('user list --json')).code, 0);
});

test('renews a token that the gateway refuses before it has expired here: the clock may have been ahead', async () => {
  await login();
  const before = stored();
  const refused = { ...before, access_token: `${before.access_token}x` };
  storeToken(path(), gateway.url, refused);
  const { code, err } = await run('user list --json');
  assert.is(code, 0, err);
  assert.is.not(stored().refresh_token, before.refresh_token);
  storeToken(path(), gateway.url, { ...refused, refresh_token: stored().refresh_token ?? '' });
  const { promise, resolve } = Promise.withResolvers<string>();
  const following = runAtTerminal(['gateway', 'events', '-f'], {
    ...{ env: home(), folder: folder() },
    onPrint: resolve,
  });
  assert.match(await promise, /\d\d:\d\d:\d\d/);
  process.emit('SIGINT', 'SIGINT');
  assert.is((await following).code, 0);
});

test('renews nothing for a request that was sent without credentials', async () => {
  await login();
  const asked: string[] = [];
  replaceFetch(async (url) => {
    asked.push(new URL(String(url)).pathname);
    return Response.json({ detail: 'of a proxy' }, { status: 401 });
  });
  assert.is((await run('gateway health')).code, 1);
  assert.equal(asked, ['/gateway/health']);
});

test('a renewal that comes back late does not replace the token of another login', async () => {
  await login();
  const before = stored();
  storeToken(path(), gateway.url, { ...before, expires_at: new Date(Date.now() + 30_000).toISOString() });
  const other = { ...before, username: 'other', refresh_token: 'of another login' };
  const { fetch } = globalThis;
  replaceFetch(async (url, init) => {
    const answer = await fetch(String(url), init);
    if (String(url).endsWith('/oauth/token')) storeToken(path(), gateway.url, other);
    return answer;
  });
  await run('user list --json');
  assert.equal(stored(), other);
});

test('says when the grant has ended', async () => {
  await login();
  const id = JSON.parse((await run('grant list --json')).out)[0].id;
  assert.is((await run(`grant revoke ${id}`)).code, 0);
  const { code, err } = await run('user list');
  assert.is(code, 1);
  assert.match(
    err,
    /the login of admin at \S+ has ended; run "npx stagedoor gateway login --sso --url http:\S+"/,
  );
  storeToken(path(), gateway.url, { ...stored(), expires_at: '2026-11-01T00:00:00.000Z' });
  assert.match((await run('user list')).err, /the login of admin at \S+ has ended; run/);
});

test('logout ends its tokens at the gateway, also when they have expired here', async () => {
  for (const hasExpired of [false, true]) {
    await login();
    const token = stored();
    if (hasExpired)
      storeToken(path(), gateway.url, { ...token, expires_at: new Date(Date.now() - 1_000).toISOString() });
    assert.is(await statusOf(token.access_token), 200);
    assert.is(await printed(run('gateway logout')), `logged out of ${gateway.url}`);
    await becomes(() => statusOf(token.access_token), 401);
    assert.is(findToken(path(), gateway.url), undefined);
  }
});

test('refuses words that do not fit together', async () => {
  for (const [line, why] of [
    ['gateway login', /needs a user name, --sso or --device/],
    ['gateway login --sso --device', /--sso cannot be combined with --device/],
    ['gateway login --device ada', /--device takes no user name/],
    ['gateway login --sso ada', /--sso takes no user name/],
    ['gateway login --sso --password x', /--sso cannot be combined with --password/],
  ] as const) {
    const { code, err } = await run(line);
    assert.is(code, 2);
    assert.match(err, why);
  }
});

test.run();
