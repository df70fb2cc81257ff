// Every page of the console in a real Chromium: without a finding of axe in light and dark, without a horizontal scroll bar
// at 380 px, and what its lists show.
// With STAGEDOOR_SCREENSHOTS=1 it also makes the pictures of the guide.

import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Locator } from 'playwright-core';
import * as assert from 'uvu/assert';
import type { EverythingHttp } from '../../fixtures/everything/http-face.ts';
import { startEverything } from '../../fixtures/everything-server.ts';
import {
  axeFindings,
  type Browser,
  launchBrowser,
  type WatchedPage,
} from '../../helpers/browsers/browser.ts';
import { canUseConsole, NO_CONSOLE, signIn } from '../../helpers/browsers/console.ts';
import { type Caller, newKey } from '../../helpers/clients/caller.ts';
import { type McpHarness, PASSWORD, register, startGuarded } from '../../helpers/programs/mcp-program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the pages of the console', { timeoutMs: 180_000 });
const inBrowser = test.needs(canUseConsole, NO_CONSOLE);

const PAGES = {
  overview: '',
  template: 'template?name=everything',
  instance: 'template?name=everything&instance=everything-1',
  register: 'register?template=filesystem',
  playground: 'playground?template=everything&item=json_schema_2020_12_tool',
  activity: 'activity',
  sessions: 'sessions',
  nodes: 'nodes',
  connect: 'connect?template=everything',
  users: 'users',
  grants: 'grants',
  connections: 'connections',
  views: 'views',
  'new view': 'view',
  view: 'view?id=desk',
  audit: 'audit',
  settings: 'settings',
} as const;

const makesPictures = process.env.STAGEDOOR_SCREENSHOTS === '1';

let gateway: McpHarness;
let url = '';
let admin: Caller;
let browser: Browser;
let watched: WatchedPage;
const servers: EverythingHttp[] = [];
test.before(async () => {
  if (!canUseConsole) return;
  gateway = await startGuarded();
  ({ url, admin } = gateway);
  for (const id of ['everything-1', 'everything-2', 'everything-3']) {
    const server = await startEverything({ name: id });
    servers.push(server);
    await register(admin, 'everything', [{ id, endpoint: server.url }]);
  }
  await admin('POST /gateway/register', {
    template_name: 'weather',
    instance: { id: 'away', endpoint: 'http://127.0.0.1:9/mcp' },
  });
  const desk = { title: 'The desk', approve: 'pinned', from: [{ template: 'everything' }] };
  assert.is((await admin('PUT /gateway/views/desk', desk)).status, 201);
  await newKey(admin, 'nightly build');
  const ada = { username: 'ada', email: 'ada@localhost', password: PASSWORD, role: 'user' };
  assert.is((await admin('POST /auth/users', ada)).status, 201);
  browser = await launchBrowser();
  watched = await browser.open();
  await watched.page.goto(`${url}/console/`);
  await signIn(watched.page);
});
test.after(async () => {
  await browser?.close();
  await gateway?.remove();
  await Promise.all(servers.map((server) => server.close()));
});

for (const colorScheme of ['light', 'dark'] as const) {
  inBrowser(`have no finding of axe, ${colorScheme}`, async () => {
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

inBrowser('have no finding of axe in dialogs, results and at sign-in', async () => {
  const { page } = watched;
  const findings: string[] = [];
  const look = async (): Promise<void> => {
    findings.push(...(await axeFindings(page)));
  };
  for (const name of ['New user', 'New key', 'Change', 'Delete']) {
    await open('users');
    await page
      .getByRole('button', { name: new RegExp(`^${name}`) })
      .and(page.locator(':enabled'))
      .first()
      .click();
    await page.getByRole('dialog').waitFor();
    await look();
  }
  await open('playground?template=everything&item=test_elicitation');
  await page.getByLabel(/^message/).fill('Who are you?');
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await page.getByRole('button', { name: 'Decline' }).waitFor();
  await look();
  await page.getByRole('button', { name: 'Decline' }).click();
  await page.getByText('Full result as JSON').waitFor();
  await look();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await look();
  await signIn(page);
  assert.equal(findings, []);
});

inBrowser('show the chosen text of each select as a whole', async () => {
  const { page } = watched;
  await page.setViewportSize({ width: 1_280, height: 900 });
  const cut: string[] = [];
  for (const [name, path] of Object.entries(PAGES)) {
    await open(path);
    if (path.startsWith('template')) await page.getByLabel('Strategy').waitFor();
    // The arrow needs 16 px.
    const cutTexts = `[...document.querySelectorAll('select')].flatMap((select) => {
      const { font, paddingLeft, paddingRight } = getComputedStyle(select);
      const canvas = document.createElement('canvas').getContext('2d');
      canvas.font = font;
      const room = select.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight) - 16;
      const text = select.selectedOptions[0]?.label ?? '';
      return canvas.measureText(text).width > room ? [text] : [];
    })`;
    for (const text of Object(await page.evaluate(cutTexts))) cut.push(`${name}: ${text}`);
  }
  assert.equal(cut, []);
});

inBrowser('fail the check of axe for a control without a name', async () => {
  const { page } = watched;
  await open('activity');
  await page.locator('input').evaluate((input) => {
    input.removeAttribute('aria-label');
    input.removeAttribute('placeholder');
  });
  assert.match((await axeFindings(page)).join(), /^label at /);
});

inBrowser('do not scroll sideways at 380, 768 and 1,024 px, and cut no cell off', async () => {
  const { page } = watched;
  const wide: string[] = [];
  for (const [name, path] of Object.entries(PAGES)) {
    await open(path);
    for (const width of [380, 768, 1_024]) {
      await page.setViewportSize({ width, height: 800 });
      const isWide = `[document.documentElement, ...document.querySelectorAll('.row, .head')]
        .some(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)`;
      if (await page.evaluate(isWide)) wide.push(`${name} at ${width} px`);
    }
  }
  await page.setViewportSize({ width: 1_280, height: 900 });
  assert.equal(wide, []);
});

inBrowser('wrap long words in dialogs and in questions of servers at 380 px', async () => {
  const { page } = watched;
  const long = 'x'.repeat(100);
  await newKey(admin, long);
  await page.setViewportSize({ width: 380, height: 800 });
  const width = (selector: string) =>
    page
      .locator(selector)
      .first()
      .evaluate((one) => one.scrollWidth);
  await open('users');
  await page.getByRole('button', { name: `Revoke ${long}` }).click();
  assert.ok((await width('dialog')) <= 380);
  await open('playground?template=everything&item=test_elicitation');
  await page.getByLabel(/^message/).fill(long);
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await page.locator('.question').getByText(long).waitFor();
  assert.is(await width('html'), 380);
  await page.setViewportSize({ width: 1_280, height: 900 });
});

inBrowser('have switches as wide as their choices', async () => {
  const { page } = watched;
  const wide: string[] = [];
  for (const [name, path] of Object.entries(PAGES)) {
    await open(path);
    const isWide = `[...document.querySelectorAll('.segments')].some((each) =>
      each.getBoundingClientRect().right - each.lastElementChild.getBoundingClientRect().right > 8)`;
    if (await page.evaluate(isWide)) wide.push(name);
  }
  assert.equal(wide, []);
});

inBrowser('paint before their script has loaded', async () => {
  const { page } = await browser.open();
  const { promise: isReleased, resolve: release } = Promise.withResolvers<void>();
  await page.route('**/*.js', async (route) => {
    await isReleased;
    await route.continue();
  });
  await page.goto(`${url}/console/`, { waitUntil: 'commit' });
  await page.getByText('Loading the console…').waitFor();
  // Evaluated as text, because the policy of the page allows no function of Playwright.
  const painted = `new Promise((resolve) => new PerformanceObserver((list) => resolve(list.getEntries().length))
    .observe({ type: 'paint', buffered: true }))`;
  assert.ok(Number(await page.evaluate(painted)) > 0);
  const loaded = "performance.getEntriesByType('resource').map(({ name }) => name.replace(/.*\\./, ''))";
  assert.equal(await page.evaluate(loaded), ['css']);
  release();
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  await page.close();
});

inBrowser('list the sessions page by page, and filter them by template and owner', async () => {
  const { page } = watched;
  const at = new Date().toISOString();
  const sessions = Array.from({ length: 250 }, (_, index) => ({
    ...{ id: `session-${index}`, principal: 'user:1', principal_name: index < 5 ? 'ada' : 'eve' },
    client: { name: `client-${index}`, version: null },
    bindings: [{ template: 'everything', instance_id: 'everything-1' }],
    ...{ created_at: at, last_used_at: at, is_streaming: false },
  }));
  const asked: string[] = [];
  await page.route('**/gateway/sessions?*', (route) => {
    const query = new URL(route.request().url()).searchParams;
    asked.push(String(query));
    const first = Number(query.get('cursor') ?? -1) + 1;
    const last = first + Number(query.get('limit'));
    const matching = sessions.filter(({ principal_name: name }) => (query.get('principal') ?? name) === name);
    const next_cursor = last < matching.length ? String(last - 1) : null;
    return route.fulfill({ json: { sessions: matching.slice(first, last), next_cursor } });
  });
  await open('sessions');
  await page.getByText('100 sessions, and more').waitFor();
  await page.getByRole('button', { name: 'Show more' }).click();
  await page.getByText('200 sessions, and more').waitFor();
  await page.getByRole('button', { name: 'Show more' }).click();
  await page.getByText('250 sessions', { exact: true }).waitFor();
  assert.is(await page.getByRole('button', { name: 'Show more' }).count(), 0);
  assert.ok((await page.locator('.sessions .row').count()) < 80);
  await page.getByLabel('Owner').fill('ada');
  // The typed text stays while the list of templates changes.
  const another = { template_name: 'other', instance: { id: 'away', endpoint: 'http://127.0.0.1:9/mcp' } };
  assert.is((await admin('POST /gateway/register', another)).status, 201);
  await page.getByRole('option', { name: 'other', exact: true }).waitFor({ state: 'attached' });
  await page.keyboard.press('Enter');
  await page.getByText('5 sessions', { exact: true }).waitFor();
  const filtered = page.waitForRequest(/sessions\?principal=ada&template=everything&limit=100$/);
  await page.getByLabel('Template').selectOption('everything');
  await page.waitForURL(/principal=ada&template=everything/);
  await filtered;
  assert.equal(asked.slice(0, 3), ['limit=100', 'limit=100&cursor=99', 'limit=100&cursor=199']);
  await page.unroute('**/gateway/sessions?*');
});

inBrowser('show the audit log, and filter it by tool, action and actor', async () => {
  const { page } = watched;
  await admin('POST /mcp/everything/tools/call', { name: 'test_simple_text', arguments: {} });
  await open('audit?tool=test_simple_text');
  const rows = page.locator('.audit .row');
  await rows.getByRole('button', { name: 'test_simple_text' }).first().click();
  const drawer = page.getByRole('dialog');
  await drawer.getByText('SHA-256 of the arguments').waitFor();
  await drawer.getByRole('link', { name: 'everything', exact: true }).waitFor();
  assert.equal(await axeFindings(page), []);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Clear all' }).click();
  await page.getByLabel('Action').fill('POST /gateway/register');
  await page.keyboard.press('Enter');
  await rows.getByText('POST /gateway/register').first().waitFor();
  await page.getByLabel('Actor').fill('nobody');
  await page.keyboard.press('Enter');
  await page.getByText('No entry matches.').waitFor();
  await page.getByRole('button', { name: 'Clear all' }).click();
  await page.getByLabel('Action').fill('tools/call');
  await page.getByLabel('Tool').fill('test_simple_text');
  await page.keyboard.press('Enter');
  await rows.getByRole('button', { name: 'test_simple_text' }).first().click();
  await drawer.getByRole('link', { name: 'admin' }).click();
  await page.waitForURL(/audit\?actor=[^&]*$/);
  assert.is(await page.getByLabel('Tool').inputValue(), '');
});

inBrowser('show the settings with unit and source, and change the log level', async () => {
  const { page } = watched;
  await open('settings?');
  const row = (name: string): Locator => page.locator('.setting', { hasText: name });
  await row('auth.access_token_expire_minutes').getByText('60 minutes').waitFor();
  await row('auth.enabled').getByText('Environment').waitFor();
  assert.not.match((await page.locator('main').textContent()) ?? '', 'surface');
  await page.getByLabel('Log level').focus();
  await page.getByLabel('Log level').selectOption('error');
  await row('log_level').getByText('Until restart').waitFor();
  await page.locator('[aria-label="Log level"]:focus').waitFor();
  assert.is(Object((await admin('GET /gateway/log-level')).body).level, 'error');
  await page.getByLabel('Log level').selectOption('info');
  await row('log_level').getByText('Default').waitFor();
});

inBrowser('have a text alternative with the latest values for each chart', async () => {
  const { page } = watched;
  await open('');
  await page.getByRole('img', { name: /^Requests: all now [\d.]+\/s, at most [\d.]+\/s;/ }).waitFor();
  await page.getByRole('img', { name: /^Latency: p50/ }).waitFor();
});

inBrowser('draw the charts from what the gateway kept, before any sample comes', async () => {
  const { page } = watched;
  while (Object((await admin('GET /gateway/history')).body).points.length === 0) await delay(500);
  await page.route('**/events?*', (route) => route.abort());
  await page.goto(`${url}/console/`);
  await page.getByRole('img', { name: /^Requests: all now [\d.]+\/s, at most [\d.]+\/s;/ }).waitFor();
  await page.getByRole('button', { name: '1 h' }).click();
  await page.getByRole('img', { name: /^Requests: all now/ }).waitFor();
  await page.unroute('**/events?*');
  await page.reload();
});

inBrowser('can be reached with the keyboard', async () => {
  const { page } = watched;
  await open('');
  await page.keyboard.press('Tab');
  assert.is(await page.evaluate('document.activeElement.textContent.trim()'), 'Skip to the content');
  await page.getByRole('link', { name: 'Activity' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Activity', level: 1 }).waitFor();
  await page.locator('#main:focus').waitFor(); // it gets the focus after the paint
});

test.needs(canUseConsole && makesPictures, 'set STAGEDOOR_SCREENSHOTS=1 to make the pictures of the guide')(
  'are captured as pictures of the guide',
  async () => {
    const { page } = watched;
    await page.emulateMedia({ colorScheme: 'light' });
    await page.setViewportSize({ width: 1_280, height: 800 });
    await open('');
    const load = new AbortController();
    const calls = makeCalls(load.signal);
    await page.waitForTimeout(60_000);
    await servers.pop()?.close();
    await page.waitForTimeout(4_000);
    await save('overview');
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.waitForTimeout(1_000);
    await save('overview-dark');
    await page.emulateMedia({ colorScheme: 'light' });
    await page.getByRole('link', { name: 'everything', exact: true }).first().click();
    await page.waitForTimeout(1_000);
    await save('template');
    await page.setViewportSize({ width: 380, height: 800 });
    await save('phone');
    await page.setViewportSize({ width: 1_280, height: 800 });
    await page.getByRole('link', { name: 'everything-3' }).click();
    await page.getByRole('dialog').getByText('Last lines of standard error').waitFor();
    await save('instance');
    load.abort();
    await calls;
    await open('activity');
    await page.locator('.row', { hasText: 'everything' }).first().waitFor();
    await page.locator('.calls .list').evaluate((list) => list.scrollTo(0, 0));
    await save('activity');
    await open('activity?filter=everything-3');
    await page.locator('.calls .row').getByRole('button').first().click();
    await page.getByRole('dialog').getByText('2 attempts').waitFor();
    await save('call');
    await open('connect?template=everything&client=claude-code');
    await save('connect');
    await open('view?id=desk');
    await page.getByLabel('Filter tools').fill('text');
    await page.getByRole('heading', { name: 'All tools' }).scrollIntoViewIfNeeded();
    await save('view');
    await open('users');
    await save('users');
    await open('users?new=key');
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name (required)').fill('reader');
    await dialog.getByLabel('Only some tools').check();
    await dialog.getByLabel('Rules').fill('everything/get-*\n!everything/get-env');
    await save('key');
    await open('audit');
    await save('audit');
    await open('playground?template=everything&item=test_elicitation');
    await page.getByLabel(/^message/).fill('Who are you?');
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    await page.getByRole('button', { name: 'Answer', exact: true }).waitFor();
    await save('playground');
  },
);

/** Opens a page, and waits until its content is loaded. */
async function open(path: string): Promise<void> {
  const { page } = watched;
  await page.goto(`${url}/console/${path}`);
  await page.getByRole('heading').first().waitFor();
  await page.locator('.status').first().waitFor({ state: 'detached' });
  await page.locator('.connection', { hasText: 'Live' }).waitFor({ state: 'attached' });
}

/** Load for the charts, until it is stopped. */
async function makeCalls(until: AbortSignal): Promise<void> {
  for (let count = 0; !until.aborted; count += 1) {
    const name = count % 3 === 0 ? 'test_tool_with_logging' : 'test_simple_text';
    await admin('POST /mcp/everything/tools/call', { name, arguments: {} });
    await new Promise((resolve) => setTimeout(resolve, 20 + 15 * Math.sin(count / 100)));
  }
}

async function save(name: string): Promise<void> {
  const path = fileURLToPath(new URL(`../../../docs/images/console-${name}.png`, import.meta.url));
  await watched.page.screenshot({ path });
}

test.run();
