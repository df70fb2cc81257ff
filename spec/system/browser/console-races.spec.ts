// Requests of the console that take longer than the patience of its user: their answers change nothing that was opened, typed or
// asked for since.

import type { Page, Route } from 'playwright-core';
import * as assert from 'uvu/assert';
import { type Browser, launchBrowser } from '../../helpers/browsers/browser.ts';
import { canUseConsole, NO_CONSOLE, signIn } from '../../helpers/browsers/console.ts';
import { newKey } from '../../helpers/clients/caller.ts';
import { type McpHarness, PASSWORD, startGuarded } from '../../helpers/programs/mcp-program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('late answers in the console', { timeoutMs: 60_000 });
const inBrowser = test.needs(canUseConsole, NO_CONSOLE);

let gateway: McpHarness;
let browser: Browser;
let page: Page;
test.before(async () => {
  if (!canUseConsole) return;
  gateway = await startGuarded();
  for (const name of ['first', 'second']) await newKey(gateway.admin, name);
  await registerAway('spare');
  browser = await launchBrowser();
  ({ page } = await browser.open());
  page.setDefaultTimeout(10_000);
  await page.goto(`${gateway.url}/console/`);
  await signIn(page);
});
test.after.each(async () => {
  await page?.unrouteAll();
});
test.after(async () => {
  await browser?.close();
  await gateway?.remove();
});

inBrowser('close no dialog that was opened since', async () => {
  await page.goto(`${gateway.url}/console/users`);
  await page.getByRole('button', { name: 'New user' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('User name').fill('eve');
  await dialog.getByLabel('Email').fill('eve@localhost');
  await dialog.getByLabel('Password').fill(PASSWORD);
  const answerCreation = await held('POST', '**/auth/users');
  await dialog.getByRole('button', { name: 'Create' }).click();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'New key' }).click();
  await dialog.getByLabel(/^Name/).fill('nightly');
  await answerCreation();
  await page.getByText('eve@localhost').waitFor();
  assert.is(await dialog.getByLabel(/^Name/).inputValue(), 'nightly');
  await page.keyboard.press('Escape');
  const answerRevocation = await held('DELETE', '**/auth/api-keys/*');
  await page.getByRole('button', { name: 'Revoke first' }).click();
  await dialog.getByRole('button', { name: 'Revoke' }).click();
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: 'Revoke second' }).click();
  await answerRevocation();
  await page.getByText('first is revoked.').waitFor();
  await dialog.getByText('Revoke second?').waitFor();
  await page.keyboard.press('Escape');
});

inBrowser('close a dialog, and not the one that is opened in the same moment', async () => {
  await page.goto(`${gateway.url}/console/users`);
  await page.getByRole('button', { name: 'Change admin' }).click();
  await page.getByRole('dialog').getByText('Change admin').waitFor();
  // The event of the closing comes later.
  await page.evaluate(`document.querySelector('dialog').close();
    document.querySelector('[aria-label="Change eve"]').click()`);
  await page.getByRole('dialog').getByText('Change eve').waitFor();
  await page.keyboard.press('Escape');
});

inBrowser('lead to no other page, when theirs was left', async () => {
  const sessions = page.getByRole('heading', { name: 'Sessions', level: 1 });
  const leave = async (): Promise<void> => {
    await page.getByRole('link', { name: 'Sessions', exact: true }).click();
    await sessions.waitFor();
  };
  await page.goto(`${gateway.url}/console/register?template=late`);
  await page.getByLabel(/^URL/).fill('http://127.0.0.1:9/mcp');
  await page.getByLabel('Instance name').fill('slow');
  const answerRegistration = await held('POST', '**/gateway/register');
  await page.getByRole('button', { name: 'Register', exact: true }).click();
  await leave();
  await answerRegistration();
  await page.getByText('slow is saved.').waitFor();
  await sessions.waitFor();

  assert.is((await gateway.admin('PUT /gateway/views/desk', { from: [{ template: 'late' }] })).status, 201);
  await page.goto(`${gateway.url}/console/view?id=desk`);
  await page.getByLabel('Title').fill('The desk');
  const answerView = await held('PUT', '**/gateway/views/desk');
  await page.getByRole('button', { name: 'Save' }).click();
  await leave();
  await answerView();
  await page.getByText('The view desk is in force.').waitFor();
  await sessions.waitFor();

  assert.is((await gateway.admin('DELETE /gateway/deregister/spare/away')).status, 204);
  await page.goto(`${gateway.url}/console/template?name=spare`);
  await page.getByRole('button', { name: 'Delete the template' }).click();
  const answerDeletion = await held('DELETE', '**/gateway/templates/spare');
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.keyboard.press('Escape');
  await leave();
  await answerDeletion();
  await page.getByText('spare is deleted.').waitFor();
  await sessions.waitFor();
});

inBrowser('show no test of a connection that was given up', async () => {
  await page.goto(`${gateway.url}/console/register?template=late`);
  await page.getByLabel(/^URL/).fill('http://127.0.0.1:9/mcp');
  const answer = await held('POST', '**/gateway/test');
  await page.getByRole('button', { name: 'Test the connection' }).click();
  await page.getByRole('button', { name: 'Command' }).click();
  await page.getByRole('button', { name: 'Test the connection' }).waitFor();
  await answer();
  assert.is(await page.locator('form [role=status]').count(), 0);
});

inBrowser('reset no field that was filled in since', async () => {
  await page.goto(`${gateway.url}/console/template?name=late`);
  const hashOn = page.getByRole('textbox', { name: 'Hash on' });
  const refuse = (route: Route): Promise<void> => route.fulfill({ status: 503, json: { detail: 'not now' } });
  const answerSetting = await held('PATCH', '**/gateway/templates/late', refuse);
  await hashOn.fill('argument:one');
  await page.keyboard.press('Enter');
  await hashOn.fill('argument:two');
  await answerSetting();
  await page.getByText('not now').waitFor();
  assert.is(await hashOn.inputValue(), 'argument:two');
  const weight = page.getByLabel('Weight of slow');
  const answerWeight = await held('PATCH', '**/gateway/instances/late/slow');
  await weight.fill('7');
  await page.keyboard.press('Enter');
  await weight.fill('77');
  await answerWeight();
  await page.getByText('slow has the weight 7.').waitFor();
  assert.is(await weight.inputValue(), '77');
});

inBrowser('show the next page of a list, although the list is read again meanwhile', async () => {
  const at = new Date().toISOString();
  const sessions = Array.from({ length: 300 }, (_, index) => ({
    ...{ id: `session-${index}`, principal: 'user:1', principal_name: 'ada', bindings: [] },
    client: { name: `client-${index}`, version: null },
    ...{ created_at: at, last_used_at: at, is_streaming: false },
  }));
  const asked: string[] = [];
  const { promise: isAnswered, resolve: answer } = Promise.withResolvers<void>();
  await page.route('**/gateway/sessions?*', async (route) => {
    const query = new URL(route.request().url()).searchParams;
    asked.push(String(query));
    const first = Number(query.get('cursor') ?? -1) + 1;
    if (first > 0) await isAnswered;
    const last = first + Number(query.get('limit'));
    const next_cursor = last < sessions.length ? String(last - 1) : null;
    await route.fulfill({ json: { sessions: sessions.slice(first, last), next_cursor } });
  });
  await page.route(
    (address) => address.pathname === '/events',
    (route) =>
      route.fulfill({ contentType: 'text/event-stream', body: 'data: {"type":"session.opened"}\n\n' }),
  );
  await page.goto(`${gateway.url}/console/sessions`);
  await page.getByText('100 sessions, and more').waitFor();
  await page.getByRole('button', { name: 'Show more' }).click();
  const reads = asked.length;
  while (asked.length === reads) await page.waitForRequest('**/gateway/sessions?*');
  answer();
  await page.getByText('200 sessions, and more').waitFor();
});

inBrowser('show the newest state of the nodes, although an earlier read is answered later', async () => {
  const answerOf = (id: string) => ({
    nodes: [
      {
        ...{ id, life: id, state: 'live', draining: false, address: null, version: '1' },
        ...{ since: new Date().toISOString(), programs: 0, in_flight: 0 },
      },
    ],
    warnings: [],
  });
  const { promise: isReleased, resolve: release } = Promise.withResolvers<void>();
  let reads = 0;
  await page.route('**/gateway/nodes', async (route) => {
    reads += 1;
    if (reads > 1) return route.fulfill({ json: answerOf('newer') });
    await isReleased;
    return route.fulfill({ json: answerOf('older') });
  });
  await page.goto(`${gateway.url}/console/nodes`);
  await page.getByText('newer').waitFor();
  const answered = page.waitForResponse('**/gateway/nodes');
  release();
  await (await answered).finished();
  await isShown();
  assert.is(await page.getByText('older').count(), 0);
});

/** Holds requests until the function that it resolves with is called, which resolves when the page has shown the answer. */
async function held(
  method: string,
  pattern: string,
  proceed: (route: Route) => Promise<void> = (route) => route.continue(),
): Promise<() => Promise<void>> {
  const { promise: isReleased, resolve: release } = Promise.withResolvers<void>();
  await page.route(pattern, async (route) => {
    if (route.request().method() === method) await isReleased;
    await proceed(route);
  });
  return async () => {
    const answered = page.waitForResponse((response) => response.request().method() === method);
    release();
    await (await answered).finished();
    await isShown();
  };
}

/** Resolves when the page has shown what it got. */
async function isShown(): Promise<void> {
  await page.evaluate(
    'new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))',
  );
}

function registerAway(template: string) {
  const instance = { id: 'away', endpoint: 'http://127.0.0.1:9/mcp' };
  return gateway.admin('POST /gateway/register', { template_name: template, instance });
}

test.run();
