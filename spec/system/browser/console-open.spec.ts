// The console of a gateway without authentication: no sign-in, every tool can be called, and actions that the gateway refuses
// to a browser are not offered.

import * as assert from 'uvu/assert';
import type { EverythingHttp } from '../../fixtures/everything/http-face.ts';
import { startEverything } from '../../fixtures/everything-server.ts';
import { type Browser, launchBrowser, type WatchedPage } from '../../helpers/browsers/browser.ts';
import { canUseConsole, NO_CONSOLE } from '../../helpers/browsers/console.ts';
import { type McpHarness, PASSWORD, register, startHarness } from '../../helpers/programs/mcp-program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the console without authentication', { timeoutMs: 60_000 });
const inBrowser = test.needs(canUseConsole, NO_CONSOLE);

let gateway: McpHarness;
let url = '';
let server: EverythingHttp;
let browser: Browser;
let watched: WatchedPage;
test.before(async () => {
  if (!canUseConsole) return;
  gateway = await startHarness();
  const { admin } = gateway;
  ({ url } = gateway);
  server = await startEverything({ name: 'everything-1' });
  await register(admin, 'everything', [{ id: 'everything-1', endpoint: server.url }]);
  const ada = { username: 'ada', email: 'ada@localhost', password: PASSWORD, role: 'user' };
  assert.is((await admin('POST /auth/users', ada)).status, 201);
  browser = await launchBrowser();
  watched = await browser.open();
  watched.page.setDefaultTimeout(10_000);
});
test.after(async () => {
  await browser?.close();
  await gateway?.remove();
  await server?.close();
});

inBrowser('shows the gateway at once, and calls a tool', async () => {
  const { page } = watched;
  await page.goto(url);
  await page.getByText('All healthy: 1 instance in 1 template.').waitFor();
  await page.getByText('Authentication is off: no account is needed.').waitFor();
  await page.goto(`${url}/console/playground?template=everything&item=test_simple_text`);
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await page.getByText('Full result as JSON').waitFor();
  await page.getByText('by everything-1').waitFor();
});

inBrowser('offers no change of accounts and no command, and names the shell commands for these', async () => {
  const { page } = watched;
  await page.goto(`${url}/console/users`);
  await page.getByText('stagedoor user create').waitFor();
  await page.getByText('ada@localhost').waitFor();
  assert.is(await page.getByRole('button', { name: /^New / }).count(), 0);
  assert.ok(await page.getByRole('button', { name: 'Change' }).isDisabled());
  assert.ok(await page.getByRole('button', { name: 'Delete' }).isDisabled());
  await page.goto(`${url}/console/register`);
  await page.getByRole('button', { name: 'Command' }).click();
  await page.getByText('stagedoor instance register').waitFor();
});

inBrowser('logs no error to the browser console', () => {
  assert.equal(watched.complaints, []);
});

test.run();
