// Several pages of the console in one browser, which share its session and its few connections: a sign-in or sign-out at one of them
// is seen by the other, and pages in the background leave the connections to the one in view.

import type { Page } from 'playwright-core';
import * as assert from 'uvu/assert';
import { type Browser, launchBrowser } from '../../helpers/browsers/browser.ts';
import { canUseConsole, NO_CONSOLE, signIn } from '../../helpers/browsers/console.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { type McpHarness, PASSWORD, startGuarded } from '../../helpers/programs/mcp-program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('two pages of the console', { timeoutMs: 60_000 });
const inBrowser = test.needs(canUseConsole, NO_CONSOLE);

const folder = folderOfAll(test)();
let gateway: McpHarness;
let browser: Browser;
const pages: Page[] = [];
test.before(async () => {
  if (!canUseConsole) return;
  gateway = await startGuarded({ folder });
  const ada = { username: 'ada', email: 'ada@localhost', password: PASSWORD, role: 'user' };
  assert.is((await gateway.admin('POST /auth/users', ada)).status, 201);
  browser = await launchBrowser();
});
test.after.each(async () => {
  await pages[0]?.context().clearCookies();
  for (const page of pages.splice(0)) await page.close();
});
test.after(async () => {
  await browser?.close();
  await gateway?.remove();
});

inBrowser(
  'a page asks for sign-in when the account signs out at the other, and shows who signs in there',
  async () => {
    const [first, second] = [await open(), await open()];
    await signIn(first);
    await second.getByRole('button', { name: 'Sign out' }).waitFor();
    await second.goto(`${gateway.url}/console/users`);
    await second.getByText('ada@localhost').waitFor();
    await signOut(first);
    await second.getByLabel('Password').waitFor();
    assert.is(await second.getByText('Your session has ended').count(), 0);
    await signIn(first, 'ada');
    // The requests of the second page would be those of ada from now on: it must not show what the admin sees.
    await second.getByText('ada', { exact: true }).waitFor();
    assert.is(await second.getByText('ada@localhost').count(), 0);
    assert.is(await second.getByRole('link', { name: 'Users and keys' }).count(), 0);
  },
);

inBrowser('a page that opens while the other one signs in shows the account', async () => {
  const [first, second] = [await open(), await open()];
  const { promise: isReleased, resolve: release } = Promise.withResolvers<void>();
  const { promise: isRefused, resolve: refuse } = Promise.withResolvers<void>();
  await second.route(
    '**/auth/me',
    async (route) => {
      const response = await route.fetch();
      refuse();
      await isReleased;
      await route.fulfill({ response });
    },
    { times: 1 },
  );
  await second.goto(`${gateway.url}/console`);
  await isRefused;
  await signIn(first);
  await second.getByRole('button', { name: 'Sign out' }).waitFor();
  const answered = second.waitForResponse('**/auth/me');
  release();
  await (await answered).finished();
  await second.evaluate('new Promise((resolve) => setTimeout(resolve))');
  assert.is(await second.getByLabel('Password').count(), 0);
});

inBrowser('a page shows who signs in at the other by an address, as at an identity provider', async () => {
  const [first, second] = [await open(), await open()];
  await signIn(first);
  await second.goto(`${gateway.url}/console/users`);
  await second.getByText('ada@localhost').waitFor();
  await first.goto(`${gateway.url}/docs`);
  const login = await first.evaluate(
    async (body) => {
      const headers = { 'Content-Type': 'application/json', 'X-Stagedoor-Console': '1' };
      return (await fetch('/auth/login', { method: 'POST', headers, body })).status;
    },
    JSON.stringify({ username: 'ada', password: PASSWORD }),
  );
  assert.is(login, 200);
  await first.goto(`${gateway.url}/console`);
  await second.getByText('ada@localhost').waitFor({ state: 'detached' });
  await second.getByText('ada', { exact: true }).waitFor();
});

inBrowser(
  'a page opens beside seven others in the background, and each is up to date when it is shown again',
  async () => {
    const first = await open();
    await signIn(first);
    for (let count = 1; count < 8; count += 1) {
      await setVisibility(pages[count - 1], 'hidden');
      await (await open()).getByText('No instance is registered yet.').waitFor();
    }
    const instance = { id: 'away-1', endpoint: 'http://127.0.0.1:1/mcp' };
    const answer = await gateway.admin('POST /gateway/register', { template_name: 'away', instance });
    assert.is(answer.status, 201);
    await pages[7]?.getByText('away').first().waitFor();
    assert.is(await first.getByText('away').count(), 0);
    // The charts have no samples of the time in the background, but the gateway kept its load.
    const history = first.waitForRequest(/\/gateway\/history$/);
    await setVisibility(first, 'visible');
    await first.getByText('away').first().waitFor();
    await history;
  },
);

inBrowser('two admins who change an account at the same time change only what each has entered', async () => {
  const lists = { templates: ['spare', 'files'], views: null, tools: ['files/*', '!files/drop'] };
  const of = { ada: await idOf('users', 'ada'), key: '' };
  const key = { name: 'nightly', permissions: ['tools:call'], ...lists };
  assert.is((await gateway.admin('POST /auth/api-keys', key)).status, 201);
  of.key = await idOf('api-keys', 'nightly');
  assert.is(
    (await gateway.admin(`PATCH /auth/users/${of.ada}`, { ...lists, scopes: ['tools:call'] })).status,
    200,
  );
  const page = await open();
  await signIn(page);
  await page.goto(`${gateway.url}/console/users`);
  const dialog = page.getByRole('dialog');
  const sent: unknown[] = [];
  page.on('request', (request) => {
    if (request.method() === 'PATCH') sent.push(request.postDataJSON());
  });
  for (const [name, path] of [
    ['ada', `users/${of.ada}`],
    ['nightly', `api-keys/${of.key}`],
  ] as const) {
    await page.getByRole('button', { name: `Change ${name}` }).click();
    // The other admin.
    assert.is((await gateway.admin(`PATCH /auth/${path}`, { templates: ['files'] })).status, 200);
    await dialog.getByLabel('Rules').fill('files/*');
    await dialog.getByRole('button', { name: 'Change' }).click();
    await page.getByText(`${name} is changed.`).waitFor();
    await page.getByRole('button', { name: `Change ${name}` }).click();
    await dialog.getByRole('button', { name: 'Change' }).click();
    await dialog.waitFor({ state: 'detached' });
  }
  assert.equal(sent, [{ tools: ['files/*'] }, { tools: ['files/*'] }]);
});

inBrowser('an instance that was changed meanwhile is not overwritten', async () => {
  const instance = { id: 'one', endpoint: 'http://127.0.0.1:1/mcp' };
  const register = (more: object = {}) =>
    gateway.admin('POST /gateway/register', { template_name: 'shared', instance: { ...instance, ...more } });
  assert.is((await register()).status, 201);
  const page = await open();
  await signIn(page);
  await page.goto(`${gateway.url}/console/register?template=shared&instance=one`);
  await page.getByLabel('Weight').fill('3');
  // The other admin.
  assert.is((await register({ endpoint: 'http://127.0.0.1:2/mcp' })).status, 200);
  const save = page.getByRole('button', { name: 'Save' });
  await save.click();
  await page.getByText('The instance was changed or deleted since you opened it.').waitFor();
  await page.getByRole('button', { name: 'Read it again' }).click();
  await page.getByText('since you opened it').waitFor({ state: 'detached' });
  assert.is(await page.getByLabel('URL').inputValue(), 'http://127.0.0.1:2/mcp');
  await page.getByLabel('Weight').fill('4');
  await save.click();
  await page.getByRole('heading', { level: 1, name: 'shared' }).waitFor();
  await page.goto(`${gateway.url}/console/register?template=shared`);
  await page.getByLabel('Instance name').fill('one');
  await page.getByLabel('URL').fill('http://127.0.0.1:3/mcp');
  await page.getByRole('button', { name: 'Register', exact: true }).click();
  await page.getByText('The template shared has an instance one already').waitFor();
  const { endpoint, weight } = Object((await gateway.admin('GET /gateway/instances/shared/one')).body);
  assert.equal([endpoint, weight], ['http://127.0.0.1:2/mcp', 4]);
});

async function idOf(kind: 'users' | 'api-keys', name: string): Promise<string> {
  const accounts: { id: string; name?: string; username?: string }[] = Object(
    (await gateway.admin(`GET /auth/${kind}`)).body,
  );
  return accounts.find((each) => (each.username ?? each.name) === name)?.id ?? '';
}

/** Says what a browser says of a page in the background; without a window all pages are in view. */
async function setVisibility(page: Page | undefined, state: 'hidden' | 'visible'): Promise<void> {
  await page?.evaluate(`
    Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => '${state}' });
    document.dispatchEvent(new Event('visibilitychange'));
  `);
}

async function open(): Promise<Page> {
  const { page } = await browser.open();
  pages.push(page);
  await page.goto(`${gateway.url}/console`);
  return page;
}

function signOut(page: Page): Promise<void> {
  return page.getByRole('button', { name: 'Sign out' }).click();
}

test.run();
