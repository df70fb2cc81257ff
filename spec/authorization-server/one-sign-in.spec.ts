// One sign-in of a browser: a login of the console is known at the pages, and signing out at either place ends both.

import * as assert from 'uvu/assert';
import { databaseUnavailable } from '../../src/domain/errors/gateway-errors.ts';
import { systemClock } from '../../src/domain/time/clock.ts';
import { PASSWORD } from '../helpers/http/accounts.ts';
import { type Answer, appFor } from '../helpers/http/app.ts';
import { Browser, begin, register, startSignIn } from '../helpers/identity/sign-in.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('one sign-in for console and pages');
let passedMs = 0;
const app = appFor(
  test,
  () => {
    passedMs = 0;
    return startSignIn({ clock: { ...systemClock, wall: () => systemClock.wall() + passedMs } });
  },
  'each',
);

const CONSOLE = { 'x-stagedoor-console': '1' };
const rows = () => app.oauthStore.oauth.count({ kind: 'sign-in' });

/** The console in this browser. */
function consoleIn(browser: Browser) {
  const ask = async (method: string, path: string, body?: object): Promise<Answer> => {
    const cookie = browser.cookiesFor(path);
    const headers = { ...CONSOLE, ...(cookie === '' ? {} : { cookie }) };
    const answer = await app.ask(method, path, { headers, body });
    browser.take(answer.headers, path);
    return answer;
  };
  return {
    login: (username = 'ada') => ask('POST', '/auth/login', { username, password: PASSWORD }),
    logout: () => ask('POST', '/auth/logout'),
    name: async () => {
      const { status, body } = await ask('GET', '/auth/me');
      return status === 200 ? body.name : status;
    },
  };
}

/** What a client's user sees first: whose consent is asked, or `sign in`. */
async function pageIn(browser: Browser) {
  const begun = await begin(app.url, await register(app.url), { browser });
  const { text } = begun.page;
  const who = text.includes('>Sign in</button>') ? 'sign in' : /<strong>(\w+)<\/strong>/.exec(text)?.[1];
  return { ...begun, who };
}

test('a login of the console is a sign-in of the pages, in cookies that go to these only', async () => {
  const browser = new Browser(app.url);
  const answer = await consoleIn(browser).login();
  const name = `stagedoor_sign_in_${new URL(app.url).port}`;
  const [, ...set] = answer.headers.getSetCookie();
  const written = set.map((each) => each.replace(/=[\w-]{43};/, '=id;'));
  const flags = 'HttpOnly; SameSite=Lax';
  assert.equal(
    written,
    ['/oauth', '/connections'].map((path) => `${name}=id; ${flags}; Path=${path}; Max-Age=43200`),
  );
  assert.is((await pageIn(browser)).who, 'ada');
});

test('other logins, wrong ones, and the console at another address make none', async () => {
  const body = { username: 'ada', password: PASSWORD };
  await app.ask('POST', '/auth/login', { body });
  const wrong = await app.ask('POST', '/auth/login', { body: { ...body, password: 'x' }, headers: CONSOLE });
  assert.equal([wrong.status, wrong.headers.getSetCookie()], [401, []]);
  const elsewhere = await fetch(`http://localhost:${new URL(app.url).port}/auth/login`, {
    method: 'POST',
    headers: { ...CONSOLE, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  await elsewhere.body?.cancel();
  assert.equal([elsewhere.status, elsewhere.headers.getSetCookie().length], [200, 1]);
  assert.is(await rows(), 0);
});

test('a logout of the console ends the sign-in, for a copy of its cookie, too', async () => {
  const browser = new Browser(app.url);
  const { login, logout, name } = consoleIn(browser);
  await login();
  const thief = browser.copy();
  assert.is((await pageIn(thief)).who, 'ada');
  assert.is((await logout()).status, 204);
  assert.is(await name(), 401);
  assert.equal(browser.cookiesFor('/oauth/authorize'), '');
  assert.is(await rows(), 0);
  assert.is((await pageIn(thief)).who, 'sign in');
});

test('"Not you?" ends the session of the console, for a copy of its cookie, too', async () => {
  const browser = new Browser(app.url);
  await consoleIn(browser).login();
  const thief = browser.copy();
  const { page } = await pageIn(browser);
  const next = await browser.submit(page, 'Sign in with another account');
  assert.match(next.text, />Sign in<\/button>/);
  assert.is(await consoleIn(browser).name(), 401);
  assert.is(await consoleIn(thief).name(), 401);
  assert.is(await rows(), 0);
});

test('so does the second "Not you?" when the database failed at the first one', async () => {
  const browser = new Browser(app.url);
  const console = consoleIn(browser);
  await console.login();
  const { page } = await pageIn(browser);
  const { accounts } = app.oauthStore;
  const { endToken } = accounts;
  accounts.endToken = () => Promise.reject(databaseUnavailable(new Error('away'), 'no'));
  const failed = await browser.submit(page, 'Sign in with another account');
  assert.is(failed.status, 503);
  accounts.endToken = endToken;
  assert.is(await console.name(), 'ada');
  await browser.submit(page, 'Sign in with another account');
  assert.equal([await console.name(), await rows()], [401, 0]);
});

test('a new sign-in at the pages keeps the console of the same user, and ends that of another', async () => {
  await app.createUser('bob');
  for (const [username, after] of [
    ['ada', 'ada'],
    ['bob', 401],
  ] as const) {
    const browser = new Browser(app.url);
    const { login, logout, name } = consoleIn(browser);
    await login('ada');
    // The page of a browser that was signed out is sent after a login in another tab.
    const signedOut = new Browser(app.url);
    const { page } = await pageIn(signedOut);
    signedOut.join(browser);
    const consent = await signedOut.submit(page, 'Sign in', { username, password: PASSWORD });
    assert.match(consent.text, new RegExp(`<strong>${username}</strong>`));
    assert.is(await name(), after);
    assert.is(await rows(), 1);
    if (after === 401) continue;
    await logout();
    assert.is(await rows(), 0);
    assert.is((await pageIn(signedOut)).who, 'sign in');
  }
});

test('a sign-in at the pages does not let the console in', async () => {
  const browser = new Browser(app.url);
  const { page } = await pageIn(browser);
  await browser.signIn(page);
  assert.is(await consoleIn(browser).name(), 401);
});

test('a new password, a disabled account and 12 hours end it', async () => {
  const [ada] = (await app.oauthStore.accounts.findUsers()).filter(({ username }) => username === 'ada');
  const change = async (body: object) => {
    const { status } = await app.as(app.admin, 'PATCH', `/auth/users/${ada?.id}`, { body });
    assert.is(status, 200);
  };
  for (const end of [
    () => change({ password: PASSWORD }),
    async () => {
      await change({ is_active: false });
      await change({ is_active: true });
    },
    async () => {
      passedMs = 12 * 3_600_000;
    },
  ]) {
    const browser = new Browser(app.url);
    await consoleIn(browser).login();
    assert.is((await pageIn(browser)).who, 'ada');
    await end();
    assert.is((await pageIn(browser)).who, 'sign in');
  }
});

test.run();
