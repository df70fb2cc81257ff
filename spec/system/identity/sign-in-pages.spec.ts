// The pages of the sign-in in a real Chromium: without script, without a finding of axe, and through the redirect to the client after the
// consent form, which the policy of the page has to allow.

import { createServer, type Server } from 'node:http';
import * as assert from 'uvu/assert';
import {
  axeFindings,
  type Browser,
  chromiumPath,
  launchBrowser,
  NO_CHROMIUM,
  type WatchedPage,
} from '../../helpers/browsers/browser.ts';
import { canUseConsole, NO_CONSOLE, signIn } from '../../helpers/browsers/console.ts';
import { newProof } from '../../helpers/browsers/scripted-browser.ts';
import { becomes } from '../../helpers/eventually.ts';
import { type OAuthHarness, startWithSignIn } from '../../helpers/identity/oauth-gateway.ts';
import { PASSWORD } from '../../helpers/programs/mcp-program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the pages of the sign-in', { timeoutMs: 120_000 });
const inBrowser = test.needs(chromiumPath !== undefined, NO_CHROMIUM);
const inConsole = test.needs(canUseConsole, NO_CONSOLE);

let gateway: OAuthHarness;
let client: Server;
let redirectUri = '';
let clientId = '';
let browser: Browser;
let watched: WatchedPage;
test.before(async () => {
  if (chromiumPath === undefined) return;
  client = createServer((_request, response) =>
    response
      .writeHead(200, { 'Content-Type': 'text/html' })
      .end('<title>client</title><p>The client goes on.</p>'),
  ).listen(0, '127.0.0.1');
  await new Promise((resolve) => client.once('listening', resolve));
  redirectUri = `http://127.0.0.1:${Object(client.address()).port}/callback`;
  gateway = await startWithSignIn();
  clientId = await gateway.oauth.client([redirectUri]);
  browser = await launchBrowser();
  watched = await browser.open();
  watched.page.setDefaultTimeout(20_000);
});
test.after(async () => {
  await browser?.close();
  await gateway?.remove();
  client?.close().closeAllConnections();
});

inBrowser('a wrong password says so, a right one leads to the consent, and Allow to the client', async () => {
  const { page } = watched;
  const proof = newProof();
  await page.goto(await address(proof));
  assert.equal(await axeFindings(page), []);
  await page.getByLabel('User name').fill('ada');
  await page.getByLabel('Password').fill('not the password');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').waitFor();
  assert.equal(await axeFindings(page), []);
  await page.getByLabel('User name').fill('ada');
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByRole('button', { name: 'Allow' }).waitFor();
  assert.equal(await axeFindings(page), []);
  const focused = await page.evaluate('document.activeElement.tagName');
  assert.is(focused, 'BODY', 'neither button is preselected');
  await page.getByRole('button', { name: 'Allow' }).click();
  await page.getByText('The client goes on.').waitFor();
  const code = new URL(page.url()).searchParams.get('code') ?? '';
  const { status, body } = await gateway.oauth.redeem(clientId, code, proof, redirectUri);
  assert.is(status, 200, JSON.stringify(body));
});

inBrowser('a user who is signed in decides at once; "Not you?" leads to another account', async () => {
  const { page } = watched;
  await page.goto(await address(newProof()));
  await page.getByRole('button', { name: 'Deny' }).waitFor();
  await page.getByText('ada', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Sign in with another account' }).click();
  await page.getByLabel('User name').fill('bob');
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByText('bob', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Deny' }).click();
  await page.getByText('The client goes on.').waitFor();
  assert.is(new URL(page.url()).searchParams.get('error'), 'access_denied');
});

inConsole('the console lists the own grants, and ends one', async () => {
  const { access_token: token } = await gateway.oauth.signIn(
    clientId,
    { username: 'ada' },
    { redirect_uri: redirectUri },
  );
  const { page } = await browser.open();
  page.setDefaultTimeout(20_000);
  await page.goto(`${gateway.url}/console/grants`);
  await signIn(page, 'ada');
  await page.getByRole('heading', { name: 'Grants' }).waitFor();
  const ends = page.getByRole('button', { name: 'End the grant of Spec client' });
  await ends.first().waitFor();
  assert.equal(await axeFindings(page), []);
  for (let left = await ends.count(); left > 0; left -= 1) {
    await ends.first().click();
    await page.getByRole('button', { name: 'End the grant', exact: true }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await becomes(() => ends.count(), left - 1);
  }
  await page.getByText('No client has a grant.').waitFor();
  await becomes(() => gateway.oauth.use(token), 401);
});

inBrowser('the pages for the code of a command pass axe, and sign it in', async () => {
  const { page } = await browser.open();
  page.setDefaultTimeout(20_000);
  const asked = await fetch(`${gateway.url}/oauth/device_authorization`, {
    method: 'POST',
    body: new URLSearchParams({ client_id: 'stagedoor-cli', scope: 'tools:call' }),
  });
  const { user_code: code, device_code: device } = Object(await asked.json());
  await page.context().clearCookies();
  await page.goto(`${gateway.url}/oauth/device`);
  assert.equal(await axeFindings(page), []);
  await page.getByLabel('Code').fill('wrong');
  await page.getByRole('button', { name: 'Next' }).click();
  await page.getByRole('alert').waitFor();
  assert.equal(await axeFindings(page), []);
  await page.getByLabel('Code').fill(code);
  await page.getByRole('button', { name: 'Next' }).click();
  await page.getByLabel('User name').fill('ada');
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByText(code, { exact: true }).waitFor();
  assert.equal(await axeFindings(page), []);
  await page.getByRole('button', { name: 'Allow' }).click();
  await page.getByText('Go back to the terminal').waitFor();
  assert.equal(await axeFindings(page), []);
  const form = { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code: device };
  const { status } = await gateway.oauth.token({ ...form, client_id: 'stagedoor-cli' });
  assert.is(status, 200);
});

inBrowser('pages of faults pass axe, and say what to do', async () => {
  const { page } = watched;
  const broken = new URL(await address(newProof()));
  broken.searchParams.set('redirect_uri', 'https://evil.example/');
  for (const place of [broken.href, `${gateway.url}/oauth/interaction/none`]) {
    const response = await page.goto(place);
    assert.ok((response?.status() ?? 0) >= 400);
    assert.equal(await axeFindings(page), []);
    assert.match(String(await page.locator('main').textContent()), /\w+ .*\./);
  }
});

inBrowser('breaks no policy of its own', () => {
  const faults = watched.complaints.filter(
    (line) => !/status of 4\d\d/.test(line) && !line.includes('favicon'),
  );
  assert.equal(faults, []);
});

test.run();

async function address(proof: ReturnType<typeof newProof>): Promise<string> {
  return (await gateway.oauth.authorizationUrl(clientId, proof, { redirect_uri: redirectUri })).href;
}
