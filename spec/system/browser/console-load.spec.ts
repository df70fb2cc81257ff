// What the console loads, and when: a first script that is small, each page when it is first opened, and words for a page that
// cannot be loaded because the gateway is away or was updated meanwhile.

import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import type { Page, Route } from 'playwright-core';
import * as assert from 'uvu/assert';
import { axeFindings, type Browser, launchBrowser } from '../../helpers/browsers/browser.ts';
import {
  CONSOLE_FILES,
  canUseConsole,
  isConsoleBuilt,
  NO_CONSOLE,
  NOT_BUILT,
} from '../../helpers/browsers/console.ts';
import { type McpHarness, startHarness } from '../../helpers/programs/mcp-program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the files of the console', { timeoutMs: 120_000 });
const inBrowser = test.needs(canUseConsole, NO_CONSOLE);

/** Compressed. The overview is the first page, with its charts. */
const FIRST_SCRIPT_BYTES = 24_000;
const OVERVIEW_BYTES = 28_000;
const ALL_BYTES = 72_000;

let gateway: McpHarness;
let url = '';
let browser: Browser;
test.before(async () => {
  if (!canUseConsole) return;
  gateway = await startHarness();
  ({ url } = gateway);
  browser = await launchBrowser();
});
test.after(async () => {
  await browser?.close();
  await gateway?.remove();
});

test.needs(isConsoleBuilt, NOT_BUILT)('have at most 72 kB of scripts, compressed', () => {
  const folder = fileURLToPath(new URL('assets/', CONSOLE_FILES));
  const scripts = readdirSync(folder).filter((name) => name.endsWith('.js'));
  const sum = scripts.reduce((total, name) => total + gzipSync(readFileSync(folder + name)).length, 0);
  assert.ok(sum > 0 && sum <= ALL_BYTES, `${sum} bytes`);
});

inBrowser('are two scripts of at most 28 kB for the overview, and one more for another page', async () => {
  const page = await opened('', 'Overview');
  await page.locator('.plot .mark').first().waitFor();
  const first = await scriptsOf(page);
  assert.equal(
    first.map(({ name }) => name),
    ['index', 'overview'],
  );
  const sum = first.reduce((total, { bytes }) => total + bytes, 0);
  assert.ok(sum <= OVERVIEW_BYTES, `${sum} bytes`);
  assert.ok((first[0]?.bytes ?? 0) <= FIRST_SCRIPT_BYTES, JSON.stringify(first));
  await page.getByRole('link', { name: 'Settings' }).click();
  await heading(page, 'Settings');
  assert.equal(
    (await scriptsOf(page)).slice(2).map(({ name }) => name),
    ['settings'],
  );
  await page.close();
});

inBrowser('are loaded for a page while the pointer or the focus is at its link', async () => {
  const page = await opened('settings', 'Settings');
  for (const [name, reach] of [
    ['Sessions', 'hover'],
    ['Grants', 'focus'],
  ] as const) {
    const script = page.waitForResponse(new RegExp(`/assets/${name.toLowerCase()}-`));
    await page.getByRole('link', { name })[reach]();
    assert.is((await script).status(), 200);
  }
  await heading(page, 'Settings');
  await page.close();
});

inBrowser('can be loaded again after the gateway did not answer', async () => {
  const page = await opened('settings', 'Settings');
  const abort = (route: Route): Promise<void> => route.abort();
  for (const pattern of ['**/assets/audit-*.js', '**/console/']) await page.route(pattern, abort);
  await page.goto(`${url}/console/settings`);
  await heading(page, 'Settings');
  await follow(page, 'audit');
  await page.getByRole('alert').getByText('The gateway does not answer.').waitFor();
  await heading(page, 'Audit log');
  assert.equal(await axeFindings(page), []);
  for (const pattern of ['**/assets/audit-*.js', '**/console/']) await page.unroute(pattern);
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByLabel('Actor').waitFor();
  await page.close();
});

inBrowser('ask for a reload after the gateway was updated', async () => {
  const page = await opened('settings', 'Settings');
  await page.route('**/assets/sessions-*.js', (route) => route.fulfill({ status: 404, json: {} }));
  const newer = '<!doctype html><script type="module" src="./assets/index-newer000.js"></script>';
  await page.route('**/console/', (route) => route.fulfill({ contentType: 'text/html', body: newer }));
  await follow(page, 'sessions');
  await page.getByRole('alert').getByText('The gateway was updated since the console was opened.').waitFor();
  assert.equal(await axeFindings(page), []);
  await page.unroute('**/assets/sessions-*.js');
  await page.getByRole('button', { name: 'Reload' }).click();
  await page.getByText('No client has a session.').waitFor();
  await page.close();
});

// The last one: the clock is that of all pages of the browser.
inBrowser('leave a page in view until the next one is there, and say so when that takes long', async () => {
  const page = await opened('settings', 'Settings', (made) => made.clock.install());
  await page.clock.pauseAt(Date.now() + 60_000);
  const releases: (() => void)[] = [];
  await page.route(/\/assets\/(?:grants|sessions)-/, (route) => {
    releases.push(() => void route.continue());
  });
  const next = async (name: string): Promise<void> => {
    const asked = page.waitForRequest(new RegExp(`/assets/${name}-`));
    await follow(page, name);
    await asked;
  };
  await next('sessions');
  await heading(page, 'Settings');
  assert.match(page.url(), /settings$/);
  releases.pop()?.();
  await heading(page, 'Sessions');
  assert.match(page.url(), /sessions$/);
  await next('grants');
  await page.clock.runFor(1_000);
  await page.getByText('Loading the page…').waitFor();
  releases.pop()?.();
  await heading(page, 'Grants');
  await page.close();
});

async function opened(path: string, title: string, prepare?: (page: Page) => Promise<void>): Promise<Page> {
  const { page } = await browser.open();
  await prepare?.(page);
  page.setDefaultTimeout(20_000);
  await page.goto(`${url}/console/${path}`);
  await heading(page, title);
  return page;
}

function heading(page: Page, name: string): Promise<void> {
  return page.getByRole('heading', { name, level: 1 }).waitFor();
}

/** Without the pointer or the focus at the link before. */
async function follow(page: Page, name: string): Promise<void> {
  await page.locator(`nav a[href$="/${name}"]`).dispatchEvent('click');
}

/** What was loaded as scripts, in this order, with the bytes that were sent. */
async function scriptsOf(page: Page): Promise<readonly { readonly name: string; readonly bytes: number }[]> {
  const entries = `performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('.js'))
    .map(({ name, encodedBodySize: bytes }) => ({ name: name.replace(/.*\\/|-.{8}\\.js$/g, ''), bytes }))`;
  return Object(await page.evaluate(entries));
}

test.run();
