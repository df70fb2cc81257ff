// A server that is used with the account of each user, from the first call of a client to its result: official clients of both lines, an API
// key and REST, and a browser that connects the account. What counts is what the server saw.

import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
} from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  ElicitationCompleteNotificationSchema,
  ToolListChangedNotificationSchema,
  UrlElicitationRequiredError,
} from '@modelcontextprotocol/sdk/types.js';
import * as assert from 'uvu/assert';
import { type OAuthBackend, startOAuthBackend } from '../fixtures/oauth-backend.ts';
import { becomes, eventually } from '../helpers/eventually.ts';
import type { Credentials } from '../helpers/http/accounts.ts';
import { appFor } from '../helpers/http/app.ts';
import {
  Browser,
  begin,
  REDIRECT,
  register as registerClient,
  startWithConnections,
  tokensOf,
} from '../helpers/identity/sign-in.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('own accounts at a backend', { timeoutMs: 60_000 });
let backend: OAuthBackend;
const closing: (() => Promise<unknown>)[] = [];
const app = appFor(
  test,
  async () => {
    backend = await startOAuthBackend();
    const { fixture, gateway } = await startWithConnections();
    const auth = { mode: 'oauth', who: 'user' } as const;
    await gateway.register('notes', { id: 'one', endpoint: backend.url, auth }, { waitMs: 10_000 });
    await fixture.createUser('bob');
    return fixture;
  },
  'each',
);
test.after.each(async () => {
  for (const close of closing.splice(0)) await close().catch(() => undefined);
  await backend.close();
});

/** An access token of an MCP client that this user has allowed. */
async function tokenOf(username: string): Promise<string> {
  return (await tokensOf(app.url, await registerClient(app.url), { username })).access_token;
}

/** Opens the address as this user, and connects this account there. */
async function connect(url: string, username: string, account = `${username} at work`): Promise<void> {
  const browser = new Browser(app.url);
  const page = await browser.signIn(await browser.open(url), username);
  const there = await browser.submit(page, `Continue to ${new URL(backend.url).host}`);
  backend.account = account;
  const back = await fetch(there.url, { redirect: 'manual' });
  const done = await browser.open(back.headers.get('location') ?? '');
  assert.match(done.text, 'The account is connected');
}

async function legacyClient(token: string, path = '/mcp/notes', elicitation: object = { url: {} }) {
  const client = new Client({ name: 'spec', version: '1' }, { capabilities: { elicitation } as never });
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(app.url + path), { requestInit }));
  closing.push(() => client.close());
  return client;
}

async function modernClient(token: string, opens?: (url: string) => unknown, path = '/mcp/notes') {
  const capabilities = opens === undefined ? {} : { elicitation: { url: {} } };
  const client = new ModernClient({ name: 'spec', version: '1' }, {
    capabilities,
    versionNegotiation: { mode: { pin: '2026-07-28' } },
  } as never);
  if (opens !== undefined)
    client.setRequestHandler('elicitation/create', (async ({ params }: never) => {
      opens(Object(params).url);
      return { action: 'accept' };
    }) as never);
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await client.connect(new ModernTransport(new URL(app.url + path), { requestInit }));
  closing.push(() => client.close());
  return client;
}

const WHOAMI = { name: 'whoami', arguments: {} };
const textOf = (result: unknown) => String(Object(Object(result).content?.[0]).text);
const accounts = () => [...new Set(backend.seen.map(({ account }) => account))];

test('a modern client is asked to open the address, and its call goes on after connecting', async () => {
  const opened: string[] = [];
  let connecting: Promise<void> | undefined;
  const client = await modernClient(await tokenOf('ada'), (url) => {
    opened.push(url);
    connecting ??= connect(url, 'ada');
  });
  assert.equal(
    (await client.listTools()).tools.map(({ name }) => name),
    ['connect'],
  );
  assert.is(textOf(await client.callTool(WHOAMI)), 'ada at work');
  await connecting;
  assert.is(opened.length, 1);
  assert.match(opened[0] ?? '', /\/connections\/[\w-]{43}$/);
  assert.is(textOf(await client.callTool(WHOAMI)), 'ada at work');
  assert.is(opened.length, 1);
  assert.equal(
    (await client.listTools()).tools.map(({ name }) => name),
    ['whoami', 'write'],
  );
  assert.equal(accounts(), ['ada at work']);
});

test('a legacy client gets the error with the address, and hears when the account is connected', async () => {
  const client = await legacyClient(await tokenOf('ada'));
  const heard: string[] = [];
  client.setNotificationHandler(ElicitationCompleteNotificationSchema, ({ params }) => {
    heard.push(params.elicitationId);
  });
  let changes = 0;
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
    changes += 1;
  });
  const other = await legacyClient(await tokenOf('bob'));
  let others = 0;
  other.setNotificationHandler(ToolListChangedNotificationSchema, () => {
    others += 1;
  });
  assert.equal(
    (await client.listTools()).tools.map(({ name }) => name),
    ['connect'],
  );
  const refused = await client.callTool(WHOAMI).catch((error: unknown) => error);
  assert.instance(refused, UrlElicitationRequiredError);
  const [elicitation] = (refused as UrlElicitationRequiredError).elicitations;
  await connect(String(elicitation?.url), 'ada');
  await eventually(
    async () => [heard[0], changes > 0],
    ([id, isTold]) => id !== undefined && isTold === true,
  );
  assert.equal(heard, [elicitation?.elicitationId]);
  assert.is(textOf(await client.callTool(WHOAMI)), 'ada at work');
  assert.equal(
    (await client.listTools()).tools.map(({ name }) => name),
    ['whoami', 'write'],
  );
  assert.is(others, 0);
});

test('clients that open no address are told where to go, also with all templates', async () => {
  const token = await tokenOf('ada');
  for (const client of [await legacyClient(token, '/mcp/notes', {}), await modernClient(token)]) {
    const told = await client.callTool(WHOAMI);
    assert.is(told.isError, true);
    assert.match(textOf(told), /Open http:\/\/127\.0\.0\.1:\d+\/connections\/[\w-]{43} in a browser/);
  }
  const all = await tokensOf(app.url, await registerClient(app.url), { resource: `${app.url}/mcp` });
  for (const client of [
    await legacyClient(all.access_token, '/mcp', {}),
    await modernClient(all.access_token, undefined, '/mcp'),
  ]) {
    assert.equal(
      (await client.listTools()).tools.map(({ name }) => name),
      ['notes__connect'],
    );
    const said = textOf(await client.callTool({ name: 'notes__connect', arguments: {} }));
    assert.match(said, /\/connections\/[\w-]{43}/);
  }
});

test('the consent page names the accounts with which a client will act, and no others', async () => {
  const { url } = (await (
    await fetch(`${app.url}/gateway/connections`, {
      method: 'POST',
      headers: { authorization: `Bearer ${await tokenOf('ada')}`, 'content-type': 'application/json' },
      body: JSON.stringify({ template: 'notes', instance_id: 'one' }),
    })
  ).json()) as { readonly url: string };
  const consentOf = async (username: string) => {
    const { browser, page } = await begin(app.url, await registerClient(app.url));
    return (await browser.signIn(page, username)).text;
  };
  assert.not.match(await consentOf('ada'), 'Your accounts');
  await connect(url, 'ada');
  assert.match(await consentOf('ada'), /Your accounts<\/dt><dd>those that you have connected for notes</);
  assert.not.match(await consentOf('bob'), 'Your accounts');
});

test('the consent page of a template or a view names the accounts of its own templates', async () => {
  const auth = { mode: 'oauth', who: 'user' } as const;
  await app.gateway.register('plans', { id: 'one', endpoint: backend.url, auth }, { waitMs: 10_000 });
  const near = { id: 'one', endpoint: `${backend.url}-2`, auth };
  await app.gateway.register('near', near, { waitMs: 0, mayBeUnhealthy: true });
  await app.gateway.views.put({ id: 'work', from: [{ template: 'plans' }, { template: 'near' }] });
  const bearer = { authorization: `Bearer ${await tokenOf('ada')}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ template: 'notes', instance_id: 'one' });
  const asked = await fetch(`${app.url}/gateway/connections`, { method: 'POST', headers: bearer, body });
  await connect(String(Object(await asked.json()).url), 'ada');
  const accountsOn = async (name: string) => {
    const resource = `${app.url}/mcp/${name}`;
    const { browser, page } = await begin(app.url, await registerClient(app.url), { resource });
    return /Your accounts<\/dt><dd>those that you have connected for ([^<]*)</.exec(
      (await browser.signIn(page, 'ada')).text,
    )?.[1];
  };
  assert.is(await accountsOn('notes'), 'notes');
  assert.is(await accountsOn('work'), 'plans');
  assert.is(await accountsOn('other'), undefined);
});

test('REST says where to connect, and an API key what to do', async () => {
  const bearer = { authorization: `Bearer ${await tokenOf('ada')}` };
  const call = (headers: Record<string, string>) =>
    app.ask('POST', '/mcp/notes/tools/call', { headers, body: WHOAMI });
  const asked = await call(bearer);
  assert.is(asked.outcome, '403 CONNECTION_REQUIRED');
  assert.match(String(asked.body.connect_url), /\/connections\/[\w-]{43}$/);
  const key = await app.key(['tools:call', 'gateway:read']);
  const refused = await call(key);
  assert.equal([refused.outcome, refused.body.connect_url], ['403 CONNECTION_REQUIRED', undefined]);
  assert.match(String(refused.body.detail), 'instead of using an API key');
  await connect(String(asked.body.connect_url), 'ada');
  assert.is(textOf((await call(bearer)).body), 'ada at work');
  assert.is((await call(key)).outcome, '403 CONNECTION_REQUIRED');
  assert.equal(accounts(), ['ada at work']);
});

test('two users never get the account of each other, in calls and lists, with all their clients', async () => {
  const users = await Promise.all(
    ['ada', 'bob'].map(async (username) => {
      const token = await tokenOf(username);
      const asked = await app.ask('POST', '/mcp/notes/tools/call', {
        headers: { authorization: `Bearer ${token}` },
        body: WHOAMI,
      });
      return { username, token, url: String(asked.body.connect_url) };
    }),
  );
  for (const { url, username } of users) await connect(url, username);
  const rounds = Array.from({ length: 6 }, async (_, index) => {
    const { token, username } = users[index % 2] ?? { token: '', username: '' };
    const clients = [await legacyClient(token), await modernClient(token)];
    for (const client of clients)
      for (let n = 0; n < 3; n += 1) {
        assert.is(textOf(await client.callTool(WHOAMI)), `${username} at work`);
        await client.listTools();
      }
  });
  await Promise.all(rounds);
  const tokens = new Map<string, Set<string>>();
  for (const { token, account } of backend.seen)
    tokens.set(account, (tokens.get(account) ?? new Set()).add(token));
  assert.equal([...tokens.keys()].sort(), ['ada at work', 'bob at work']);
  for (const used of tokens.values()) assert.is(used.size, 1);
  // No token of a client of the gateway reached the server.
  for (const { token } of backend.seen) assert.not.ok(users.some((user) => user.token === token));
});

async function listed(path: string): Promise<{ id: string; username: string }[]> {
  return JSON.parse(await (await fetch(app.url + path, { headers: { ...app.admin } })).text());
}

test('the accounts of a user who is deleted are revoked at their server', async () => {
  for (const username of ['ada', 'bob']) {
    const headers = { authorization: `Bearer ${await tokenOf(username)}` };
    const asked = await app.ask('POST', '/mcp/notes/tools/call', { headers, body: WHOAMI });
    await connect(String(asked.body.connect_url), username);
  }
  const users = await listed('/auth/users');
  const remove = (username: string) => {
    const { id = '' } = users.find((user) => user.username === username) ?? {};
    return app.as(app.admin, 'DELETE', `/auth/users/${id}`);
  };
  assert.is((await remove('admin')).outcome, '400 LAST_ADMIN');
  assert.is((await remove('bob')).status, 204);
  await becomes(() => backend.revocations, 1);
  const left = await listed('/gateway/connections');
  assert.equal(
    left.map(({ username }) => username),
    ['ada'],
  );
});

test('an account that was connected by the client of an admin is revoked with the secret of that client', async () => {
  const redirect_uris = [`${app.url}/connections/callback`];
  const client = { client_id: 'given', client_secret: 'hush hush', redirect_uris };
  await backend.close();
  backend = await startOAuthBackend({ clients: [client], registersClients: false });
  const { client_id, client_secret } = client;
  const auth = { mode: 'oauth', who: 'user', client_id, client_secret };
  const body = { template_name: 'given', instance: { id: 'given-1', endpoint: backend.url, auth } };
  assert.is((await app.as(app.admin, 'POST', '/gateway/register', { body })).status, 201);
  const headers = { authorization: `Bearer ${await tokenOf('bob')}` };
  const call = () => app.ask('POST', '/mcp/given/tools/call', { headers, body: WHOAMI });
  const asked = await eventually(call, ({ body: { connect_url: address } }) => address !== undefined);
  await connect(String(asked.body.connect_url), 'bob');
  const [connection] = await listed('/gateway/connections');
  const ended = await app.as(app.admin, 'DELETE', `/gateway/connections/${connection?.id}`);
  assert.is(ended.status, 204);
  await becomes(() => backend.revocations, 1);
});

test('a client of another template cannot use the account of its user by registering the server there', async () => {
  const own = await tokenOf('admin');
  const call = (template: string, token: string) =>
    app.ask('POST', `/mcp/${template}/tools/call`, {
      headers: { authorization: `Bearer ${token}` },
      body: WHOAMI,
    });
  await connect(String((await call('notes', own)).body.connect_url), 'admin');
  const body = {
    name: 'limited',
    redirect_uris: [REDIRECT],
    scopes: ['gateway:write'],
    templates: ['plans'],
  };
  const { body: made } = await app.as(app.admin, 'POST', '/auth/clients', { body });
  const client = { ...made, client_id: String(made.client_id), redirect_uris: [REDIRECT] };
  const { access_token: token } = await tokensOf(app.url, client, {
    ...{ scope: 'tools:call gateway:write', username: 'admin' },
  });
  assert.is((await call('notes', token)).status, 404);
  const register = (credentials: Credentials, who: string) =>
    app.as(credentials, 'POST', '/gateway/register', {
      body: { template_name: 'plans', id: 'one', endpoint: backend.url, auth: { mode: 'oauth', who } },
    });
  const limited = { authorization: `Bearer ${token}` };
  assert.is((await register(limited, 'user')).outcome, '403 INSUFFICIENT_PERMISSIONS');
  assert.is((await call('plans', token)).status, 404);
  assert.is(backend.seen.filter(({ tool }) => tool !== undefined).length, 0);
  // Where an admin has decided that the template uses these accounts, another instance may.
  assert.is((await register(app.admin, 'user')).status, 201);
  assert.is((await register(limited, 'user')).status, 200);
  assert.is((await register(limited, 'shared')).outcome, '403 INSUFFICIENT_PERMISSIONS');
});

test.run();
