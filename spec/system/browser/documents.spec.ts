// The pages that show the API, in a real Chromium: every operation is listed, one of each tag opens, the login works, and a call
// can be tried. A request to another origin, a message on the browser console and a violation of the page's policy are failures.

import type { Locator } from 'playwright-core';
import * as assert from 'uvu/assert';
import { TAGS, tagOf } from '../../../src/http/openapi/openapi-document.ts';
import { ROUTES } from '../../../src/http/routes/index.ts';
import { fixtureHandler } from '../../helpers/backends/function-backend.ts';
import {
  type Browser,
  chromiumPath,
  launchBrowser,
  NO_CHROMIUM,
  type WatchedPage,
} from '../../helpers/browsers/browser.ts';
import { type AccountsFixture, PASSWORD, startWithAccounts } from '../../helpers/http/accounts.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the pages that show the API', { timeoutMs: 240_000 });
const inBrowser = test.needs(chromiumPath, NO_CHROMIUM);

const MAIN_PATH = '/mcp/{template}/tools/call';

let app: AccountsFixture;
let browser: Browser;
test.before(async () => {
  app = await startWithAccounts();
  const fixture = fixtureHandler('one');
  // The tool of the example has the same argument as in the demo.
  await app.serve('everything', 'one', (request, context) => {
    if (request.method !== 'tools/call') return fixture(request, context);
    const { message } = Object(Object(request.params).arguments);
    return { content: [{ type: 'text', text: `Echo: ${message}` }] };
  });
  if (chromiumPath !== undefined) browser = await launchBrowser();
});
test.after(async () => {
  await browser?.close();
  await app.close();
});

inBrowser('Swagger UI shows every operation, and opens the first of each tag', () =>
  visit('docs', async ({ page }) => {
    await page.locator('.opblock').first().waitFor();
    const shown = await page.locator('.opblock-summary-path').allTextContents();
    const expected = ROUTES.map(({ path }) => path.replaceAll(/[:*](\w+)/g, '{$1}'));
    assert.equal(shown.map((text) => text.replaceAll(/[\s\u200b]/g, '')).sort(), expected.sort());
    // Opening one takes a second or more; whether all schemas resolve is tested with the description.
    for (const section of await page.locator('.opblock-tag-section').all()) {
      const box = section.locator('.opblock').first();
      await box.locator('.opblock-summary-control').dispatchEvent('click');
      await box.locator('.responses-wrapper .response').first().waitFor();
    }
  }),
);

inBrowser('Swagger UI logs in by the form, then calls a tool', () =>
  visit('docs', async (watched) => {
    await logIn(watched);
    const [status, body] = await execute(operation(watched, 'POST', MAIN_PATH));
    assert.is(status, '200');
    assert.match(body, /"Echo: hello"/);
  }),
);

inBrowser(
  'Swagger UI begins with calls by template, and keeps the login over a reload, for its tab only',
  () =>
    visit('docs', async (watched) => {
      const { page } = watched;
      await page.locator('.opblock').first().waitFor();
      assert.is(await page.locator('.opblock-summary-path').first().getAttribute('data-path'), MAIN_PATH);
      await logIn(watched);
      await page.reload();
      await page.locator('.auth-wrapper .authorize.locked').waitFor();
      assert.is(await page.evaluate(() => localStorage.getItem('authorized')), null);
    }),
);

inBrowser('ReDoc shows every operation', () =>
  visit('redoc', async ({ page }) => {
    await page.getByText(app.url, { exact: true }).first().waitFor();
    for (const tag of TAGS) {
      await page.getByRole('link', { name: tag.name, exact: true }).first().click();
      for (const { summary } of ROUTES.filter(({ path }) => tagOf(path) === tag.name)) {
        await page.getByRole('link', { name: summary }).first().click();
        await page.getByRole('heading', { name: summary }).first().waitFor();
      }
    }
  }),
);

inBrowser('ReDoc searches without the worker that the policy forbids', () =>
  visit('redoc', async ({ page }) => {
    await page.getByRole('heading', { name: 'Stagedoor' }).first().waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.type('deregister');
    await page.getByText('Deregister an instance').first().waitFor();
  }),
);

/** Opens a page, uses it, and asserts that it logs nothing and requests nothing from other origins. */
async function visit(path: string, use: (page: WatchedPage) => Promise<void>): Promise<void> {
  const watched = await browser.open();
  await watched.page.goto(`${app.url}/${path}`);
  await use(watched);
  await watched.page.close();
  assert.equal(watched.complaints, []);
  const elsewhere = watched.requests.filter(
    (url) => !url.startsWith(`${app.url}/`) && !url.startsWith('data:'),
  );
  assert.equal(elsewhere, []);
}

/** The box of one operation of Swagger UI. */
function operation({ page }: WatchedPage, method: string, path: string): Locator {
  return page
    .locator(`.opblock:has([data-path="${path}"])`)
    .filter({ has: page.locator('.opblock-summary-method', { hasText: method }) });
}

async function logIn({ page }: WatchedPage): Promise<void> {
  await page.locator('.auth-wrapper .authorize').first().click();
  const dialog = page.locator('.dialog-ux .modal-ux');
  await dialog.locator('#oauth_username').fill('admin');
  await dialog.locator('#oauth_password').fill(PASSWORD);
  const form = dialog.locator('.auth-container').first();
  await form.locator('button', { hasText: 'Authorize' }).click();
  await form.locator('button', { hasText: 'Logout' }).waitFor();
  await dialog.locator('.close-modal').click();
}

/** Sends the proposed request, and returns the status and the text of the answer. */
async function execute(box: Locator): Promise<[status: string, body: string]> {
  await box.locator('.opblock-summary-control').click();
  await box.locator('button.execute').click();
  const answer = box.locator('.live-responses-table tbody .response').first();
  await answer.waitFor();
  const status = (await answer.locator('.response-col_status').textContent()) ?? '';
  const body = (await answer.locator('.response-col_description').textContent()) ?? '';
  return [status.slice(0, 3), body];
}

test.run();
