// A session of the console that ends while its page is in use: what was filled in is still there after the sign-in.

import type { Page } from 'playwright-core';
import * as assert from 'uvu/assert';
import { startEverything } from '../../fixtures/everything-server.ts';
import { type Browser, launchBrowser } from '../../helpers/browsers/browser.ts';
import { canUseConsole, NO_CONSOLE, signIn } from '../../helpers/browsers/console.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { type McpHarness, PASSWORD, register, startGuarded } from '../../helpers/programs/mcp-program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('a session of the console that ends', { timeoutMs: 60_000 });
const inBrowser = test.needs(canUseConsole, NO_CONSOLE);

const folder = folderOfAll(test)();
let gateway: McpHarness;
let browser: Browser;
let page: Page;
test.before(async () => {
  if (!canUseConsole) return;
  gateway = await startGuarded({ folder });
  const ada = { username: 'ada', email: 'ada@localhost', password: PASSWORD, role: 'user' };
  assert.is((await gateway.admin('POST /auth/users', ada)).status, 201);
  browser = await launchBrowser();
});
test.before.each(async () => {
  if (!canUseConsole) return;
  ({ page } = await browser.open());
  await page.goto(`${gateway.url}/console`);
  await signIn(page);
});
test.after.each(async () => {
  await page?.context().clearCookies();
  await page?.close();
});
test.after(async () => {
  await browser?.close();
  await gateway?.remove();
});

inBrowser('keeps the fields of a page, which can be sent after the sign-in', async () => {
  await page.goto(`${gateway.url}/console/register`);
  await page.getByLabel('Template').fill('kept');
  await page.getByRole('button', { name: 'Endpoint' }).click();
  await page.getByLabel('URL').fill('http://127.0.0.1:9/mcp');
  await page.getByLabel('Weight').fill('7');
  await endSession();
  await press('Register');
  await signIn(page);
  assert.is(await page.getByLabel('Weight').inputValue(), '7');
  await page.getByRole('button', { name: 'Register', exact: true }).click();
  await page.getByRole('heading', { level: 1, name: 'kept' }).waitFor();
  const { body } = await gateway.admin('GET /servers');
  assert.is(Object(body)[0].weight, 7);
});

inBrowser('keeps an open dialog, from which no key leads past the sign-in', async () => {
  await page.goto(`${gateway.url}/console/users`);
  await page.getByRole('button', { name: 'New user' }).click();
  const dialog = page.getByRole('dialog', { name: 'New user' });
  await dialog.getByLabel('User name').fill('eve');
  await dialog.getByLabel('Email').fill('eve@localhost');
  await dialog.getByLabel('Password').fill(PASSWORD);
  await endSession();
  await press('Create');
  for (const key of ['Escape', 'Escape', 'Escape']) await page.keyboard.press(key);
  await signIn(page);
  assert.is(await dialog.getByLabel('User name').inputValue(), 'eve');
  assert.is(await dialog.getByRole('alert').textContent(), 'The session had ended. Try again.');
  await dialog.getByRole('button', { name: 'Create' }).click();
  await page.getByText('eve@localhost').waitFor();
});

inBrowser('reads what was refused again after the sign-in', async () => {
  await page.goto(`${gateway.url}/console/users`);
  await page.getByText('ada@localhost').waitFor();
  await endSession();
  await press('Disable ada');
  await page.getByRole('alert').waitFor({ state: 'attached' });
  await signIn(page);
  await page.getByRole('alert').waitFor({ state: 'detached' });
  await page.getByText('Live', { exact: true }).waitFor();
});

inBrowser('reads the tools and the preview of a view again after the sign-in', async () => {
  const server = await startEverything({ name: 'files' });
  try {
    await register(gateway.admin, 'files', [{ id: 'one', endpoint: server.url }]);
    const from = [{ template: 'files' }];
    assert.is((await gateway.admin('PUT /gateway/views/desk', { from })).status, 201);
    for (const path of ['**/mcp/files/tools/list', '**/gateway/views/preview'])
      await page.route(path, (asked) => asked.fulfill({ status: 401, json: {} }), { times: 1 });
    await page.goto(`${gateway.url}/console/view?id=desk`);
    await page.getByText('Your session has ended.').waitFor();
    await page.getByText('The session had ended.').nth(1).waitFor({ state: 'attached' });
    await signIn(page);
    await page.getByRole('checkbox', { name: 'test_simple_text of files', exact: true }).waitFor();
    const preview = page.getByRole('region', { name: 'Preview' });
    await preview.getByText(/^[\d,]+ tokens$/).waitFor();
    assert.is(await page.getByText('The session had ended.').count(), 0);
  } finally {
    await server.close();
  }
});

inBrowser('shows nothing of the account that was signed in before to another one', async () => {
  await page.goto(`${gateway.url}/console/users`);
  await page.getByText('ada@localhost').waitFor();
  await endSession();
  await press('Disable ada');
  await signIn(page, 'ada');
  await page.getByText('Page not found, or your account may not see it.').waitFor();
  assert.is(await page.getByText('ada@localhost').count(), 0);
});

async function endSession(): Promise<void> {
  await page.context().clearCookies();
}

/** A request of the page may notice the end before, and the sign-in cover the button. */
async function press(name: string): Promise<void> {
  await page.getByRole('button', { name, exact: true }).dispatchEvent('click');
  await page.getByText('Your session has ended.').waitFor();
}

test.run();
