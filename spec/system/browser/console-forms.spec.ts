// Forms of the console that it makes of JSON Schemas: what is typed is what is sent.

import { mkdirSync, writeFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { type Browser, launchBrowser, type WatchedPage } from '../../helpers/browsers/browser.ts';
import { canUseConsole, NO_CONSOLE } from '../../helpers/browsers/console.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { type McpHarness, startHarness } from '../../helpers/programs/mcp-program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('forms of the console in a browser', { timeoutMs: 120_000 });
const inBrowser = test.needs(canUseConsole, NO_CONSOLE);

const config_schema = {
  type: 'object',
  properties: {
    token: { type: 'string', sensitive: true, default: 'hunter2', header_mapping: 'X-Token' },
    team: { type: 'string', header_mapping: 'X-Team' },
  },
  required: ['token', 'team'],
};
const folder = folderOfAll(test);
let gateway: McpHarness;
let browser: Browser;
let watched: WatchedPage;
test.before(async () => {
  if (!canUseConsole) return;
  const definition = { name: 'secret', description: 'd', version: '1.0.0', transport: 'http' };
  mkdirSync(folder('secret'));
  writeFileSync(
    folder('secret', 'template.json'),
    JSON.stringify({ ...definition, endpoint: 'http://127.0.0.1:9/mcp', config_schema }),
  );
  gateway = await startHarness({ env: { GATEWAY_TEMPLATES_DIR: folder() } });
  browser = await launchBrowser();
  watched = await browser.open();
  watched.page.setDefaultTimeout(10_000);
});
test.after(async () => {
  await browser?.close();
  await gateway?.remove();
});

inBrowser('leave a secret default to the gateway, also one that is required', async () => {
  const { page } = watched;
  await page.goto(`${gateway.url}/console/register?template=secret`);
  await page.getByLabel(/^team/).fill('search');
  const registered = page.waitForRequest((request) => request.method() === 'POST');
  await page.getByRole('button', { name: 'Register', exact: true }).click();
  assert.equal((await registered).postDataJSON(), { template_name: 'secret', config: { team: 'search' } });
});

test.run();
