// The console's page of connected accounts, with a server that wants OAuth: an admin connects the shared account and disconnects it, a
// user the own one. The tests depend on their order.

import * as assert from 'uvu/assert';
import { type OAuthBackend, startOAuthBackend } from '../../fixtures/oauth-backend.ts';
import {
  axeFindings,
  type Browser,
  launchBrowser,
  type WatchedPage,
} from '../../helpers/browsers/browser.ts';
import { canUseConsole, NO_CONSOLE, signIn } from '../../helpers/browsers/console.ts';
import { becomes } from '../../helpers/eventually.ts';
import { type McpHarness, PASSWORD, register, startGuarded } from '../../helpers/programs/mcp-program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the connected accounts of the console', { timeoutMs: 120_000 });
const inBrowser = test.needs(canUseConsole, NO_CONSOLE);

const WHOAMI = { name: 'whoami', arguments: {} };
let backend: OAuthBackend;
let gateway: McpHarness;
let browser: Browser;
let watched: WatchedPage;
test.before(async () => {
  if (!canUseConsole) return;
  backend = await startOAuthBackend();
  gateway = await startGuarded();
  const ada = { username: 'ada', email: 'ada@localhost', password: PASSWORD, role: 'user' };
  assert.is((await gateway.admin('POST /auth/users', ada)).status, 201);
  browser = await launchBrowser();
  watched = await browser.open();
  watched.page.setDefaultTimeout(30_000);
});
test.after(async () => {
  await browser?.close();
  await gateway?.remove();
  await backend?.close();
});

inBrowser('say what to do while no server wants one', async () => {
  const { page } = watched;
  await page.goto(`${gateway.url}/console/connections`);
  await signIn(page);
  await page.getByText('No accounts are connected.').waitFor();
  assert.equal(await axeFindings(page), []);
  await page.locator('main').getByRole('link', { name: 'Register' }).click();
  await page.getByRole('heading', { name: 'Register an instance', level: 1 }).waitFor();
});

inBrowser('are reached from an instance that waits for one, and the shared one is connected', async () => {
  const { page } = watched;
  await page.getByLabel(/^Template/).fill('mail');
  await page.getByLabel('Instance name').fill('one');
  await page.getByRole('button', { name: 'Endpoint' }).click();
  await page.getByLabel(/^URL/).fill(backend.url);
  await page.getByLabel('Account at the server').selectOption('shared');
  await page.getByLabel('Scopes').fill('read');
  assert.equal(await axeFindings(page), []);
  await page.getByRole('button', { name: 'Register', exact: true }).click();
  await page.getByRole('heading', { name: 'mail', level: 1 }).waitFor();
  await page.goto(`${gateway.url}/console/`);
  await page.getByText('one waits for an account at its server.').waitFor();
  await page.goto(`${gateway.url}/console/template?name=mail`);
  const row = page.locator('.instances .row', { hasText: 'one' });
  await row.getByText('No account').waitFor();
  assert.equal(await axeFindings(page), []);
  await row.getByRole('link', { name: 'Connected accounts' }).click();
  const connect = page.getByRole('button', { name: 'Connect: mail/one' });
  await connect.focus();
  const { promise: isPressed, resolve: answer } = Promise.withResolvers<void>();
  let asked = 0;
  await page.route('**/gateway/connections', async (route) => {
    if (route.request().method() === 'POST') asked += 1;
    await isPressed;
    await route.continue();
  });
  for (const key of ['Enter', 'Enter']) await page.keyboard.press(key);
  answer();
  const link = page.getByRole('dialog').getByRole('link', { name: 'Open the page in a new tab' });
  await link.waitFor();
  assert.is(asked, 1);
  assert.equal(await axeFindings(page), []);
  backend.account = 'the team';
  const [tab] = await Promise.all([page.context().waitForEvent('page'), link.click()]);
  await tab.getByText('all callers of this server').waitFor();
  await tab.getByRole('button', { name: /^Continue to / }).click();
  await tab.getByText('The account is connected').waitFor();
  await tab.close();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Connect again: mail/one' }).waitFor();
  const account = page.getByRole('list', { name: 'Accounts' }).getByRole('listitem');
  await account.getByText('all (shared)').waitFor();
  assert.match((await account.textContent()) ?? '', new URL(backend.issuer).origin);
  await account.getByText('Connected', { exact: true }).waitFor();
  const servers = page.getByRole('list', { name: '1 server with an account' });
  await servers.getByText('Connected', { exact: true }).waitFor();
  assert.equal(await axeFindings(page), []);
  const { body } = await gateway.admin('POST /mcp/mail/tools/call', WHOAMI);
  assert.is(Object(body).content[0].text, 'the team');
});

inBrowser('are disconnected after a confirmation', async () => {
  const { page } = watched;
  await page.getByRole('button', { name: 'Disconnect all (shared) from mail' }).click();
  const dialog = page.getByRole('dialog', { name: 'Disconnect all (shared) from mail?' });
  await dialog.waitFor();
  assert.equal(await axeFindings(page), []);
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: 'Disconnect all (shared) from mail' }).click();
  await dialog.getByRole('button', { name: 'Disconnect' }).click();
  await page.getByText('No accounts are connected.').waitFor();
  assert.equal((await gateway.admin('GET /gateway/connections')).body, []);
});

inBrowser('stay what an instance wants when it is edited', async () => {
  const { page } = watched;
  await page.goto(`${gateway.url}/console/register?template=mail&instance=one`);
  await page.getByLabel('Weight').fill('7');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { name: 'mail', level: 1 }).waitFor();
  const { weight, auth } = Object((await gateway.admin('GET /servers/one')).body);
  assert.equal([weight, auth], [7, { mode: 'oauth', who: 'shared', scopes: ['read'] }]);
});

inBrowser('are chosen for a template, for the instances that are registered later', async () => {
  const { page } = watched;
  const path = 'GET /gateway/templates/mail';
  const authIs = (wanted: unknown) =>
    becomes(async () => Object((await gateway.admin(path)).body).auth, wanted);
  await page.goto(`${gateway.url}/console/template?name=mail`);
  const account = page.getByRole('region', { name: 'Account at the server' });
  await account.getByLabel('Account').selectOption('user');
  await authIs({ mode: 'oauth', who: 'user' });
  await account.getByLabel('Scopes').fill('read  write');
  await page.keyboard.press('Enter');
  await authIs({ mode: 'oauth', who: 'user', scopes: ['read', 'write'] });
  assert.equal(await axeFindings(page), []);
  await account.getByLabel('Account').selectOption('shared');
  await authIs({ mode: 'oauth', who: 'shared', scopes: ['read', 'write'] });
  await page.reload();
  await account.getByLabel('Account').selectOption('');
  await authIs(null);
  await account.getByLabel('Scopes').waitFor({ state: 'detached' });
  await account.getByLabel('Account').selectOption('headers');
  await authIs({ mode: 'headers' });
  await account.getByLabel('Account').selectOption('none');
  await authIs({ mode: 'none' });
});

inBrowser('of a user are their own, and the shared one is for administrators', async () => {
  const { page } = watched;
  await register(gateway.admin, 'notes', [
    { id: 'one', endpoint: backend.url, auth: { mode: 'oauth', who: 'user' } },
  ]);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await page.goto(`${gateway.url}/console/connections`);
  await signIn(page, 'ada');
  await page.getByRole('button', { name: 'Connect: notes/one' }).click();
  assert.is(await page.getByRole('button', { name: 'Connect: mail/one' }).count(), 0);
  backend.account = 'ada at work';
  const link = page.getByRole('dialog').getByRole('link', { name: 'Open the page in a new tab' });
  const [tab] = await Promise.all([page.context().waitForEvent('page'), link.click()]);
  await tab.getByText('ada alone').waitFor();
  await tab.getByRole('button', { name: /^Continue to / }).click();
  await tab.getByText('The account is connected').waitFor();
  await tab.close();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Disconnect ada from notes' }).waitFor();
  await page.setViewportSize({ width: 380, height: 800 });
  assert.equal(await axeFindings(page), []);
  assert.ok(
    await page.evaluate('document.documentElement.scrollWidth <= document.documentElement.clientWidth'),
  );
});

inBrowser('log no error to the browser console', () => {
  assert.equal(
    watched.complaints.filter((each) => !/status of 401/.test(each)),
    [],
  );
});

test.run();
