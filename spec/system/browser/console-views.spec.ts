// The views of the console: one is made of tools of three servers, tried, changed and deleted; what is refused is said where it is
// wrong. The tests depend on their order.

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
import { caller } from '../../helpers/clients/caller.ts';
import { becomes } from '../../helpers/eventually.ts';
import { type McpHarness, register, startGuarded } from '../../helpers/programs/mcp-program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the views of the console', { timeoutMs: 120_000 });
const inBrowser = test.needs(canUseConsole, NO_CONSOLE);

const TEMPLATES = ['desk', 'files', 'tickets'] as const;
let gateway: McpHarness;
let browser: Browser;
let watched: WatchedPage;
const servers: EverythingHttp[] = [];
test.before(async () => {
  if (!canUseConsole) return;
  gateway = await startGuarded();
  for (const template of TEMPLATES) {
    const server = await startEverything({ name: template });
    servers.push(server);
    await register(gateway.admin, template, [{ id: 'one', endpoint: server.url }]);
  }
  browser = await launchBrowser();
  watched = await browser.open();
  watched.page.setDefaultTimeout(10_000);
});
test.after(async () => {
  await browser?.close();
  await gateway?.remove();
  await Promise.all(servers.map((server) => server.close()));
});

const read = async (path: string): Promise<Record<string, unknown>> =>
  Object((await gateway.admin(`GET ${path}`)).body);

inBrowser('say what one is while there is none', async () => {
  const { page } = watched;
  await page.goto(`${gateway.url}/console/views`);
  await signIn(page);
  await page.getByText('No view yet.').waitFor();
  assert.equal(await axeFindings(page), []);
  await page.getByRole('link', { name: 'Make the first one' }).click();
  await page.getByRole('heading', { name: 'New view', level: 1 }).waitFor();
});

inBrowser('are made of tools of three servers, with the keyboard too', async () => {
  const { page } = watched;
  await page.getByLabel('Name (required)').fill('support');
  await page.getByLabel('Title').fill('Support desk');
  await page.getByLabel('Filter tools').fill('simple_text');
  await page.getByLabel('test_simple_text of tickets').focus();
  await page.keyboard.press('Space');
  await page.getByLabel('Filter tools').fill('tool_with_progress');
  await page.getByRole('button', { name: 'Choose 3 tools shown' }).click();
  await page.getByRole('button', { name: 'Remove test_tool_with_progress of tickets' }).click();
  await page.getByLabel('Filter tools').fill('');
  await page.getByText('In the view: 3 tools').waitFor();
  await page.getByRole('button', { name: 'Rename or describe test_simple_text of tickets' }).click();
  await page.getByLabel('Name in the view').fill('list_tickets');
  await page.getByLabel('Description', { exact: true }).last().fill('Lists the tickets.');
  assert.equal(await axeFindings(page), []);
  await page.keyboard.press('Tab');
  await page.getByRole('button', { name: 'Apply' }).click();
  await page
    .getByLabel('Chosen tools')
    .getByText('test_simple_text of tickets, with a description of its own')
    .waitFor();
  await page.getByRole('button', { name: 'Rename or describe test_tool_with_progress of desk' }).click();
  await page.getByLabel('The user confirms each call').check();
  assert.equal(await axeFindings(page), []);
  await page.getByRole('button', { name: 'Apply' }).click();
  await page.getByLabel('Chosen tools').getByText('desk, asks first').waitFor();
  const preview = page.getByRole('region', { name: 'Preview' });
  await preview.getByText('list_tickets', { exact: false }).first().waitFor();
  await preview.getByText('desk__test_tool_with_progress').first().waitFor();
  await preview.getByText(/^[\d,]+ tokens$/).waitFor();
  // Both wish the name.
  await preview.getByText('The user confirms calls of 2 tools.', { exact: false }).waitFor();
  await preview.getByText('asks first').first().waitFor();
  assert.equal(await axeFindings(page), []);
  await page.getByRole('button', { name: 'Create the view' }).click();
  await page.getByRole('link', { name: 'support', exact: true }).waitFor();
  assert.equal(await axeFindings(page), []);
  const { title, from, confirm } = await read('/gateway/views/support');
  assert.equal(confirm, ['test_tool_with_progress']);
  const none = { resources: 'none', prompts: 'none' };
  assert.equal(
    [title, from],
    [
      'Support desk',
      [
        {
          template: 'tickets',
          tools: ['test_simple_text'],
          ...none,
          rename: { test_simple_text: 'list_tickets' },
          describe: { list_tickets: 'Lists the tickets.' },
        },
        { template: 'desk', tools: ['test_tool_with_progress'], ...none },
        { template: 'files', tools: ['test_tool_with_progress'], ...none },
      ],
    ],
  );
});

inBrowser('are tried in the playground, where a call goes to the right server', async () => {
  const { page } = watched;
  await page.getByRole('link', { name: 'Try support' }).click();
  await page.getByRole('button', { name: 'list_tickets Lists the tickets.' }).click();
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await page.getByText('Full result as JSON').waitFor();
  const { body } = await gateway.admin('POST /mcp/support/tools/call', {
    name: 'list_tickets',
    arguments: {},
  });
  const direct = await gateway.admin('POST /mcp/tickets/tools/call', {
    name: 'test_simple_text',
    arguments: {},
  });
  assert.equal(Object(body).content, Object(direct.body).content);
});

inBrowser('are what a key may use, when nothing else is chosen', async () => {
  const { page } = watched;
  await page.goto(`${gateway.url}/console/users?new=key`);
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name (required)').fill('support team');
  await dialog.getByLabel('Only some templates').check();
  await dialog.getByRole('button', { name: 'Create' }).click();
  await dialog.getByText('Select at least one template or view').waitFor();
  await dialog.getByLabel('Only some views').check();
  await dialog.getByLabel('support', { exact: true }).check();
  assert.equal(await axeFindings(page), []);
  await dialog.getByRole('button', { name: 'Create' }).click();
  const holder = caller(gateway.url, { 'X-API-Key': (await dialog.locator('.output').textContent()) ?? '' });
  await dialog.getByRole('button', { name: 'Done' }).click();
  await page.getByText('no template; view support').waitFor();
  const { body } = await holder('GET /mcp/support/tools/list');
  assert.equal([Object(body).count, (await holder('GET /mcp/desk/tools/list')).status], [3, 404]);
  await page.getByRole('button', { name: 'Change support team' }).click();
  const change = page.getByRole('dialog');
  assert.is(await change.getByLabel('support', { exact: true }).isChecked(), true);
  await change.getByLabel('Only some tools').check();
  await change.getByLabel('Rules').fill('tickets/*');
  assert.equal(await axeFindings(page), []);
  await change.getByRole('button', { name: 'Change' }).click();
  await page.getByText('no template; view support; 1 rule for tools').waitFor();
  assert.is(Object((await holder('GET /mcp/support/tools/list')).body).count, 1);
  await page.goto(`${gateway.url}/console/view?id=support`);
  await page.getByLabel('Preview as').selectOption({ label: 'Key support team' });
  await page.getByRole('region', { name: 'Preview' }).getByText('as the view was saved').waitFor();
});

inBrowser('say at the tool, and at the name, why a definition is refused', async () => {
  const { page } = watched;
  await page.goto(`${gateway.url}/console/view?id=support`);
  const rename = async (tool: string, name: string): Promise<void> => {
    await page.getByRole('button', { name: `Rename or describe ${tool}` }).click();
    await page.getByLabel('Name in the view').fill(name);
    await page.getByRole('button', { name: 'Apply' }).click();
  };
  await rename('test_tool_with_progress of desk', 'list_tickets');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByLabel('Chosen tools').getByText('two tools would be named list_tickets').waitFor();
  await page.getByText('The view is not saved.').waitFor();
  assert.equal(await axeFindings(page), []);
  await rename('test_tool_with_progress of desk', 'watch');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('link', { name: 'support', exact: true }).waitFor();
  for (const [name, text] of [
    ['support', 'A view with this name exists already.'],
    ['files', 'belongs to a template'],
  ] as const) {
    await page.goto(`${gateway.url}/console/view`);
    await page.getByLabel('Name (required)').fill(name);
    await page.getByLabel('All tools of desk').check();
    await page.getByRole('button', { name: 'Create the view' }).click();
    await page.getByText(text).waitFor();
    assert.is(await page.getByLabel('Name (required)').getAttribute('aria-invalid'), 'true');
  }
});

inBrowser('are on the page that connects clients', async () => {
  const { page } = watched;
  await page.goto(`${gateway.url}/console/connect?client=claude-code`);
  await page.getByLabel('Template').selectOption('support');
  await page.getByText('/mcp/support').first().waitFor();
});

inBrowser('are not overwritten when they were changed meanwhile', async () => {
  const { page } = watched;
  await page.goto(`${gateway.url}/console/view?id=support`);
  await page.getByLabel('Title').fill('Lost');
  const { id, title, from } = await read('/gateway/views/support');
  assert.equal([id, title], ['support', 'Support desk']);
  assert.is((await gateway.admin('PUT /gateway/views/support', { title: 'Other desk', from })).status, 200);
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('The view was changed or deleted since you opened it.').waitFor();
  await page.getByRole('button', { name: 'Read it again' }).click();
  await becomes(() => page.getByLabel('Title').inputValue(), 'Other desk');
});

inBrowser('that were deleted while they were changed say so when they are read again', async () => {
  const { page } = watched;
  const from = [{ template: 'desk', tools: ['test_simple_text'] }];
  assert.is((await gateway.admin('PUT /gateway/views/brief', { from })).status, 201);
  await page.goto(`${gateway.url}/console/view?id=brief`);
  await page.getByLabel('Title').fill('Brief');
  assert.is((await gateway.admin('DELETE /gateway/views/brief')).status, 204);
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('The view was changed or deleted since you opened it.').waitFor();
  await page.getByRole('button', { name: 'Read it again' }).click();
  await page.getByText('There is no view "brief".').waitFor();
  assert.is(await page.getByLabel('Title').count(), 0);
});

inBrowser('show their problems, fit a phone, and are deleted after a confirmation', async () => {
  const { page } = watched;
  const from = [{ template: 'desk', tools: ['nothing_*', 'test_simple_text'] }];
  assert.is((await gateway.admin('PUT /gateway/views/odd', { from })).status, 201);
  await page.setViewportSize({ width: 380, height: 800 });
  await page.goto(`${gateway.url}/console/view?id=odd`);
  await page.getByText('In the view: 1 tool', { exact: true }).waitFor();
  await page.getByText('The glob "nothing_*" matches none').waitFor();
  const isWide = 'document.documentElement.scrollWidth > document.documentElement.clientWidth';
  assert.is(await page.evaluate(isWide), false);
  assert.equal(await axeFindings(page), []);
  await page.goto(`${gateway.url}/console/views`);
  await page.getByText('1 problem').click();
  await page.getByText('The glob "nothing_*" matches none').waitFor();
  assert.is(await page.evaluate(isWide), false);
  assert.equal(await axeFindings(page), []);
  await page.getByRole('button', { name: 'Delete odd' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('link', { name: 'odd', exact: true }).waitFor({ state: 'detached' });
  assert.is((await gateway.admin('GET /gateway/views/odd')).status, 404);
});

inBrowser('count the tools that clients get, without those that hints leave out', async () => {
  const { page } = watched;
  const annotate = { test_simple_text: { readOnlyHint: true } };
  const from = [{ template: 'desk', only: { readOnly: true }, annotate }];
  assert.is((await gateway.admin('PUT /gateway/views/readers', { from })).status, 201);
  const { count } = await read('/mcp/readers/tools/list');
  const { count: all } = await read('/mcp/desk/tools/list');
  assert.is(count, 1);
  await page.goto(`${gateway.url}/console/view?id=readers`);
  await page.getByText('In the view: 1 tool', { exact: true }).waitFor();
  await page.getByText(`only leaves ${Number(all) - 1} tools out`).waitFor();
});

inBrowser(
  'offer the tools of a template when an instance becomes available, and what was filled in stays',
  async () => {
    const { page, requests } = watched;
    const ofAway = () => requests.filter((url) => url.endsWith('/mcp/away/tools/list')).length;
    const registerAway = (endpoint: string | undefined) =>
      gateway.admin('POST /gateway/register', { template_name: 'away', instance: { id: 'one', endpoint } });
    assert.is((await registerAway('http://127.0.0.1:1/mcp')).status, 201);
    await page.goto(`${gateway.url}/console/view`);
    await page.getByLabel('Name (required)').fill('patient');
    const row = page.locator('label.of-template', { hasText: 'away' });
    await row.getByText('No instance is available.').waitFor();
    assert.is(ofAway(), 0);
    assert.is((await registerAway(servers[0]?.url)).status, 200);
    await row.getByText(/^0 of \d+ tools$/).waitFor();
    assert.is(ofAway(), 1);
    assert.is(await page.getByLabel('Name (required)').inputValue(), 'patient');
  },
);

inBrowser('log no error to the browser console', () => {
  const refusals = /status of (?:400|401|404|412|422)/;
  assert.equal(
    watched.complaints.filter((each) => !refusals.test(each)),
    [],
  );
});

test.run();
