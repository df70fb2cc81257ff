// The console with several nodes: pages name a node whose data is missing. The answers name it here; spec/system/nodes/one-picture has
// nodes that do not answer.

import type { Route } from 'playwright-core';
import * as assert from 'uvu/assert';
import { stdioServerPath } from '../../fixtures/programs.ts';
import { axeFindings, launchBrowser } from '../../helpers/browsers/browser.ts';
import { canUseConsole, NO_CONSOLE, signIn } from '../../helpers/browsers/console.ts';
import { register, startGuarded } from '../../helpers/programs/mcp-program.ts';
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

inBrowser('lists the nodes, drains one and resumes it, and names the node of a program', async () => {
  const gateway = await startGuarded();
  opened.unshift(gateway.remove);
  const program = { id: 'one', command: process.execPath, args: [stdioServerPath] };
  await register(gateway.admin, 'near', [program]);
  const browser = await launchBrowser();
  opened.unshift(() => browser.close());
  const { page } = await browser.open();
  page.setDefaultTimeout(20_000);
  await page.goto(`${gateway.url}/console/`);
  await signIn(page);
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  assert.is(await page.getByRole('link', { name: 'Nodes' }).count(), 0, 'one node alone');
  const drained = new Set<string>();
  const far = {
    ...{
      id: 'far',
      life: 'lifefar1',
      address: 'https://10.0.0.7:4',
      version: '1',
      since: '2026-11-01T10:00:00Z',
    },
    ...{ programs: 2, in_flight: 3, state: 'live' },
  };
  await page.route(/\/gateway\/nodes/, async (route) => {
    const command = /nodes\/far\/(drain|resume)$/.exec(route.request().url())?.[1];
    if (command === 'drain') drained.add('far');
    if (command === 'resume') drained.delete('far');
    const record = { ...far, draining: drained.has('far') };
    if (command !== undefined) return route.fulfill({ json: record });
    const response = await route.fetch();
    const own = await response.json();
    const warnings = ['the setting sessions.max of the node "far" is not that of this node'];
    await route.fulfill({ response, json: { nodes: [...own.nodes, record], warnings } });
  });
  await page.reload();
  await page.getByRole('link', { name: 'Nodes' }).click();
  await page.getByText('the setting sessions.max of the node "far"').waitFor();
  const row = page.getByRole('listitem').filter({ hasText: 'https://10.0.0.7:4' });
  await row.getByText('Live').waitFor();
  assert.equal(await axeFindings(page), []);
  await row.getByRole('button', { name: 'Drain far' }).click();
  await row.getByText('Draining').waitFor();
  await row.getByRole('button', { name: 'Resume far' }).click();
  await row.getByText('Live').waitFor();
  await page.goto(`${gateway.url}/console/template?name=near`);
  await page.getByText(/^on .+: node /).waitFor();
  await page.unrouteAll({ behavior: 'ignoreErrors' });
});
test.run();
