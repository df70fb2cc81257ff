// The page of users and keys of the console with many keys: a part of them is in the document, and a filter finds any.

import * as assert from 'uvu/assert';
import type { EverythingHttp } from '../../fixtures/everything/http-face.ts';
import { startEverything } from '../../fixtures/everything-server.ts';
import { type Browser, launchBrowser } from '../../helpers/browsers/browser.ts';
import { canUseConsole, NO_CONSOLE, signIn } from '../../helpers/browsers/console.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { type McpHarness, PASSWORD, register, startGuarded } from '../../helpers/programs/mcp-program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the console with many accounts', { timeoutMs: 60_000 });
const inBrowser = test.needs(canUseConsole, NO_CONSOLE);

const KEYS = 250;
const folder = folderOfAll(test)();
let gateway: McpHarness;
let browser: Browser;
let server: EverythingHttp | undefined;
test.before(async () => {
  if (!canUseConsole) return;
  gateway = await startGuarded({ folder });
  for (let n = 1; n <= KEYS; n += 1) {
    const body = { name: `nightly ${n}`, permissions: ['tools:call'] };
    assert.is((await gateway.admin('POST /auth/api-keys', body)).status, 201);
  }
  browser = await launchBrowser();
});
test.after(async () => {
  await browser?.close();
  await gateway?.remove();
  await server?.close();
});

inBrowser('shows 100 of them, more on demand, and each by its name', async () => {
  const { page } = await browser.open();
  await page.goto(`${gateway.url}/console/users`);
  await signIn(page);
  const keys = page.getByRole('region', { name: 'API keys' });
  const rows = keys.getByRole('listitem');
  await rows.first().waitFor();
  assert.is(await rows.count(), 100);
  for (const shown of [200, KEYS]) {
    await keys.getByRole('button', { name: 'Show more' }).click();
    await rows.nth(shown - 1).waitFor();
    assert.is(await rows.count(), shown);
  }
  assert.is(await keys.getByRole('button', { name: 'Show more' }).count(), 0);
  await keys.getByLabel('Filter API keys').fill('Nightly 249');
  await rows.nth(1).waitFor({ state: 'detached' });
  await keys.getByRole('button', { name: 'Revoke nightly 249' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click();
  await keys.getByText('Nothing matches.').waitFor();
  await page.close();
});

inBrowser('previews a view as any of them, which a filter finds', async () => {
  server = await startEverything({ name: 'files' });
  await register(gateway.admin, 'files', [{ id: 'one', endpoint: server.url }]);
  const from = [{ template: 'files' }];
  assert.is((await gateway.admin('PUT /gateway/views/desk', { from })).status, 201);
  const { page } = await browser.open();
  page.setDefaultTimeout(10_000);
  await page.goto(`${gateway.url}/console/view?id=desk`); // signed in by the first test
  const callers = page.getByLabel('Preview as');
  await page.getByLabel('Filter users and keys').fill('Nightly 248');
  const options = callers.getByRole('option');
  await options.nth(2).waitFor({ state: 'detached' });
  assert.equal(await options.allTextContents(), ['As you see it', 'Key nightly 248']);
  await callers.selectOption({ label: 'Key nightly 248' });
  await page.getByLabel('Filter users and keys').fill('nightly');
  await options.nth(100).waitFor({ state: 'attached' });
  assert.ok((await options.count()) < 110);
  assert.match(String(await options.last().textContent()), '148 more');
  assert.is(await callers.locator('option:checked').textContent(), 'Key nightly 248');
  await page.close();
});

inBrowser('names by no id what was deleted meanwhile', async () => {
  const ada = { username: 'ada', email: 'ada@localhost', password: PASSWORD, role: 'user' };
  const { body } = await gateway.admin('POST /auth/users', ada);
  const { page } = await browser.open();
  page.setDefaultTimeout(10_000);
  await page.goto(`${gateway.url}/console/users`); // signed in by the first test
  await page.getByRole('button', { name: 'Disable ada' }).waitFor();
  assert.is((await gateway.admin(`DELETE /auth/users/${Object(body).id}`)).status, 204);
  await page.getByRole('button', { name: 'Disable ada' }).click();
  await page.getByText('The user no longer exists.').waitFor();
  await page.getByRole('button', { name: 'Disable ada' }).waitFor({ state: 'detached' });
  await page.getByLabel('Filter API keys').fill('nightly 247');
  const revoke = page.getByRole('button', { name: 'Revoke nightly 247' });
  await revoke.click();
  const listed = await gateway.admin('GET /auth/api-keys');
  const key = (listed.body as { name: string; id: string }[]).find(({ name }) => name === 'nightly 247');
  assert.is((await gateway.admin(`DELETE /auth/api-keys/${key?.id}`)).status, 204);
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click();
  await page.getByText('The API key no longer exists.').waitFor();
  await page.close();
});

test.run();
