// The console with several nodes: pages name a node whose data is missing. The answers name it here; spec/system/nodes/one-picture has
// nodes that do not answer.

import type { Route } from 'playwright-core';
import { launchBrowser } from '../../helpers/browser.ts';
import { canUseConsole, NO_CONSOLE, signIn } from '../../helpers/console.ts';
import { startGuarded } from '../../helpers/mcp-program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the console with several nodes', { timeoutMs: 120_000 });
const inBrowser = test.needs(canUseConsole, NO_CONSOLE);
const opened: (() => unknown)[] = [];
test.after(async () => {
  for (const close of opened) await close();
});

inBrowser('names a node that does not answer until it answers again', async () => {
  const gateway = await startGuarded();
  opened.unshift(gateway.remove);
  const browser = await launchBrowser();
  opened.unshift(() => browser.close());
  const { page } = await browser.open();
  page.setDefaultTimeout(20_000);
  let partial: readonly string[] = ['node-b'];
  const withoutNode = async (route: Route): Promise<void> => {
    const response = await route.fetch();
    const json = await response.json();
    await route.fulfill({ response, json: partial.length === 0 ? json : { ...json, partial } });
  };
  await page.route(/\/gateway\/(registry|sessions)/, withoutNode);
  await page.goto(`${gateway.url}/console/`);
  await signIn(page);
  const banner = page.getByText('Without the data of nodes that do not answer: node-b');
  for (const name of ['Overview', 'Sessions']) {
    partial = ['node-b'];
    await page.goto(`${gateway.url}/console/${name === 'Overview' ? '' : 'sessions'}`);
    await page.getByRole('heading', { name, exact: true }).waitFor();
    await banner.waitFor();
    partial = [];
    await banner.waitFor({ state: 'detached' });
  }
  await page.unrouteAll({ behavior: 'ignoreErrors' });
});
test.run();
