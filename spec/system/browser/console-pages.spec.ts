// Every page of the console in a real Chromium: without a finding of axe in light and dark, without a horizontal scroll bar
// at 380 px, and with few rows in the document for many instances and tools. The size of its script has a bound.
// With STAGEDOOR_SCREENSHOTS=1 it also makes the pictures of the guide.

import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { source as axe } from 'axe-core';
import type { Locator, Page } from 'playwright-core';
import * as assert from 'uvu/assert';
import { everythingProgram } from '../../fixtures/everything-server.ts';
import { type Browser, launchBrowser, type WatchedPage } from '../../helpers/browser.ts';
import { type Caller, caller, newKey, tokenOf } from '../../helpers/caller.ts';
import {
  CONSOLE_FILES,
  canUseConsole,
  isConsoleBuilt,
  NO_CONSOLE,
  NOT_BUILT,
  PASSWORD,
  signIn,
} from '../../helpers/console.ts';
import { register } from '../../helpers/mcp-program.ts';
import { Program } from '../../helpers/program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the pages of the console', { timeoutMs: 180_000 });
const inBrowser = test.needs(canUseConsole, NO_CONSOLE);

const PAGES = {
  overview: '',
  template: 'template?name=everything',
  instance: 'template?name=everything&instance=one',
  register: 'register?template=filesystem',
  playground: 'playground?template=everything&item=json_schema_2020_12_tool',
  activity: 'activity',
  sessions: 'sessions',
  connect: 'connect?template=everything',
  users: 'users',
  settings: 'settings',
} as const;

const SCRIPT_BYTES = 60_000;
const makesPictures = process.env.STAGEDOOR_SCREENSHOTS === '1';

let gateway: Program;
let url = '';
let admin: Caller;
let browser: Browser;
let watched: WatchedPage;
test.before(async () => {
  if (!canUseConsole) return;
  gateway = new Program(['gateway', 'start', '--port', '0', '--host', '127.0.0.1'], {
    env: { GATEWAY_AUTH_ENABLED: 'true', GATEWAY_ADMIN_PASSWORD: PASSWORD },
  });
  url = await gateway.url();
  admin = caller(url, await tokenOf(url, 'admin', PASSWORD));
  const instances = ['one', 'two', 'three'].map((id) => ({ id, ...everythingProgram({ name: id }) }));
  await register(admin, 'everything', instances);
  await admin('POST /gateway/register', {
    template_name: 'weather',
    instance: { id: 'away', endpoint: 'http://127.0.0.1:9/mcp' },
  });
  await newKey(admin, 'nightly build');
  browser = await launchBrowser();
  watched = await browser.open();
  await watched.page.goto(`${url}/console/`);
  await signIn(watched.page);
});
test.after(async () => {
  await browser?.close();
  await gateway?.remove();
});

test.needs(isConsoleBuilt, NOT_BUILT)('its script has at most 60 kB, compressed', () => {
  const folder = fileURLToPath(new URL('assets/', CONSOLE_FILES));
  const scripts = readdirSync(folder).filter((name) => name.endsWith('.js'));
  const bytes = scripts.map((name) => gzipSync(readFileSync(folder + name)).length);
  const sum = bytes.reduce((total, each) => total + each, 0);
  assert.ok(sum > 0 && sum <= SCRIPT_BYTES, `${sum} bytes`);
});

for (const colorScheme of ['light', 'dark'] as const) {
  inBrowser(`axe finds nothing on any page, ${colorScheme}`, async () => {
    const { page } = watched;
    await page.emulateMedia({ colorScheme });
    const findings: string[] = [];
    for (const [name, path] of Object.entries(PAGES)) {
      await open(path);
      findings.push(...(await axeFindings(page)).map((finding) => `${name}: ${finding}`));
    }
    assert.equal(findings, []);
  });
}

inBrowser('axe finds a control without a name', async () => {
  const { page } = watched;
  await open('activity');
  await page.locator('input').evaluate((input) => {
    input.removeAttribute('aria-label');
    input.removeAttribute('placeholder');
  });
  assert.match((await axeFindings(page)).join(), /^label at /);
});

inBrowser('no page scrolls sideways at 380 px', async () => {
  const { page } = watched;
  await page.setViewportSize({ width: 380, height: 800 });
  const wide: string[] = [];
  for (const [name, path] of Object.entries(PAGES)) {
    await open(path);
    const width = await page.evaluate('document.documentElement.scrollWidth');
    if (Number(width) > 380) wide.push(`${name}: ${width} px`);
  }
  await page.setViewportSize({ width: 1_280, height: 900 });
  assert.equal(wide, []);
});

inBrowser('every page can be reached with the keyboard', async () => {
  const { page } = watched;
  await open('');
  await page.keyboard.press('Tab');
  assert.is(await page.evaluate('document.activeElement.textContent.trim()'), 'Skip to the content');
  await page.getByRole('link', { name: 'Activity' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Activity', level: 1 }).waitFor();
  assert.is(await page.evaluate('document.activeElement.id'), 'main');
});

inBrowser('shows few rows of a thousand instances', async () => {
  const { page } = watched;
  const registry = Object((await admin('GET /gateway/registry')).body);
  const { everything } = registry.templates;
  const [first] = everything.instances;
  everything.instances = Array.from({ length: 1_000 }, (_, index) => ({
    ...first,
    id: `copy-${index}`,
    server_id: `copy-${index}`,
  }));
  await page.route('**/gateway/registry', (route) => route.fulfill({ json: registry }));
  await open('template?name=everything');
  const rows = page.locator('.instances .row');
  await page.getByText('1,000 instances').waitFor();
  assert.ok((await rows.count()) < 80, `${await rows.count()} rows`);
  await scrollToEnd(page.locator('.instances .list'));
  await page.getByText('copy-999', { exact: true }).waitFor();
  assert.ok((await rows.count()) < 80, `${await rows.count()} rows`);
  await page.unroute('**/gateway/registry');
});

inBrowser('shows few of five hundred tools, and finds one', async () => {
  const { page } = watched;
  const tools = Array.from({ length: 500 }, (_, index) => ({
    name: `tool-${index}`,
    description: 'One of many',
    inputSchema: { type: 'object' },
  }));
  await page.route('**/mcp/everything', (route) =>
    route.fulfill({ json: { jsonrpc: '2.0', id: 1, result: { tools } } }),
  );
  await open('playground?template=everything');
  await page.getByPlaceholder('Filter 500 tools').fill('tool-49');
  await page.getByRole('button', { name: 'tool-499' }).waitFor();
  await page.getByPlaceholder('Filter 500 tools').fill('');
  await page.getByRole('button', { name: 'tool-0 ' }).waitFor();
  assert.ok((await page.locator('.item').count()) < 80);
  await page.unroute('**/mcp/everything');
});

test.needs(canUseConsole && makesPictures, 'set STAGEDOOR_SCREENSHOTS=1 to make the pictures of the guide')(
  'its pictures are made',
  async () => {
    const { page } = watched;
    await page.setViewportSize({ width: 1_280, height: 800 });
    await open('');
    await makeCalls();
    await picture('overview', PAGES.overview, 'light');
    await picture('overview-dark', PAGES.overview, 'dark');
    await picture('template', PAGES.template, 'light');
    await picture('instance', PAGES.instance, 'light');
    await picture('activity', PAGES.activity, 'light');
    await picture('connect', PAGES.connect, 'light');
    await picture('users', PAGES.users, 'light');
    await open('playground?template=everything&item=test_elicitation');
    await page.getByLabel(/^message/).fill('Who are you?');
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    await page.getByRole('button', { name: 'Answer', exact: true }).waitFor();
    await save('playground');
    await page.setViewportSize({ width: 380, height: 800 });
    await picture('phone', PAGES.template, 'light');
  },
);

/** Opens a page, and waits until it shows what it is about. */
async function open(path: string): Promise<void> {
  const { page } = watched;
  await page.goto(`${url}/console/${path}`);
  await page.getByRole('heading').first().waitFor();
  await page.locator('.status').first().waitFor({ state: 'detached' });
  await page.getByText('Live', { exact: true }).waitFor({ state: 'attached' });
}

/** What axe says of the page, one line for each rule. Evaluated, because the policy of the page allows no such script. */
async function axeFindings(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe);
  const findings = await page.evaluate(
    `axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })
      .then(({ violations }) => violations.map(({ id, nodes }) => id + ' at ' + nodes.map(({ target }) => target).join('; ')))`,
  );
  return Array.isArray(findings) ? findings.map(String) : [String(findings)];
}

async function scrollToEnd(list: Locator): Promise<void> {
  await list.evaluate((element) => element.scrollTo(0, element.scrollHeight));
}

/** Load for the charts: half a minute of calls. */
async function makeCalls(): Promise<void> {
  const call = { name: 'test_simple_text', arguments: {} };
  const failing = { name: 'test_error_handling', arguments: {} };
  const endMs = performance.now() + 30_000;
  for (let count = 0; performance.now() < endMs; count += 1) {
    await admin('POST /mcp/everything/tools/call', count % 50 === 0 ? failing : call);
  }
}

async function picture(name: string, path: string, colorScheme: 'light' | 'dark'): Promise<void> {
  await watched.page.emulateMedia({ colorScheme });
  await open(path);
  await watched.page.waitForTimeout(2_500);
  await save(name);
}

async function save(name: string): Promise<void> {
  const path = fileURLToPath(new URL(`../../../docs/images/console-${name}.png`, import.meta.url));
  await watched.page.screenshot({ path });
}

test.run();
