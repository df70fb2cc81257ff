// The pages at which users connect their accounts, in a real Chromium, with a real authorization server behind them: without script, without a
// finding of axe, and through the redirects that the policy of the pages has to allow.

import * as assert from 'uvu/assert';
import { type OAuthBackend, startOAuthBackend } from '../../fixtures/oauth-backend.ts';
import {
  axeFindings,
  type Browser,
  chromiumPath,
  launchBrowser,
  NO_CHROMIUM,
  type WatchedPage,
} from '../../helpers/browsers/browser.ts';
import { caller, callTool, statusAndCode, toolText } from '../../helpers/clients/caller.ts';
import { type OAuthHarness, startWithSignIn } from '../../helpers/identity/oauth-gateway.ts';
import { PASSWORD, register } from '../../helpers/programs/mcp-program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the pages of connections', { timeoutMs: 120_000 });
const inBrowser = test.needs(chromiumPath !== undefined, NO_CHROMIUM);

let backend: OAuthBackend;
let gateway: OAuthHarness;
let browser: Browser;
let watched: WatchedPage;
const tokens = new Map<string, string>();
test.before(async () => {
  if (chromiumPath === undefined) return;
  backend = await startOAuthBackend();
  gateway = await startWithSignIn();
  const auth = { mode: 'oauth', who: 'user' };
  await register(gateway.admin, 'notes', [{ id: 'one', endpoint: backend.url, auth }]);
  const client = await gateway.oauth.client();
  for (const username of ['ada', 'bob'])
    tokens.set(username, (await gateway.oauth.signIn(client, { username })).access_token);
  browser = await launchBrowser();
  watched = await browser.open();
  watched.page.setDefaultTimeout(20_000);
});
test.before.each(async () => {
  await watched?.page.context().clearCookies();
});
test.after(async () => {
  await browser?.close();
  await gateway?.remove();
  await backend?.close();
});

const call = (username: string) =>
  callTool(caller(gateway.url, { Authorization: `Bearer ${tokens.get(username)}` }), 'notes', 'whoami');

/** Where the call of this user says to connect. */
async function addressFor(username: string): Promise<string> {
  const refused = await call(username);
  assert.equal(statusAndCode(refused), [403, 'CONNECTION_REQUIRED']);
  return String(Object(refused.body).connect_url);
}

async function signIn(username: string): Promise<void> {
  const { page } = watched;
  await page.getByLabel('User name').fill(username);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
}

/** Waits for the page with this heading, which passes axe and needs no script. */
async function isAt(heading: string): Promise<void> {
  const { page } = watched;
  await page.getByRole('heading', { name: heading }).waitFor();
  assert.equal(await axeFindings(page), [], heading);
  assert.is(await page.locator('script').count(), 0, heading);
}

const goOn = () => watched.page.getByRole('button', { name: /^Continue to / }).click();

inBrowser('a user connects an account in the middle of a call, and the call is answered', async () => {
  backend.account = 'ada at work';
  await watched.page.goto(await addressFor('ada'));
  await isAt('Sign in');
  await signIn('ada');
  await isAt('Connect an account at notes?');
  await goOn();
  await isAt('The account is connected');
  const answer = await call('ada');
  assert.equal([answer.status, toolText(answer)], [200, 'ada at work']);
  await watched.page.goto(`${gateway.url}/connections`);
  await watched.page.getByRole('button', { name: 'Disconnect' }).waitFor();
  assert.equal(await axeFindings(watched.page), []);
});

inBrowser('the address of another user is refused, and its user may sign in there', async () => {
  await watched.page.goto(await addressFor('bob'));
  await signIn('ada');
  await isAt('This address is for another user');
  assert.is(await watched.page.getByRole('button', { name: /^Continue to / }).count(), 0);
  await watched.page.getByRole('button', { name: 'Sign in with another account' }).click();
  await signIn('bob');
  await isAt('Connect an account at notes?');
});

inBrowser('a provider that answers 503, and a denial there, end at a page that says so', async () => {
  backend.isDown = true;
  await watched.page.goto(await addressFor('bob'));
  await signIn('bob');
  await goOn();
  await isAt('The provider cannot be used now');
  backend.isDown = false;
  backend.account = undefined;
  await watched.page.goto(await addressFor('bob'));
  await goOn();
  await isAt('The account is not connected');
  backend.account = 'bob at work';
  await watched.page.goto(await addressFor('bob'));
  await goOn();
  await isAt('The account is connected');
  assert.is(toolText(await call('bob')), 'bob at work');
});

inBrowser('an address that is over, and a callback that was used, say what to do', async () => {
  for (const [path, heading] of [
    [`/connections/${'a'.repeat(43)}`, 'This address is no longer valid'],
    ['/connections/callback?state=none&code=none', 'The account is not connected'],
  ] as const) {
    await watched.page.goto(gateway.url + path);
    await isAt(heading);
    assert.match(String(await watched.page.locator('main').textContent()), /\w+ .*\./);
  }
});

inBrowser('breaks no policy of its own', () => {
  const faults = watched.complaints.filter(
    (line) => !/status of [45]\d\d/.test(line) && !line.includes('favicon'),
  );
  assert.equal(faults, []);
});

test.run();
