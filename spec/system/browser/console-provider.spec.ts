// The login page of the console with an identity provider, in a browser: the button leads through the provider into the console.

import { pino } from 'pino';
import * as assert from 'uvu/assert';
import { loadConfig } from '../../../src/config/config.ts';
import { startServer } from '../../../src/server/server.ts';
import { axeFindings, launchBrowser } from '../../helpers/browsers/browser.ts';
import { canUseConsole, NO_CONSOLE, signIn } from '../../helpers/browsers/console.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { answerOf, startCompanyProvider } from '../../helpers/identity/company-provider.ts';
import { PASSWORD } from '../../helpers/programs/mcp-program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the console with a provider', { timeoutMs: 180_000 });
const inConsole = test.needs(canUseConsole, NO_CONSOLE);
const folder = folderOfAll(test);

inConsole('signs in with the account of the company; passwords are behind "Other ways"', async () => {
  const provider = await startCompanyProvider();
  provider.users.set('s-1', { preferred_username: 'eve', groups: ['staff'] });
  const env = {
    ...{
      GATEWAY_ADMIN_PASSWORD: PASSWORD,
      GATEWAY_DATABASE_URL: 'memory://',
      GATEWAY_AUTH_PASSWORDS: 'false',
    },
    GATEWAY_AUTH_PROVIDERS: JSON.stringify([provider.setting({ roles: { staff: { role: 'user' } } })]),
  };
  const flags = { port: '0', host: '127.0.0.1', 'grace-seconds': '1' };
  const server = await startServer(loadConfig({ cwd: folder(), env, flags }), {
    log: pino({ level: 'silent' }),
  });
  const browser = await launchBrowser();
  try {
    const { page } = await browser.open();
    page.setDefaultTimeout(60_000);
    const [url = ''] = server.urls;
    await page.goto(`${url}/console`);
    const link = page.getByRole('link', { name: 'Sign in with Example Corp' });
    await link.waitFor();
    assert.is(await page.getByLabel('User name').isVisible(), false);
    assert.equal(await axeFindings(page), []);
    // The page of the provider asks nothing that a spec could type: its answer is made as for the scripted browser.
    const begun = await page.request.get(String(await link.getAttribute('href')), { maxRedirects: 0 });
    const answer = await answerOf(provider, new URL(String(begun.headers().location)), 's-1');
    await page.goto(String(answer));
    await page.getByRole('navigation', { name: 'Pages' }).waitFor({ state: 'attached' });
    const names = (await page.context().cookies()).map(({ name }) => name.replace(/_\d+$/, ''));
    for (const name of ['stagedoor_session', 'stagedoor_sign_in'])
      assert.ok(names.includes(name), names.join());
    // In another browser the way in for the admin is there.
    await page.context().clearCookies();
    await page.goto(`${url}/console`);
    await page.getByText('Other ways').click();
    await signIn(page);
    // So it is at the pages of the sign-in, which work without script.
    await page.context().clearCookies();
    await page.goto(`${url}/connections`);
    assert.is(await page.getByLabel('User name').isVisible(), false);
    assert.equal(await axeFindings(page), []);
    await page.getByText('Other ways').click();
    assert.equal(await axeFindings(page), []);
    await page.getByLabel('User name').fill('admin');
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('heading', { name: 'Connected accounts' }).waitFor();
  } finally {
    await browser.close();
    await server.close();
    await provider.close();
  }
});

test.run();
