// The console in a real Chromium, as an operator uses it: signs in, registers an instance and watches it turn healthy, calls
// a tool with a generated form, kills its process, drains, ends a session, revokes a key, and continues after a restart of the
// gateway. The tests depend on their order.

import type { Locator } from 'playwright-core';
import * as assert from 'uvu/assert';
import { everythingProgram } from '../../fixtures/everything-server.ts';
import { type Browser, launchBrowser, type WatchedPage } from '../../helpers/browsers/browser.ts';
import { canUseConsole, NO_CONSOLE, signIn } from '../../helpers/browsers/console.ts';
import { type Caller, caller, field, listed, statusAndCode, tokenOf } from '../../helpers/clients/caller.ts';
import { LegacyClient } from '../../helpers/clients/mcp-client.ts';
import { becomes, eventually } from '../../helpers/eventually.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { freePort } from '../../helpers/network/free-port.ts';
import { type McpHarness, PASSWORD, startGuarded } from '../../helpers/programs/mcp-program.ts';
import { AS_IT_COMES } from '../../helpers/programs/program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the console', { timeoutMs: 120_000 });
const inBrowser = test.needs(canUseConsole, NO_CONSOLE);

const folder = folderOfAll(test)();
let port = 0;
let gateway: McpHarness;
let admin: Caller;
let credentials: { readonly Authorization: string };
let browser: Browser;
let watched: WatchedPage;
test.before(async () => {
  if (!canUseConsole) return;
  port = await freePort();
  await startGateway();
  browser = await launchBrowser();
  watched = await browser.open();
  watched.page.setDefaultTimeout(10_000);
});
test.after(async () => {
  await browser?.close();
  await gateway?.remove();
});

inBrowser('refuses a wrong password, and shows the requested page after the sign-in', async () => {
  const { page } = watched;
  await page.goto(`${url()}/console/settings`);
  await page.getByLabel('User name').fill('admin');
  await page.getByLabel('Password').fill('not the password');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').waitFor();
  await signIn(page);
  await heading('Settings').waitFor();
  const cookies = await page.context().cookies();
  const found = cookies.map(({ name, httpOnly, sameSite, path }) => [
    ...[name.replace(/_\d+$/, ''), httpOnly, sameSite, path],
  ]);
  // The second is for the pages of the sign-in of MCP clients: ADR 208.
  assert.equal(
    found.toSorted(([, , , a], [, , , b]) => String(a).localeCompare(String(b))),
    [
      ['stagedoor_session', true, 'Strict', '/'],
      ['stagedoor_sign_in', true, 'Lax', '/connections'],
      ['stagedoor_sign_in', true, 'Lax', '/oauth'],
    ],
  );
});

inBrowser('registers a command after a connection test, and shows it healthy', async () => {
  const { page } = watched;
  const { command, args } = everythingProgram({ name: 'first' });
  await page.goto(`${url()}/console/register`);
  await page.getByLabel(/^Template/).fill('everything');
  await page.getByRole('button', { name: 'Command' }).click();
  await page.getByLabel('Instance name').fill('first');
  await page.getByLabel(/^Command/).fill([command, ...args].join(' '));
  await page.getByRole('button', { name: 'Test the connection' }).click();
  await page.getByText(/^Connected: .* tools/).waitFor();
  await page.getByLabel('Instance name').press('Enter'); // as a click on Register
  await heading('everything').waitFor();
  await state('first', 'Healthy').waitFor();
});

inBrowser('updates the share of calls of an instance without a reload', async () => {
  const { page } = watched;
  const share = page.locator('.instances .row', { hasText: 'first' }).locator('.share');
  await page.reload();
  await share.getByText('–').waitFor();
  const { status } = await admin('POST /mcp/everything/tools/call', {
    name: 'test_simple_text',
    arguments: {},
  });
  assert.is(status, 200);
  await share.getByText('100 %').waitFor();
});

inBrowser('calls a tool with a form, and answers its elicitation', async () => {
  const { page } = watched;
  await page.goto(`${url()}/console/playground?template=everything`);
  await page.getByLabel('Filter tools').fill('test_elicitation');
  await page.getByRole('button', { name: 'test_elicitation Asks the user', exact: true }).click();
  await page.getByLabel(/^message/).fill('Who are you?');
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await page.getByText('Who are you?', { exact: true }).last().waitFor();
  await page.getByLabel(/^username/).fill('ada');
  await page.getByLabel(/^email/).fill('ada@localhost');
  await page.getByRole('button', { name: 'Answer', exact: true }).click();
  await page
    .getByText(/User response: .*ada@localhost/)
    .first()
    .waitFor();
});

inBrowser('cancels a question of a tool when its page is left, reloaded or closed', async () => {
  const { page } = await browser.open();
  page.setDefaultTimeout(10_000);
  // A server of this era waits for the answer within the call.
  const instance = { id: 'asking', ...everythingProgram({ era: 'legacy' }) };
  const body = { template_name: 'asking', instance };
  assert.is((await admin('POST /gateway/register?wait=20', body)).status, 201);
  const callsInFlight = async (): Promise<unknown> => field(await admin('GET /servers/asking'), 'in_flight');
  const leavings: readonly (() => Promise<unknown>)[] = [
    () => page.getByRole('link', { name: 'Sessions' }).click(),
    () => page.reload(),
    () => page.close({ runBeforeUnload: true }),
  ];
  for (const leave of leavings) {
    await page.goto(`${url()}/console/playground?template=asking&item=test_elicitation`);
    await page.getByLabel(/^message/).fill('Who are you?');
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    await page.getByRole('button', { name: 'Decline' }).waitFor();
    assert.is(await callsInFlight(), 1);
    await leave();
    assert.is(await eventually(callsInFlight, (count) => count === 0, 5_000), 0);
  }
  assert.is((await admin('DELETE /gateway/deregister/asking/asking')).status, 204);
  assert.is((await admin('DELETE /gateway/templates/asking')).status, 204);
});

inBrowser('copies the call as a curl command', async () => {
  const { page } = watched;
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.getByLabel(/^message/).fill("It's me");
  await page.getByRole('button', { name: 'Copy as curl' }).click();
  await page.getByText('Copied').waitFor();
  const copied = await page.evaluate('navigator.clipboard.readText()');
  assert.match(String(copied), `curl -X POST '${url()}/mcp/everything/tools/call'`);
  assert.match(String(copied), `--data '{"name":"test_elicitation","arguments":{"message":"It'\\''s me"}}'`);
});

inBrowser('shows the progress of a tool', async () => {
  const { page } = watched;
  await page.getByLabel('Filter tools').fill('progress');
  await page.getByRole('button', { name: /^test_tool_with_progress/ }).click();
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await page.getByRole('progressbar').waitFor();
  await page.getByText('Result', { exact: true }).waitFor();
});

inBrowser(
  'shows how a client connects to one template or to all, by either transport, with a new key',
  async () => {
    const { page } = watched;
    await follow('Connect');
    await heading('Connect a client').waitFor();
    await page.getByLabel('Template').selectOption('everything');
    await page.getByRole('button', { name: 'Claude Code', exact: true }).click();
    const snippet = page.locator('.output');
    await snippet.getByText(`${url()}/mcp/everything`).waitFor();
    await page.getByRole('button', { name: 'Program (bridge)' }).click();
    await snippet.getByText('"bridge"').waitFor();
    await page.getByLabel('Template').selectOption('All templates');
    await page.getByRole('button', { name: 'MCP endpoint' }).click();
    await snippet.getByText(new RegExp(`${url()}/mcp(?![/\\w])`)).waitFor();
    await page.getByRole('link', { name: 'New API key' }).click();
    await page.getByRole('dialog').getByRole('heading', { name: 'New API key' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  },
);

inBrowser('shows the calls, and the attempts of a call', async () => {
  const { page } = watched;
  await follow('Activity');
  await page.getByRole('button', { name: 'test_tool_with_progress' }).first().click();
  const drawer = page.getByRole('dialog');
  await drawer.getByText('1 attempt').waitFor();
  await drawer.getByText('first', { exact: true }).waitFor();
  await page.keyboard.press('Escape');
  await drawer.waitFor({ state: 'detached' });
});

inBrowser(
  'shows a killed process as unhealthy within a second, by events alone, and healthy again after its restart',
  async () => {
    const { page } = watched;
    await page.goto(`${url()}/console/template?name=everything`);
    // More events than it reads at once.
    for (let round = 0; round < 20; round += 1) {
      await admin('POST /gateway/instances/everything/first/drain');
      await admin('POST /gateway/instances/everything/first/resume');
    }
    await state('first', 'Healthy').waitFor();
    const pid = Number(field(await admin('GET /servers/first'), 'pid'));
    const reads = /\/(?:servers|gateway\/registry)/;
    await page.route(reads, (route) => route.fulfill({ status: 503, json: { detail: 'not now' } }));
    const turned = state('first', 'Healthy').waitFor({ state: 'detached' });
    const killedAtMs = performance.now();
    process.kill(pid, 'SIGKILL');
    await turned;
    const tookMs = performance.now() - killedAtMs;
    assert.ok(tookMs < 1_000, `it took ${Math.round(tookMs)} ms`);
    await state('first', 'Healthy').waitFor();
    await page.unroute(reads);
  },
);

inBrowser('drains, resumes and changes the weight of an instance', async () => {
  const { page } = watched;
  await page.getByRole('button', { name: 'Drain first' }).click();
  await page.getByRole('button', { name: 'Resume first' }).waitFor();
  assert.match((await listed(admin))['everything/first']?.state ?? '', /draining|stopped/);
  await page.getByRole('button', { name: 'Resume first' }).click();
  await state('first', 'Healthy').waitFor();
  await page.getByLabel('Weight of first').fill('7');
  await page.keyboard.press('Enter');
  await page.getByText('first has the weight 7.').waitFor();
  assert.is((await listed(admin))['everything/first']?.weight, 7);
  await page.getByLabel('Weight of first').fill('0');
  await page.keyboard.press('Enter');
  await page.locator('input:user-invalid').waitFor();
  assert.is(await page.getByLabel('Weight of first').inputValue(), '0');
  await page.getByLabel('Weight of first').fill('7');
});

inBrowser('lists the session of a client, and ends it', async () => {
  const { page } = watched;
  await follow('Sessions');
  await page.getByText('No client has a session.').waitFor();
  const client = await LegacyClient.open(gateway.wire, '/mcp/everything', { headers: credentials });
  const row = page.locator('.sessions .row', { hasText: 'raw 1' });
  await row.getByRole('button', { name: 'End' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'End the session' }).click();
  await page.getByText('The session is ended.').waitFor();
  await row.waitFor({ state: 'detached' });
  assert.is((await client.ask('tools/list')).status, 404);
});

inBrowser('changes the strategy of a template, and resets a refused setting', async () => {
  const { page } = watched;
  await page.goto(`${url()}/console/template?name=everything`);
  await page.getByLabel('Strategy').selectOption('least_connections');
  await page.getByText('The settings of everything are in force.').waitFor();
  const template = await admin('GET /gateway/templates/everything');
  assert.is(Object(field(template, 'load_balancer')).strategy, 'least_connections');
  await page.getByRole('textbox', { name: 'Hash on' }).fill('argument:user');
  await page.keyboard.press('Enter');
  const hashOn = async () =>
    Object(field(await admin('GET /gateway/templates/everything'), 'load_balancer')).hash_on;
  await becomes(hashOn, 'argument:user');
  const path = '**/gateway/templates/everything';
  await page.route(path, (route) => route.fulfill({ status: 503, json: { detail: 'not now' } }));
  const timeout = page.getByRole('spinbutton', { name: 'Timeout, s' }); // tools have timeouts, too
  await timeout.fill('7');
  await page.keyboard.press('Enter');
  await page.getByText('not now').waitFor();
  assert.is(await timeout.inputValue(), '60');
  await page.unroute(path);
});

inBrowser('creates an API key, shows it once, and revokes it', async () => {
  const { page } = watched;
  await follow('Users and keys');
  await page.getByRole('button', { name: 'New key' }).click();
  await page.getByLabel(/^Name/).fill('nightly build');
  await page.getByLabel('Only some templates').check();
  await page.getByRole('dialog').getByLabel('everything', { exact: true }).check();
  await page.getByLabel('Only some tools').check();
  await page.getByLabel('Rules').fill('everything/*\n!everything/test_error_handling');
  await page.getByRole('button', { name: 'Create' }).dblclick(); // which creates one key
  const key = await page.locator('dialog .output').textContent();
  await page.getByRole('button', { name: 'Done' }).click();
  const holder = caller(url(), { 'X-API-Key': key ?? '' });
  const { body } = await holder('GET /mcp/everything/tools/list');
  assert.match(JSON.stringify(body), 'test_simple_text');
  assert.not.match(JSON.stringify(body), 'test_error_handling');
  await page.getByText('everything; 2 rules for tools').waitFor();
  await page.getByText('Rate limit: 5,000 requests per hour each; none for keys').waitFor();
  await page.getByRole('button', { name: 'Revoke nightly build' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  await page.locator('[aria-label="Revoke nightly build"]:focus').click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await page.getByText('nightly build is revoked.').waitFor();
  assert.equal(statusAndCode(await holder('GET /mcp/everything/tools/list')), [401, 'INVALID_CREDENTIALS']);
});

inBrowser('limits the rights of a user, and gives them back', async () => {
  const { page } = watched;
  const scopesOf = async (username: string) => {
    const users: { username: string; scopes?: string[] }[] = Object((await admin('GET /auth/users')).body);
    return users.find((user) => user.username === username)?.scopes;
  };
  await follow('Users and keys');
  await page.getByRole('button', { name: 'New user' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel(/^User name/).fill('grace');
  await dialog.getByLabel(/^Email/).fill('grace@localhost');
  await dialog.getByLabel(/^Password/).fill(PASSWORD);
  await dialog.getByLabel('Call tools').check();
  await dialog.getByRole('button', { name: 'Create' }).click();
  await page.getByText('grace may sign in.').waitFor();
  assert.equal(await scopesOf('grace'), ['tools:call']);
  await page.getByRole('button', { name: 'Change grace' }).click();
  assert.ok(await dialog.getByLabel('Call tools').isChecked());
  assert.not(await dialog.getByLabel('See instances and statistics').isChecked());
  await dialog.getByLabel('Call tools').uncheck();
  await dialog.getByRole('button', { name: 'Change' }).click();
  await page.getByText('grace is changed.').waitFor();
  assert.is(await scopesOf('grace'), undefined);
});

inBrowser('edits an instance in place, and deletes a template without instances', async () => {
  const { page } = watched;
  const instance = { id: 'old', endpoint: 'http://127.0.0.1:9/old', headers: { 'X-Team': 'a' } };
  assert.is((await admin('POST /gateway/register', { template_name: 'spare', instance })).status, 201);
  await page.goto(`${url()}/console/template?name=spare&instance=old`);
  await page.getByRole('dialog').getByRole('link', { name: 'Edit' }).click();
  await page.getByLabel(/^URL/).fill('http://127.0.0.1:9/new');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Write the value of "X-Team", or remove its line.').waitFor();
  await page.getByLabel('Headers').fill('X-Team: b');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { name: 'spare', level: 1 }).waitFor();
  assert.is(Object((await admin('GET /servers/old')).body).endpoint, 'http://127.0.0.1:9/new');
  assert.ok(await page.getByRole('button', { name: 'Delete the template' }).isDisabled());
  assert.is((await admin('DELETE /gateway/deregister/spare/old')).status, 204);
  await page.getByRole('button', { name: 'Delete the template' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  assert.is((await admin('GET /gateway/templates/spare')).status, 404);
});

inBrowser('keeps what its form does not show when it edits a program', async () => {
  const { page } = watched;
  const endpoint = 'http://127.0.0.1:9/served';
  const instance = { id: 'sealed', command: 'true', endpoint, secret_env_vars: ['REGION'] };
  assert.is((await admin('POST /gateway/register', { template_name: 'spare', instance })).status, 201);
  await page.goto(`${url()}/console/template?name=spare&instance=sealed`);
  await page.getByRole('dialog').getByRole('link', { name: 'Edit' }).click();
  await page.getByLabel(/^Weight/).fill('7');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { name: 'spare', level: 1 }).waitFor();
  const { weight, ...kept } = Object((await admin('GET /servers/sealed')).body);
  assert.equal([weight, kept.secret_env_vars, kept.endpoint], [7, ['REGION'], endpoint]);
  assert.is((await admin('DELETE /gateway/deregister/spare/sealed')).status, 204);
  assert.is((await admin('DELETE /gateway/templates/spare')).status, 204);
});

inBrowser('reports that the connection is lost, and reconnects after a restart of the gateway', async () => {
  const { page } = watched;
  const activity = await browser.open();
  await activity.page.goto(`${url()}/console/activity`);
  const calls = activity.page.locator('.calls .row');
  await calls.first().waitFor();
  await follow('Overview');
  await page.getByText('All healthy: 1 instance in 1 template.').waitFor();
  gateway.program.signal('SIGTERM');
  await gateway.program.end();
  await page.getByText('The connection to the gateway is lost.').waitFor();
  await gateway.remove();
  await startGateway();
  await page.getByText('Live', { exact: true }).waitFor();
  await page.getByText('All healthy: 1 instance in 1 template.').waitFor();
  await activity.page.getByText('Live', { exact: true }).waitFor();
  // The gateway counts its calls from 1 again.
  await admin('POST /mcp/everything/tools/call', { name: 'test_error_handling', arguments: {} });
  await calls.first().getByText('test_error_handling').waitFor();
  await activity.page.close();
});

inBrowser('reports a lost connection when the stream goes silent, and reconnects', async () => {
  const { page } = await browser.open();
  await page.clock.install();
  await page.goto(`${url()}/console`);
  await page.getByText('Live', { exact: true }).waitFor();
  const isStream = (address: URL): boolean => address.pathname === '/events';
  await page.route(isStream, () => {});
  await page.clock.fastForward('01:00');
  await page.getByText('Connecting…').waitFor();
  await page.clock.fastForward('00:20');
  await page.getByText('The connection to the gateway is lost.').waitFor();
  await page.unroute(isStream);
  await page.clock.fastForward('00:20');
  await page.getByText('Live', { exact: true }).waitFor();
  await page.close();
});

inBrowser('asks for sign-in when the session ends, and keeps the page', async () => {
  const { page } = watched;
  await follow('Users and keys');
  await page.context().clearCookies();
  // The console reads instances at once when they change.
  for (const verb of ['drain', 'resume'])
    assert.is((await admin(`POST /gateway/instances/everything/first/${verb}`, {})).status, 200);
  await page.getByText('Your session has ended.').waitFor();
  await signIn(page);
  await heading('Users and keys').waitFor();
});

inBrowser('makes no request to the path in a link whose template name is a path', async () => {
  const { page } = watched;
  for (const name of ['../auth/logout', '..%2Fauth/logout', '.%09./auth%5Clogout']) {
    await page.goto(`${url()}/console/playground?template=${name}`);
    await page.getByText('is not a gateway path').waitFor();
  }
  const found = watched.requests.filter((each) => each.endsWith('logout') && !each.includes('template='));
  assert.equal(found, []);
});

inBrowser('shows an ordinary user no control that the gateway would refuse', async () => {
  const user = { username: 'ada', email: 'ada@localhost', password: PASSWORD, role: 'user' };
  assert.is((await admin('POST /auth/users', user)).status, 201);
  const { page } = watched;
  // The page of the administrator, with the arguments of calls and the state of all templates, is discarded.
  await page.evaluate('window.isPageOfAdmin = true');
  await page.getByRole('button', { name: 'Sign out' }).click();
  await signIn(page, 'ada');
  assert.is(await page.evaluate('window.isPageOfAdmin'), undefined);
  await follow('Overview');
  await page.getByRole('link', { name: 'everything', exact: true }).click();
  await state('first', 'Healthy').waitFor();
  assert.is(await page.getByRole('button', { name: /Drain|Register/ }).count(), 0);
  assert.is(await page.getByRole('link', { name: /Register|Users and keys|Settings/ }).count(), 0);
  assert.ok(await page.getByLabel('Strategy').isDisabled());
  await follow('Connected accounts');
  await page.getByText('No server wants one.').waitFor();
  assert.is(await page.getByRole('link', { name: 'Register' }).count(), 0);
  await page.goto(`${url()}/console/users`);
  await heading('Not found').waitFor();
});

inBrowser('loads nothing from other origins and violates no rule of its policy', () => {
  const elsewhere = watched.requests.filter((each) => !each.startsWith(url()) && !each.startsWith('data:'));
  assert.equal(elsewhere, []);
  // Chromium logs refusals, and a gateway that was killed, is away or starts.
  const expected = /status of (?:40[134]|503)|ERR_CONNECTION_(?:REFUSED|RESET)|ERR_INCOMPLETE|^failed: /;
  const found = watched.complaints.filter((complaint) => !expected.test(complaint));
  assert.equal(found, []);
});

async function startGateway(): Promise<void> {
  gateway = await startGuarded({ port, folder, env: AS_IT_COMES });
  ({ admin } = gateway);
  credentials = await tokenOf(url(), 'admin', PASSWORD);
}

function url(): string {
  return `http://127.0.0.1:${port}`;
}

function heading(name: string): Locator {
  return watched.page.getByRole('heading', { name, exact: true, level: 1 });
}

function follow(name: string): Promise<void> {
  return watched.page
    .getByRole('navigation', { name: 'Pages' })
    .getByRole('link', { name, exact: true })
    .click();
}

/** The badge of an instance in the list of its template. */
function state(instance: string, word: string): Locator {
  return watched.page.locator('.instances .row', { hasText: instance }).getByText(word, { exact: true });
}

test.run();
