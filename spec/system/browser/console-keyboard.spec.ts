// The console without a mouse: each dialog and the menu are opened, used and closed with keys, and the focus is then where it was.

import type { Locator, Page } from 'playwright-core';
import * as assert from 'uvu/assert';
import type { EverythingHttp } from '../../fixtures/everything/http-face.ts';
import { startEverything } from '../../fixtures/everything-server.ts';
import { type Browser, launchBrowser } from '../../helpers/browsers/browser.ts';
import { canUseConsole, NO_CONSOLE, signIn } from '../../helpers/browsers/console.ts';
import { newKey } from '../../helpers/clients/caller.ts';
import { eventually } from '../../helpers/eventually.ts';
import { type McpHarness, PASSWORD, register, startGuarded } from '../../helpers/programs/mcp-program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the console with the keyboard alone', { timeoutMs: 120_000 });
const inBrowser = test.needs(canUseConsole, NO_CONSOLE);

let gateway: McpHarness;
let server: EverythingHttp;
let browser: Browser;
let page: Page;
test.before(async () => {
  if (!canUseConsole) return;
  gateway = await startGuarded();
  const { admin } = gateway;
  server = await startEverything();
  await register(admin, 'everything', [{ id: 'one', endpoint: server.url }]);
  const ada = { username: 'ada', email: 'ada@localhost', password: PASSWORD, role: 'user' };
  assert.is((await admin('POST /auth/users', ada)).status, 201);
  await newKey(admin, 'nightly');
  const from = [{ template: 'everything', tools: ['test_simple_text'] }];
  assert.is((await admin('PUT /gateway/views/desk', { from })).status, 201);
  assert.is((await admin('PUT /gateway/templates/spare/definition', SPARE)).status, 201);
  browser = await launchBrowser();
  ({ page } = await browser.open());
  page.setDefaultTimeout(10_000);
  await page.goto(`${gateway.url}/console/`);
  await signIn(page);
});
test.after(async () => {
  await browser?.close();
  await gateway?.remove();
  await server?.close();
});

const SPARE = {
  ...{ name: 'spare', description: 'd', version: '1.0.0', transport: 'http' },
  endpoint: 'http://127.0.0.1:9/mcp',
};

/** What opens the dialogs, by the page. */
const OPENERS: readonly (readonly [path: string, name: string])[] = [
  ['users', 'New user'],
  ['users', 'New key'],
  ['users', 'Change ada'],
  ['users', 'Delete ada'],
  ['users', 'Change nightly'],
  ['users', 'Revoke nightly'],
  ['views', 'Delete desk'],
  ['view?id=desk', 'Rename or describe test_simple_text of everything'],
  ['template?name=spare', 'Delete the template'],
  ['template?name=everything', 'one'],
  ['audit', 'POST /gateway/register'],
];

inBrowser('opens each dialog, keeps the focus in it, and returns to what opened it', async () => {
  const wrong: string[] = [];
  const outside = page.locator(':focus:not(dialog, dialog *, body)');
  for (const [path, name] of OPENERS) {
    await page.goto(`${gateway.url}/console/${path}`);
    const opener = page
      .getByRole('button', { name, exact: true })
      .or(page.getByRole('link', { name, exact: true }))
      .first();
    for (const close of ['Escape', 'Close', 'Cancel'] as const) {
      await opener.focus();
      await page.keyboard.press('Enter');
      const dialog = page.getByRole('dialog');
      await dialog.waitFor();
      for (let count = 0; count < 40; count += 1) {
        await page.keyboard.press('Tab');
        // Between the last and the first one the focus is at the frame of the browser.
        if ((await outside.count()) > 0) wrong.push(`${path} ${name}: the focus leaves the dialog`);
      }
      const button = dialog.getByRole('button', { name: close, exact: true });
      if (close === 'Escape') await page.keyboard.press('Escape');
      else if ((await button.count()) === 0) await page.keyboard.press('Escape');
      else await button.press('Enter');
      await page.locator('dialog').waitFor({ state: 'detached' });
      if (!(await eventually(() => hasFocus(opener), Boolean, 1_000)))
        wrong.push(`${path} ${name}: the focus is lost after ${close}`);
    }
  }
  assert.equal([...new Set(wrong)], []);
});

inBrowser('returns to what opened a dialog after its action, or to the page if that is gone', async () => {
  await page.goto(`${gateway.url}/console/users`);
  const change = page.getByRole('button', { name: 'Change ada' });
  await change.press('Enter');
  await page.getByRole('dialog').getByLabel('Call tools').press('Space');
  await page.keyboard.press('Enter');
  await page.getByText('ada is changed.').waitFor();
  assert.ok(await eventually(() => hasFocus(change), Boolean, 5_000), 'the opener has the focus');
  await page.getByRole('button', { name: 'New key' }).press('Enter');
  await page.getByRole('dialog').getByLabel(/^Name/).fill('weekly');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Done' }).press('Enter');
  assert.ok(await eventually(() => hasFocus(page.getByRole('button', { name: 'New key' })), Boolean, 5_000));
  await page.getByRole('button', { name: 'Delete ada' }).press('Enter');
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).press('Enter');
  await page.getByText('ada@localhost').waitFor({ state: 'detached' });
  assert.ok(
    await eventually(() => hasFocus(page.locator('#main')), Boolean, 5_000),
    'the page has the focus',
  );
});

inBrowser('goes to the page after a dialog that its address opened', async () => {
  await page.goto(`${gateway.url}/console/template?name=everything&instance=one`);
  await page.getByRole('dialog').waitFor();
  await page.keyboard.press('Escape');
  await page.locator('dialog').waitFor({ state: 'detached' });
  assert.ok(await eventually(() => hasFocus(page.locator('#main')), Boolean, 5_000));
});

inBrowser('opens and closes the menu of a narrow window', async () => {
  await page.setViewportSize({ width: 380, height: 800 });
  await page.goto(`${gateway.url}/console/users`);
  const menu = page.getByRole('button', { name: 'Menu' });
  const link = page.getByRole('link', { name: 'Sessions', exact: true });
  await menu.press('Enter');
  await link.focus();
  await page.keyboard.press('Escape');
  await link.waitFor({ state: 'hidden' });
  assert.ok(await hasFocus(menu), 'the menu button has the focus');
  await page.keyboard.press('Enter');
  await link.press('Enter');
  await page.getByRole('heading', { name: 'Sessions', level: 1 }).waitFor();
  await link.waitFor({ state: 'hidden' });
  assert.ok(
    await eventually(() => hasFocus(page.locator('#main')), Boolean, 5_000),
    'the page has the focus',
  );
});

function hasFocus(element: Locator): Promise<boolean> {
  return element.evaluate((node) => node.matches(':focus'));
}

test.run();
