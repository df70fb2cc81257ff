// A gateway that takes no passwords: users sign in at an identity provider, and `admin` is the way in when that fails.

import { pino } from 'pino';
import * as assert from 'uvu/assert';
import { loadConfig } from '../../src/config/config.ts';
import { ConfigError } from '../../src/config/config-error.ts';
import { startServer } from '../../src/server/server.ts';
import type { Json } from '../fixtures/wire.ts';
import { newProof, pageOf, ScriptedBrowser, textOf } from '../helpers/browsers/scripted-browser.ts';
import { folderOfAll } from '../helpers/folder.ts';
import { PASSWORD } from '../helpers/http/accounts.ts';
import { lineSink } from '../helpers/http/app.ts';
import { signInAt, startCompanyProvider } from '../helpers/identity/company-provider.ts';
import { OAuthCaller } from '../helpers/identity/oauth-caller.ts';
import { rejects } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('a gateway without passwords', { timeoutMs: 240_000 });
const folder = folderOfAll(test);

async function start(providers: readonly object[], hasPasswords: boolean, port = '0') {
  const env = {
    ...{ GATEWAY_ADMIN_PASSWORD: PASSWORD, GATEWAY_DATABASE_URL: 'sqlite:///off.db' },
    GATEWAY_AUTH_PROVIDERS: JSON.stringify(providers),
    GATEWAY_AUTH_PASSWORDS: String(hasPasswords),
  };
  const config = loadConfig({ cwd: folder(), env, flags: { port, host: '127.0.0.1', 'grace-seconds': '1' } });
  const logged: Json[] = [];
  const server = await startServer(config, { log: pino({ level: 'warn' }, lineSink(logged)) });
  const [url = ''] = server.urls;
  const ask = async (method: string, path: string, token = '', body?: object) => {
    const response = await fetch(url + path, {
      method,
      headers: {
        'content-type': 'application/json',
        ...(token !== '' && { authorization: `Bearer ${token}` }),
      },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await response.text();
    return { status: response.status, body: Object(text === '' ? {} : JSON.parse(text)) };
  };
  const login = (username: string) => ask('POST', '/auth/login', '', { username, password: PASSWORD });
  return { url, oauth: new OAuthCaller(url), logged, ask, login, close: () => server.close() };
}

test('is refused at the start without a provider', async () => {
  await rejects(start([], false), ConfigError, /auth\.passwords: false needs auth\.providers/);
});

test('ends what passwords gave, except for admin, whose login is loud and who stays', async () => {
  const provider = await startCompanyProvider();
  provider.users.set('s-1', { preferred_username: 'eve', groups: ['staff'] });
  const setting = provider.setting({ roles: { staff: { role: 'admin' } } });
  const before = await start([setting], true);
  const admin = String((await before.login('admin')).body.access_token);
  const ada = { username: 'ada', email: 'ada@localhost', password: PASSWORD };
  assert.is((await before.ask('POST', '/auth/users', admin, ada)).status, 201);
  const token = String((await before.login('ada')).body.access_token);
  assert.is((await before.ask('GET', '/auth/me', token)).status, 200);
  const clientId = await before.oauth.client();
  const browser = new ScriptedBrowser(before.url);
  const address = async () => before.oauth.authorizationUrl(clientId, newProof());
  await browser.open(await address());
  assert.match(
    textOf(pageOf(await browser.press('Sign in', { username: 'ada', password: PASSWORD }))),
    'as ada',
  );
  await before.close();

  const { ask, login, logged, close } = await start([setting], false, new URL(before.url).port);
  assert.is((await ask('GET', '/auth/me', token)).status, 401);
  for (const name of ['ada', 'unknown', 'eve']) {
    const { status, body } = await login(name);
    assert.equal([status, body.error_code], [403, 'PASSWORDS_OFF'], name);
  }
  // The sign-in of the browser is over as well, and the page says which way is left.
  const page = pageOf(await browser.open(await address())).html;
  assert.match(page, />Sign in with Example Corp<.*<details><summary>Other ways<.*name="password"/s);
  const refused = pageOf(await browser.press('Sign in', { username: 'ada', password: PASSWORD }));
  assert.equal([refused.status, textOf(refused).includes('takes no passwords')], [403, true]);
  assert.match(refused.html, '<details open>');
  assert.match(textOf(await signInAt(provider, browser, 's-1')), 'It acts as eve');
  assert.match(textOf(pageOf(await browser.open(await address()))), 'It acts as eve');

  assert.is((await ask('GET', '/auth/me', admin)).status, 200);
  const { status, body } = await login('admin');
  assert.is(status, 200);
  assert.match(JSON.stringify(logged), 'admin logged in with a password, while auth.passwords is false');
  const now = String(body.access_token);
  const entries = await ask('GET', '/gateway/audit', now);
  assert.match(JSON.stringify(entries.body), 'a password, while auth.passwords is false');
  const [user] = (await ask('GET', '/auth/users', now)).body.filter(
    (each: Json) => each.username === 'admin',
  );
  for (const change of [
    { role: 'user' },
    { is_active: false },
    { templates: ['tools'] },
    { scopes: ['admin'] },
  ])
    assert.is((await ask('PATCH', `/auth/users/${user.id}`, now, change)).body.error_code, 'LAST_ADMIN');
  assert.is((await ask('DELETE', `/auth/users/${user.id}`, now)).body.error_code, 'LAST_ADMIN');
  assert.is((await ask('PATCH', `/auth/users/${user.id}`, now, { email: 'a@localhost' })).status, 200);
  await close();
  await provider.close();
});

test.run();
