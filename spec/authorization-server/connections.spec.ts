// The pages at which users connect their accounts at backends, with a real authorization server behind them.

import * as assert from 'uvu/assert';
import { SHARED } from '../../src/domain/instances/account-connection.ts';
import { systemClock } from '../../src/domain/time/clock.ts';
import { createGateway } from '../../src/gateway/gateway.ts';
import { MemoryStore } from '../../src/persistence/memory/memory-store.ts';
import type { Connected, ConnectLinks } from '../../src/vault/connect-links.ts';
import type { AccountTarget } from '../../src/vault/oauth-backends.ts';
import type { Vault } from '../../src/vault/vault.ts';
import { type OAuthBackend, startOAuthBackend } from '../fixtures/oauth-backend.ts';
import { appFor } from '../helpers/http/app.ts';
import { Browser, type BrowserPage, startSignIn } from '../helpers/identity/sign-in.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('pages of connections');
let backend: OAuthBackend;
let vault: Vault;
let links: ConnectLinks;
let target: AccountTarget;
let passedMs = 0;
let isPublic = false;
const clock = { ...systemClock, wall: () => systemClock.wall() + passedMs };
const app = appFor(
  test,
  async () => {
    passedMs = 0;
    isPublic = false;
    backend = await startOAuthBackend();
    backend.account = 'ada at work';
    target = { template: 'notes', id: 'one', endpoint: backend.url, auth: { who: 'user' } };
    const store = new MemoryStore();
    let url = '';
    const address = {
      get isPublic() {
        return isPublic;
      },
      get issuer() {
        return url;
      },
    };
    const gateway = await createGateway({ store, clock, backendAccounts: { address } });
    const auth = { mode: 'oauth', who: 'user' } as const;
    await gateway.register('notes', { id: 'one', endpoint: backend.url, auth }, { waitMs: 10_000 });
    const accounts = gateway.internals.backendAccounts as NonNullable<
      typeof gateway.internals.backendAccounts
    >;
    vault = await accounts.open();
    links = accounts.connectLinks;
    const fixture = await startSignIn({ store, clock, gateway });
    url = fixture.url;
    return fixture;
  },
  'each',
);
test.after.each(() => backend.close());

const idOf = async (username: string) => (await app.store.accounts.findUserByName(username))?.id ?? '';
const visitOf = async (username: string) =>
  (await links.linkFor({ template: 'notes', instanceId: 'one', owner: await idOf(username) })).url;
const provider = () => new URL(backend.url).host;

/** Signs in at the address, and goes on; what the provider sends back. */
async function begun(browser: Browser, url: string, username = 'ada'): Promise<URL> {
  const page = await browser.signIn(await browser.open(url), username);
  const there = await browser.submit(page, `Continue to ${provider()}`);
  assert.is(new URL(there.url).host, provider());
  const answer = await fetch(there.url, { redirect: 'manual' });
  return new URL(answer.headers.get('location') ?? '');
}

const titleOf = ({ status, text }: BrowserPage) => `${status} ${/<h1>(.*?)<\/h1>/.exec(text)?.[1]}`;

test('a user signs in, sees what is connected for whom, and connects it', async () => {
  const browser = new Browser(app.url);
  const told: Connected[] = [];
  links.connected$.subscribe((connected) => told.push(connected));
  const url = await visitOf('ada');
  const form = await browser.open(url);
  assert.is(titleOf(form), '200 Sign in');
  assert.match(form.text, 'notes&#34; needs your account there');
  const page = await browser.signIn(form);
  assert.is(titleOf(page), '200 Connect an account at notes?');
  for (const said of [
    `notes, at ${new URL(backend.url).origin}`,
    provider(),
    'ada alone',
    '<strong>ada</strong>',
  ])
    assert.match(page.text, said);
  assert.not.match(page.text, '<script');
  const policy = page.headers.get('content-security-policy') ?? '';
  assert.match(policy, "default-src 'none'");
  assert.match(policy, `form-action 'self' ${new URL(backend.url).origin};`);
  const back = await begun(browser, url);
  assert.is(back.pathname, '/connections/callback');
  const done = await browser.open(back.href);
  assert.equal(
    [titleOf(done), new URL(done.url).pathname],
    ['200 The account is connected', '/connections/done'],
  );
  const owner = await idOf('ada');
  assert.is((await vault.find(target, owner))?.state, 'connected');
  assert.equal(
    told.map(({ elicitationIds, ...goal }) => [goal, elicitationIds.length]),
    [[{ template: 'notes', instanceId: 'one', owner }, 1]],
  );
  assert.is(titleOf(await browser.open(back.href)), '400 The account is not connected'); // used
});

test('an address is for its user alone, and only an admin connects for all', async () => {
  const url = await visitOf('ada');
  await app.createUser('bob');
  const bob = new Browser(app.url);
  const refused = await bob.signIn(await bob.open(url), 'bob');
  assert.is(titleOf(refused), '403 This address is for another user');
  assert.not.match(refused.text, 'Continue to');
  const again = await bob.submit(refused, 'Sign in with another account');
  assert.is(titleOf(await bob.signIn(again, 'ada')), '200 Connect an account at notes?');
  const shared = await links.linkFor({ template: 'notes', instanceId: 'one', owner: SHARED });
  assert.is(titleOf(await bob.open(shared.url)), '403 This address is for another user');
  const admin = new Browser(app.url);
  const page = await admin.signIn(await admin.open(shared.url), 'admin');
  assert.match(page.text, 'all callers of this server');
  assert.is(titleOf(await admin.open(url)), '403 This address is for another user');
});

test('the answer of the provider counts in the browser that began, once and for ten minutes', async () => {
  const browser = new Browser(app.url);
  const back = await begun(browser, await visitOf('ada'));
  const other = new Browser(app.url);
  assert.is(titleOf(await other.open(back.href)), '400 The account is not connected');
  await other.signIn(await other.open('/connections'), 'ada');
  assert.is(titleOf(await other.open(back.href)), '400 The account is not connected');
  assert.is(await vault.find(target, await idOf('ada')), undefined);
  assert.is(titleOf(await browser.open(back.href)), '200 The account is connected');
  const late = await begun(browser, await visitOf('ada'));
  passedMs = 11 * 60_000;
  assert.is(titleOf(await browser.open(late.href)), '400 The account is not connected');
});

test('the answer of the provider counts only for a user who may still connect the account', async () => {
  const ada = await idOf('ada');
  const browser = new Browser(app.url);
  const own = await begun(browser, await visitOf('ada'));
  await app.auth.accounts.changeUser(ada, { templates: ['other'] });
  const refused = await browser.open(own.href);
  assert.equal(
    [titleOf(refused), await vault.find(target, ada)],
    ['403 The account is not connected', undefined],
  );
  await app.auth.accounts.changeUser(ada, { templates: null });
  assert.is(titleOf(await browser.open(own.href)), '400 The account is not connected'); // used up

  const goal = { template: 'notes', instanceId: 'one', owner: SHARED };
  const second = await app.createUser('second', 'admin');
  const admin = new Browser(app.url);
  const shared = await begun(admin, (await links.linkFor(goal)).url, 'second');
  await app.auth.accounts.changeUser(second.id, { scopes: ['tools:call'] });
  assert.is(titleOf(await admin.open(shared.href)), '403 The account is not connected');
  assert.is(await vault.find(target, SHARED), undefined);
});

test('forms of other sites and of other sign-ins change nothing', async () => {
  const url = await visitOf('ada');
  const browser = new Browser(app.url);
  await browser.signIn(await browser.open(url));
  const cookie = browser.cookiesFor('/connections');
  const send = (origin: string) =>
    fetch(`${url}/connect`, {
      ...{ method: 'POST', redirect: 'manual', headers: { cookie, origin } },
      body: new URLSearchParams({ form_token: 'wrong' }),
    });
  assert.is((await send('https://elsewhere.example')).status, 403);
  const wrong = await send(app.url);
  assert.equal([wrong.status, wrong.headers.get('location')], [303, new URL(url).pathname]);
  assert.is(backend.asked, undefined);
});

test('addresses that are unknown, over or of a removed server end at a page', async () => {
  const browser = new Browser(app.url);
  const gone = '404 This address is no longer valid';
  assert.is(titleOf(await browser.open(`/connections/${'a'.repeat(43)}`)), gone);
  assert.is(titleOf(await browser.open('/connections/short')), gone);
  assert.is(titleOf(await browser.open('/connections/a/b/c')), '404 There is no such page');
  const owner = await idOf('ada');
  const removed = await links.linkFor({ template: 'gone', instanceId: 'one', owner });
  assert.is(titleOf(await browser.open(removed.url)), gone);
  const url = await visitOf('ada');
  passedMs = 11 * 60_000;
  assert.is(titleOf(await browser.open(url)), gone);
});

test('a user who denies, and a provider that is down, end at a page that says so', async () => {
  const browser = new Browser(app.url);
  backend.account = undefined;
  const denied = await browser.open((await begun(browser, await visitOf('ada'))).href);
  assert.is(titleOf(denied), '400 The account is not connected');
  assert.match(denied.text, 'denied at the provider');
  backend.account = 'ada at work';
  backend.isDown = true;
  const down = await browser.open((await begun(browser, await visitOf('ada'))).href);
  assert.is(titleOf(down), '502 The provider cannot be used now');
});

test('a user lists and ends the own connections, and no others', async () => {
  const browser = new Browser(app.url);
  assert.is(titleOf(await browser.open('/connections')), '200 Sign in');
  await browser.open((await begun(browser, await visitOf('ada'))).href);
  const list = await browser.open('/connections');
  assert.match(list.text, backend.url);
  assert.match(list.text, '<strong>notes</strong>');
  const [{ id = '' } = {}] = await vault.list();
  await app.createUser('bob');
  const bob = new Browser(app.url);
  const empty = await bob.signIn(await bob.open('/connections'), 'bob');
  assert.match(empty.text, 'None yet');
  const formToken = /name="form_token" value="([^"]+)"/.exec(empty.text)?.[1] ?? '';
  await bob.open('/connections/disconnect', new URLSearchParams({ form_token: formToken, connection: id }));
  assert.is((await vault.list()).length, 1);
  const ended = await browser.submit(list, 'Disconnect');
  assert.match(ended.text, 'None yet');
  assert.equal(await vault.list(), []);
  const entries = await app.auth.audit.list({ limit: 10 });
  assert.equal(
    entries
      .filter(({ action }) => action.endsWith('/connections'))
      .map(({ action, actorName }) => [action, actorName]),
    [
      ['DELETE /connections', 'ada'],
      ['POST /connections', 'ada'],
    ],
  );
});

test('the list names only templates that the user may use', async () => {
  const auth = { mode: 'oauth', who: 'user' } as const;
  await app.gateway.register('project-x', { id: 'two', endpoint: backend.url, auth });
  await app.auth.accounts.changeUser(await idOf('ada'), { templates: ['notes'] });
  const browser = new Browser(app.url);
  await browser.open((await begun(browser, await visitOf('ada'))).href);
  const { text } = await browser.open('/connections');
  assert.match(text, '<strong>notes</strong>');
  assert.not.match(text, 'project-x');
});

test('the API gives the address to the user, and none to an API key or to another for all', async () => {
  const asked = async (credentials: Readonly<Record<string, string>>, instance = 'one') => {
    const response = await fetch(`${app.url}/gateway/connections`, {
      method: 'POST',
      headers: { ...credentials, 'Content-Type': 'application/json' },
      body: JSON.stringify({ template: 'notes', instance_id: instance }),
    });
    return { status: response.status, body: Object(await response.json()) };
  };
  const ada = await app.login('ada');
  const made = await asked(ada);
  assert.is(made.status, 201);
  const browser = new Browser(app.url);
  await browser.open((await begun(browser, made.body.url)).href);
  assert.is((await vault.find(target, await idOf('ada')))?.state, 'connected');
  const key = await app.key(['tools:call']);
  assert.match((await asked(key)).body.detail, 'An API key has no account at servers');
  assert.equal([(await asked(key)).status, (await asked(ada, 'two')).status], [403, 404]);
});

test('the document of the gateway is served only where other servers can fetch it', async () => {
  const document = `${app.url}/connections/client.json`;
  assert.is((await fetch(document)).status, 404);
  isPublic = true;
  const { client_id, redirect_uris } = Object(await (await fetch(document)).json());
  assert.equal([client_id, redirect_uris], [document, [`${app.url}/connections/callback`]]);
});

test('a user opens addresses 60 times in a minute: each asks the server and its provider; others are not affected', async () => {
  await app.createUser('bob');
  const [ada, bob] = [new Browser(app.url), new Browser(app.url)];
  const [url, other] = [await visitOf('ada'), await visitOf('bob')];
  await ada.signIn(await ada.open(url));
  const statuses = new Set<number>();
  for (let more = 59; more > 0; more -= 1) statuses.add((await ada.open(url)).status);
  assert.equal([...statuses], [200]);
  assert.is(titleOf(await ada.open(url)), '429 Too many requests');
  assert.is((await bob.signIn(await bob.open(other), 'bob')).status, 200);
});

test.run();
