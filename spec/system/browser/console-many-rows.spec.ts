// The console in a real Chromium, with answers that the spec writes: a thousand instances and hundreds of tools, of which few rows are in
// the document, and events of another time.

import type { Locator } from 'playwright-core';
import * as assert from 'uvu/assert';
import type { EverythingHttp } from '../../fixtures/everything/http-face.ts';
import { startEverything } from '../../fixtures/everything-server.ts';
import { type Browser, launchBrowser, type WatchedPage } from '../../helpers/browsers/browser.ts';
import { canUseConsole, NO_CONSOLE, signIn } from '../../helpers/browsers/console.ts';
import type { Caller } from '../../helpers/clients/caller.ts';
import { type McpHarness, register, startGuarded } from '../../helpers/programs/mcp-program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the console with many rows', { timeoutMs: 180_000 });
const inBrowser = test.needs(canUseConsole, NO_CONSOLE);

let gateway: McpHarness;
let url = '';
let admin: Caller;
let browser: Browser;
let watched: WatchedPage;
let server: EverythingHttp;
test.before(async () => {
  if (!canUseConsole) return;
  gateway = await startGuarded();
  ({ url, admin } = gateway);
  server = await startEverything({ name: 'everything-1' });
  await register(admin, 'everything', [{ id: 'everything-1', endpoint: server.url }]);
  browser = await launchBrowser();
  watched = await browser.open();
  await watched.page.goto(`${url}/console/`);
  await signIn(watched.page);
});
test.after(async () => {
  await browser?.close();
  await gateway?.remove();
  await server?.close();
});

async function registryOfThousand() {
  const registry = Object((await admin('GET /gateway/registry')).body);
  const { everything } = registry.templates;
  const [first] = everything.instances;
  everything.instances = Array.from({ length: 1_000 }, (_, index) => ({
    ...first,
    id: `copy-${index}`,
    server_id: `copy-${index}`,
  }));
  return registry;
}

inBrowser('render the changes of a thousand instances together', async () => {
  const { page } = watched;
  const registry = await registryOfThousand();
  const events = Array.from({ length: 1_000 }, (_, index) => ({
    ...{ type: 'instance.unhealthy', at: new Date().toISOString(), reason: 'away' },
    ...{ template: 'everything', instance_id: `copy-${index}`, server_id: `copy-${index}` },
  }));
  const body = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');
  const { promise: isReleased, resolve: release } = Promise.withResolvers<void>();
  const isStream = (address: URL): boolean => address.pathname === '/events';
  await page.route('**/gateway/registry', (route) => route.fulfill({ json: registry }));
  await page.route(isStream, async (route) => {
    await isReleased;
    await route.fulfill({ contentType: 'text/event-stream', body });
  });
  await page.goto(`${url}/console/template?name=everything`);
  await page.getByText('1,000 instances').waitFor();
  await page.evaluate(`window.renders = 0;
    new MutationObserver(() => (window.renders += 1)).observe(document.querySelector('.list'), { childList: true, subtree: true })`);
  release();
  await page.locator('.instances .row', { hasText: 'copy-0' }).getByText('Unhealthy').waitFor();
  const renders = Number(await page.evaluate('window.renders'));
  assert.ok(renders < 10, `rendered ${renders} times`);
  await page.unroute(isStream);
  await page.unroute('**/gateway/registry');
});

inBrowser(
  'name an instance that fails again and again, and forget running calls of before a restart',
  async () => {
    const { page } = watched;
    const gatewayMs = Date.now() + 3_600_000; // its clock is an hour ahead
    const event = (type: string, fields: object = {}, minutesAgo = 0) => ({
      ...{ type, at: new Date(gatewayMs - minutesAgo * 60_000).toISOString() },
      ...{ template: 'everything', server_id: 'everything-1', ...fields },
    });
    const totals = { requests: 0, failures: 0, in_flight: 0, queued: 0 };
    let [oldest, streams] = [16, 0];
    const isStream = (address: URL): boolean => address.pathname === '/events';
    await page.route(isStream, (route) => {
      streams += 1;
      const restarts = [oldest, 4, 3, 2, 1].map((minutes) =>
        event('instance.restarting', { is_planned: false }, minutes),
      );
      const calls = [
        event('call.started', { call: 1 }),
        event('call.finished', { call: 1, server_id: undefined, outcome: 'cancelled' }),
      ];
      const started = [event('call.started', { call: 2 }), event('gateway.started')];
      const sampled = event('gateway.sampled', { interval_ms: 1_000, totals, templates: [], instances: [] });
      const events = [...restarts, event('instance.healthy'), ...calls, ...started, sampled];
      const body = events.map((each) => `data: ${JSON.stringify(each)}\n\n`).join('');
      return route.fulfill({ contentType: 'text/event-stream', body });
    });
    for (const expected of [0, 1]) {
      await page.goto(`${url}/console/`);
      await page.getByText('0/s').first().waitFor();
      assert.is(await page.getByText('everything-1 keeps failing and restarting.').count(), expected);
      oldest = 14;
    }
    await page.goto(`${url}/console/activity`);
    await page.locator('.calls .row').getByText('Cancelled').waitFor();
    assert.is(await page.locator('.calls .row').count(), 1);
    streams = 0;
    await page.waitForTimeout(2_000);
    assert.ok(streams < 5, `${streams} streams in 2 s, although each ends at once`);
    await page.unroute(isStream);
  },
);

inBrowser('render fewer than 80 rows of a thousand instances', async () => {
  const { page } = watched;
  const registry = await registryOfThousand();
  await page.route('**/gateway/registry', (route) => route.fulfill({ json: registry }));
  await open('template?name=everything');
  const rows = page.locator('.instances .row');
  await page.getByText('1,000 instances').waitFor();
  assert.ok((await rows.count()) < 80, `${await rows.count()} rows`);
  await scrollToEnd(page.locator('.instances .list'));
  await page.getByText('copy-999', { exact: true }).waitFor();
  assert.ok((await rows.count()) < 80, `${await rows.count()} rows`);
  // The next frame shows rows, although fewer match than were above.
  const filter = page.getByLabel('Filter instances by name or state');
  await filter.evaluate((input) => {
    Object.assign(input, { value: 'copy-1' }).dispatchEvent(new Event('input'));
  });
  await page.evaluate(
    'new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))',
  );
  assert.ok((await rows.count()) > 0);
  // A filter that is set can be cleared, although the list has become short.
  registry.templates.everything.instances.splice(1);
  await admin('PATCH /gateway/templates/everything', { max_retries: 2 });
  await page.getByText('No instance matches.').waitFor();
  await filter.fill('');
  await rows.first().waitFor();
  await page.unroute('**/gateway/registry');
});

inBrowser('render fewer than 80 of five hundred tools, and filter them', async () => {
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

inBrowser('show the entry that remains when another one of a list of JSON is removed', async () => {
  const { page } = watched;
  const all = { type: 'array', items: { type: 'object' } };
  const tools = [{ name: 'lists', inputSchema: { type: 'object', properties: { all } } }];
  await page.route('**/mcp/everything', (route) =>
    route.fulfill({ json: { jsonrpc: '2.0', id: 1, result: { tools } } }),
  );
  await open('playground?template=everything&item=lists');
  for (const entry of [1, 2]) {
    await page.getByRole('button', { name: 'Add' }).click();
    await page.getByRole('textbox', { name: `all ${entry}` }).fill(`{ "entry": ${entry} }`);
  }
  await page.getByRole('button', { name: 'Remove all 1' }).click();
  assert.match(await page.getByRole('textbox', { name: 'all 1' }).inputValue(), '"entry": 2');
  await page.unroute('**/mcp/everything');
});

/** Opens a page, and waits until its content is loaded. */
async function open(path: string): Promise<void> {
  const { page } = watched;
  await page.goto(`${url}/console/${path}`);
  await page.getByRole('heading').first().waitFor();
  await page.locator('.status').first().waitFor({ state: 'detached' });
  await page.locator('.connection', { hasText: 'Live' }).waitFor({ state: 'attached' });
}

async function scrollToEnd(list: Locator): Promise<void> {
  await list.evaluate((element) => element.scrollTo(0, element.scrollHeight));
}

test.run();
