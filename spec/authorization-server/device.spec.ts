// The device flow of our own command line: a code on one machine, a browser on another.

import * as assert from 'uvu/assert';
import { DEVICE_GRANT } from '../../src/authorization-server/clients/client-record.ts';
import { signInByDevice } from '../../src/cli/accounts/browser-sign-in.ts';
import { systemClock } from '../../src/domain/time/clock.ts';
import { recordingTerminal } from '../cli/recording-terminal.ts';
import { until } from '../helpers/eventually.ts';
import { PASSWORD } from '../helpers/http/accounts.ts';
import { appFor } from '../helpers/http/app.ts';
import {
  askToken,
  Browser,
  type BrowserPage,
  partsOf,
  register,
  startSignIn,
} from '../helpers/identity/sign-in.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('the device flow');
let passedMs = 0;
const app = appFor(
  test,
  () => {
    passedMs = 0;
    const { wall, now } = systemClock;
    return startSignIn({
      clock: { ...systemClock, wall: () => wall() + passedMs, now: () => now() + passedMs },
    });
  },
  'each',
);

const CLIENT = { client_id: 'stagedoor-cli' };
const SCOPE = 'tools:call gateway:read gateway:write admin';

async function begin(fields: Readonly<Record<string, string>> = { ...CLIENT, scope: SCOPE }) {
  const response = await fetch(`${app.url}/oauth/device_authorization`, {
    method: 'POST',
    body: new URLSearchParams(fields),
  });
  return { status: response.status, body: (await response.json()) as Record<string, string> };
}

async function started() {
  const { status, body } = await begin();
  assert.is(status, 200, JSON.stringify(body));
  const poll = () =>
    askToken(app.url, { ...CLIENT, grant_type: DEVICE_GRANT, device_code: body.device_code ?? '' });
  return { ...body, userCode: body.user_code ?? '', complete: body.verification_uri_complete ?? '', poll };
}

const problemOf = ({ text }: BrowserPage) => /role="alert">([^<]*)/.exec(text)?.[1];

test('a code that is entered, a sign-in and a consent give tokens of this user', async () => {
  const {
    userCode,
    poll,
    verification_uri: address,
  } = { ...(await started()) } as never as Awaited<ReturnType<typeof started>> & { verification_uri: string };
  assert.equal([address, (await poll()).body.error], [`${app.url}/oauth/device`, 'authorization_pending']);
  const browser = new Browser(app.url);
  const typed = userCode.toLowerCase().replace('-', ' ');
  const login = await browser.submit(await browser.open(address), 'Next', { user_code: typed });
  const consent = await browser.signIn(login, 'admin');
  assert.match(consent.text, new RegExp(`<strong>${userCode}</strong>`));
  assert.match(consent.text, /the machine that asked, at the address 127\.0\.0\.1/);
  assert.is((await poll()).body.error, 'authorization_pending');
  const done = await browser.submit(consent, 'Allow');
  assert.match(done.text, /Go back to the terminal/);
  const { status, body } = await poll();
  assert.is(status, 200, JSON.stringify(body));
  const { claims } = partsOf(String(body.access_token));
  assert.equal([claims.aud, claims.scope], [app.url, 'gateway:read gateway:write tools:call admin']);
  assert.is(body.username, 'admin');
  const me = await app.as({ authorization: `Bearer ${body.access_token}` }, 'GET', '/auth/users');
  assert.is(me.status, 200);
  assert.is((await app.oauthStore.oauth.list({ kind: 'grant' }, 9)).length, 1);
  // Used again, it ends what it gave.
  assert.is((await poll()).body.error, 'invalid_grant');
  assert.is((await app.oauthStore.oauth.list({ kind: 'grant' }, 9)).length, 0);
});

test('the address with the code has to be confirmed, too, and a refusal reaches the command', async () => {
  const { complete, poll } = await started();
  const browser = new Browser(app.url);
  const consent = await browser.signIn(await browser.open(complete));
  assert.is((await poll()).body.error, 'authorization_pending');
  await browser.submit(consent, 'Deny');
  assert.is((await poll()).body.error, 'access_denied');
  assert.is((await app.oauthStore.oauth.list({ kind: 'grant' }, 9)).length, 0);
  const again = await browser.open(complete);
  assert.match(String(problemOf(again)), /wrong, was used, or is older/);
});

test('of two pages with one code the first decides, and leaves one grant', async () => {
  const { complete, poll } = await started();
  const [one, other] = [new Browser(app.url), new Browser(app.url)];
  const pages = [
    await one.signIn(await one.open(complete)),
    await other.signIn(await other.open(complete), 'admin'),
  ];
  await Promise.all([
    one.submit(pages[0] as BrowserPage, 'Allow'),
    other.submit(pages[1] as BrowserPage, 'Allow'),
  ]);
  assert.is((await app.oauthStore.oauth.list({ kind: 'grant' }, 9)).length, 1);
  assert.is((await poll()).status, 200);
});

test('of two clicks on Allow the first one counts, and both end at the same page', async () => {
  const { complete, poll } = await started();
  const browser = new Browser(app.url);
  const consent = await browser.signIn(await browser.open(complete));
  const texts = [await browser.submit(consent, 'Allow'), await browser.submit(consent, 'Allow')].map(
    ({ text }) => text,
  );
  assert.match(texts[0] ?? '', /Go back to the terminal/);
  assert.is(texts[1], texts[0]);
  const other = new Browser(app.url);
  const theirs = await other.signIn(await other.open(complete), 'admin');
  assert.match(String(problemOf(theirs)), /wrong, was used, or is older/);
  assert.is((await poll()).status, 200);
});

test('a browser that keeps no cookies sees that after its sign-in', async () => {
  const { complete } = await started();
  const { url } = await new Browser(app.url).open(complete);
  const { status, headers } = await fetch(`${url}/login`, {
    ...{ method: 'POST', redirect: 'manual', headers: { origin: app.url } },
    body: new URLSearchParams({ username: 'ada', password: PASSWORD }),
  });
  assert.is(status, 303);
  const page = await new Browser(app.url).open(headers.get('location') ?? '');
  assert.equal(
    [page.status, problemOf(page)],
    [400, 'This browser keeps no cookies. Allow them for this address, then sign in again.'],
  );
});

test('a code ends after ten minutes', async () => {
  const { complete } = await started();
  passedMs = 601_000;
  const browser = new Browser(app.url);
  const page = await browser.signIn(await browser.open(complete));
  assert.match(String(problemOf(page)), /older than ten minutes/);
});

test('guesses are limited for a network, codes for a network, too', async () => {
  const browser = new Browser(app.url);
  const { complete } = await started();
  await browser.signIn(await browser.open(complete));
  for (let n = 0; n < 10; n += 1) {
    const page = await browser.open(`/oauth/device/${'BCDFGHJKLM'[n]}BCDFGHJ`);
    assert.is(page.status, 400);
  }
  assert.is((await browser.open(complete)).status, 429);
  passedMs = 61_000;
  assert.is((await browser.open(complete)).status, 200);
  for (let n = 0; n < 10; n += 1) assert.is((await begin()).status, 200);
  assert.is((await begin()).status, 429);
});

test('only our command line may use it, and no other site may answer for the user', async () => {
  const client = await register(app.url);
  assert.is((await begin({ client_id: client.client_id, scope: 'tools:call' })).status, 400);
  assert.is((await begin({ client_id: 'unknown' })).status, 401);
  const { complete, device_code: code = '' } = (await started()) as never as {
    complete: string;
    device_code: string;
  };
  const stolen = { client_id: client.client_id, grant_type: DEVICE_GRANT, device_code: code };
  assert.is((await askToken(app.url, stolen)).status, 400);
  const browser = new Browser(app.url);
  const page = await browser.signIn(await browser.open(complete));
  const cookie = browser.cookiesFor('/oauth/device');
  const form = new URLSearchParams({ decision: 'allow' });
  for (const origin of ['https://evil.example', 'null']) {
    const headers = { cookie, origin };
    const answer = await fetch(page.url, { method: 'POST', headers, body: form });
    assert.is(answer.status, 403, origin);
    await answer.body?.cancel();
  }
  // Without the token of the page nothing is decided.
  const bare = await fetch(`${page.url}/consent`, {
    method: 'POST',
    headers: { cookie },
    body: form,
    redirect: 'manual',
  });
  assert.is(bare.status, 303);
  assert.is((await app.oauthStore.oauth.list({ kind: 'grant' }, 9)).length, 0);
});

test('the rows contain neither code', async () => {
  const { userCode, device_code: code = '' } = (await started()) as never as {
    userCode: string;
    device_code: string;
  };
  const rows = await app.oauthStore.oauth.list({ kind: 'device' }, 9);
  assert.is(rows.length, 2);
  const text = JSON.stringify(rows);
  for (const secret of [code, userCode, userCode.replace('-', '')]) assert.not.match(text, secret);
});

test('the command asks until the user has decided', async () => {
  const addresses: string[] = [];
  const terminal = recordingTerminal({
    onComplaint: (text) => void addresses.push(/or open (\S+)$/.exec(text)?.[1] ?? ''),
  });
  const waiting = signInByDevice(app.url, terminal, 50);
  const browser = new Browser(app.url);
  await until(() => addresses.length !== 0);
  const consent = await browser.signIn(await browser.open(addresses[0] ?? ''), 'admin');
  await browser.submit(consent, 'Allow');
  const { username, refresh_token: refresh } = await waiting;
  assert.equal([username, typeof refresh], ['admin', 'string']);
});

test.run();
