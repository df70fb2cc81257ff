// A server that is used with one account for all, before an admin has connected it and after, at each door of the gateway.

import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
} from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as assert from 'uvu/assert';
import type { Scope } from '../../src/domain/accounts/account.ts';
import { databaseUnavailable } from '../../src/domain/errors/gateway-errors.ts';
import { SHARED } from '../../src/domain/instances/account-connection.ts';
import type { Gateway } from '../../src/gateway/gateway.ts';
import type { Store } from '../../src/persistence/store.ts';
import { type OAuthBackend, startOAuthBackend } from '../fixtures/oauth-backend.ts';
import { becomes } from '../helpers/eventually.ts';
import { appFor } from '../helpers/http/app.ts';
import { register as registerClient, startWithConnections, tokensOf } from '../helpers/identity/sign-in.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('the shared account at a backend', { timeoutMs: 60_000 });
let backend: OAuthBackend;
let gateway: Gateway;
let store: Store;
const closing: (() => Promise<unknown>)[] = [];
const app = appFor(
  test,
  async () => {
    backend = await startOAuthBackend();
    const { fixture, ...started } = await startWithConnections();
    ({ gateway, store } = started);
    const auth = { mode: 'oauth', who: 'shared' } as const;
    await gateway.register('mail', { id: 'one', endpoint: backend.url, auth }, { waitMs: 10_000 });
    return fixture;
  },
  'each',
);
test.after.each(async () => {
  for (const close of closing.splice(0)) await close().catch(() => undefined);
  await backend.close();
});

/** As an admin with a browser. */
async function connect(): Promise<void> {
  const vault = await gateway.internals.backendAccounts?.open();
  const target = gateway.internals.backendAccounts?.targetOf('mail', 'one');
  assert.ok(vault && target);
  const url = await vault.begin(target, { owner: SHARED, binding: 'b' });
  const answer = await fetch(url, { redirect: 'manual' });
  await vault.finish(new URL(answer.headers.get('location') ?? '').searchParams, 'b');
  await becomes(async () => {
    const { healthy, reason } = gateway.instance('mail', 'one').snapshot;
    return healthy && reason === null;
  }, true);
}

const WAYS = {
  legacy: (url: URL, requestInit: RequestInit) => {
    const client = new Client({ name: 'spec', version: '1' });
    return { client, begin: () => client.connect(new StreamableHTTPClientTransport(url, { requestInit })) };
  },
  modern: (url: URL, requestInit: RequestInit) => {
    const client = new ModernClient({ name: 'spec', version: '1' }, {
      versionNegotiation: { mode: { pin: '2026-07-28' } },
    } as never);
    return { client, begin: () => client.connect(new ModernTransport(url, { requestInit })) };
  },
};

const ADVICE = /not connected: an admin connects it with "stagedoor connection add mail one"/;

for (const [era, open] of Object.entries(WAYS))
  for (const [path, tool] of [
    ['/mcp/mail', 'whoami'],
    ['/mcp', 'mail__whoami'],
  ] as const)
    test(`a ${era} client at ${path} connects without it, is told what is missing, and works afterwards`, async () => {
      const token = (await tokensOf(app.url, await registerClient(app.url), { username: 'ada' }))
        .access_token;
      const { client, begin } = open(new URL(app.url + path), {
        headers: { authorization: `Bearer ${token}` },
      });
      await begin();
      closing.push(() => client.close());
      const call = () => client.callTool({ name: tool, arguments: {} });
      const said = String(await call().then(JSON.stringify, String));
      assert.match(said.replaceAll('\\"', '"'), ADVICE);
      assert.equal(backend.seen, []);

      backend.account = 'office';
      await connect();
      // With the session from before, too.
      assert.match(JSON.stringify(await call()), 'office');
    });

test('an admin gets the address at which it is connected from an own call, at each door; others do not', async () => {
  for (const [username, expected] of [
    ['admin', /connect it at (http\S+\/connections\/[\w-]{43}) first/],
    ['ada', ADVICE],
  ] as const) {
    const token = (await tokensOf(app.url, await registerClient(app.url), { username })).access_token;
    const headers = { authorization: `Bearer ${token}` };
    const body = { name: 'whoami', arguments: {} };
    const answer = await app.ask('POST', '/mcp/mail/tools/call', { headers, body });
    assert.is(answer.status, 403);
    const url = expected.exec(String(answer.body.detail))?.[1];
    assert.match(String(answer.body.detail), expected);
    assert.is(answer.body.connect_url, url);
    for (const open of Object.values(WAYS)) {
      const { client, begin } = open(new URL(`${app.url}/mcp/mail`), { headers });
      await begin();
      closing.push(() => client.close());
      const said = await client.callTool({ name: 'whoami', arguments: {} }).then(JSON.stringify, String);
      assert.match(String(said).replaceAll('\\"', '"'), url ?? ADVICE);
    }
  }
});

test('while the database does not answer, an own call says what is missing without the address', async () => {
  const token = (await tokensOf(app.url, await registerClient(app.url), { username: 'admin' })).access_token;
  const headers = { authorization: `Bearer ${token}` };
  const call = () =>
    app.ask('POST', '/mcp/mail/tools/call', { headers, body: { name: 'whoami', arguments: {} } });
  await call();
  const { findUsers } = store.accounts;
  Object.assign(store.accounts, { findUsers: () => Promise.reject(databaseUnavailable(new Error('away'))) });
  const { status, body } = await call();
  Object.assign(store.accounts, { findUsers });
  assert.equal([status, body.error_code], [403, 'CONNECTION_REQUIRED']);
  assert.match(String(body.detail), ADVICE);
});

test('REST says what is missing, for a list, too', async () => {
  for (const [method, path, body] of [
    ['POST', '/mcp/mail/tools/call', { name: 'whoami', arguments: {} }],
    ['GET', '/mcp/mail/tools/list', undefined],
  ] as const) {
    const token = (await tokensOf(app.url, await registerClient(app.url), { username: 'ada' })).access_token;
    const headers = { authorization: `Bearer ${token}` };
    const answer = await app.ask(method, path, { headers, body });
    assert.equal([answer.status, answer.body.error_code], [403, 'CONNECTION_REQUIRED']);
    assert.match(String(answer.body.detail), ADVICE);
  }
});

test('a caller of another template cannot use it by registering its server there', async () => {
  backend.account = 'office';
  await connect();
  const auth = { mode: 'oauth', who: 'shared' };
  const key = async (templates: readonly string[], permissions: readonly Scope[]) => {
    const made = await app.auth.accounts.createApiKey({ name: 'limited', permissions, templates });
    return (method: string, path: string, body: object) =>
      app.ask(method, path, { body, headers: { 'x-api-key': made.key } });
  };
  for (const permissions of [['gateway:write', 'tools:call'], ['admin']] as const) {
    const ask = await key(['notes'], permissions);
    const at = { template_name: 'notes', endpoint: backend.url };
    await ask('POST', '/gateway/register', { ...at, id: 'plain' });
    const refused = [
      await ask('POST', '/gateway/register', { ...at, id: 'one', auth }),
      await ask('POST', '/servers', { template_name: 'notes', config: { endpoint: backend.url, auth } }),
      await ask('POST', '/gateway/test', { ...at, auth }),
    ];
    assert.is((await ask('PATCH', '/gateway/templates/notes', { auth })).status, 200);
    refused.push(await ask('POST', '/gateway/register', { ...at, id: 'plain' }));
    assert.equal(
      refused.map(({ outcome }) => outcome),
      refused.map(() => '403 INSUFFICIENT_PERMISSIONS'),
    );
    await ask('PATCH', '/gateway/templates/notes', { auth: null });
    await ask('POST', '/mcp/notes/tools/call', { name: 'whoami', arguments: {} });
  }
  assert.equal(
    backend.seen.filter(({ tool }) => tool !== undefined),
    [],
  );
  // Where an instance of the template uses the account, another one may.
  const ask = await key(['mail'], ['gateway:write']);
  for (const id of ['one', 'two']) {
    const { status } = await ask('POST', '/gateway/register', {
      ...{ template_name: 'mail', id, endpoint: backend.url, auth },
    });
    assert.is(status, id === 'one' ? 200 : 201);
  }
});

test.run();
