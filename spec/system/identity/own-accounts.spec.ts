// Each user's own account at a server, with a real gateway and its database: official clients of both lines, and a browser that connects the
// accounts. Two users never get the account of each other; what counts is what the server saw.

import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
} from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { UrlElicitationRequiredError } from '@modelcontextprotocol/sdk/types.js';
import * as assert from 'uvu/assert';
import { type OAuthBackend, startOAuthBackend } from '../../fixtures/oauth-backend.ts';
import { isPage, pageOf, ScriptedBrowser, textOf } from '../../helpers/browsers/scripted-browser.ts';
import { type OAuthHarness, startWithSignIn } from '../../helpers/identity/oauth-gateway.ts';
import { PASSWORD, register } from '../../helpers/programs/mcp-program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: own accounts at a server', { timeoutMs: 180_000 });
let backend: OAuthBackend;
let gateway: OAuthHarness;
test.before(async () => {
  backend = await startOAuthBackend();
  gateway = await startWithSignIn();
  const auth = { mode: 'oauth', who: 'user' };
  await register(gateway.admin, 'notes', [{ id: 'one', endpoint: backend.url, auth }]);
});
test.after(async () => {
  await gateway.remove();
  await backend.close();
});

/** Opens the address as this user, and connects an account there. */
async function connect(url: string, username: string): Promise<void> {
  const browser = new ScriptedBrowser(gateway.url);
  await browser.open(url);
  await browser.press('Sign in', { username, password: PASSWORD });
  const there = await browser.press(`Continue to ${new URL(backend.url).host}`);
  assert.not.ok(isPage(there));
  backend.account = `${username} at work`;
  const back = await fetch(there as URL, { redirect: 'manual' });
  const done = pageOf(await browser.open(back.headers.get('location') ?? ''));
  assert.match(textOf(done), 'The account is connected');
}

async function tokenOf(username: string): Promise<string> {
  const client = await gateway.oauth.client();
  const resource = `${gateway.url}/mcp/notes`;
  return (await gateway.oauth.signIn(client, { username }, { resource })).access_token;
}

const said = (result: unknown) => String(Object(Object(result).content?.[0]).text);
const WHOAMI = { name: 'whoami', arguments: {} };

test('a user of each kind of client connects an account, and no user gets the account of another', async () => {
  const url = new URL(`${gateway.url}/mcp/notes`);
  const tokens = { ada: await tokenOf('ada'), bob: await tokenOf('bob') };
  const initOf = (token: string) => ({ requestInit: { headers: { authorization: `Bearer ${token}` } } });
  const legacy = new Client({ name: 'spec', version: '1' }, { capabilities: { elicitation: { url: {} } } });
  await legacy.connect(new StreamableHTTPClientTransport(url, initOf(tokens.ada)));
  const refused = await legacy.callTool(WHOAMI).catch((error: unknown) => error);
  assert.instance(refused, UrlElicitationRequiredError);
  await connect(String((refused as UrlElicitationRequiredError).elicitations[0]?.url), 'ada');
  assert.is(said(await legacy.callTool(WHOAMI)), 'ada at work');
  let connecting: Promise<void> | undefined;
  const modern = new ModernClient(
    { name: 'spec', version: '1' },
    { capabilities: { elicitation: { url: {} } }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  modern.setRequestHandler('elicitation/create', async ({ params }) => {
    connecting ??= connect(String(Object(params).url), 'bob');
    return { action: 'accept' };
  });
  await modern.connect(new ModernTransport(url, initOf(tokens.bob)));
  assert.equal(
    (await modern.listTools()).tools.map(({ name }) => name),
    ['connect'],
  );
  assert.is(said(await modern.callTool(WHOAMI)), 'bob at work');
  await connecting;
  await Promise.all(
    Array.from({ length: 20 }, async (_, index) => {
      const [client, account] = index % 2 === 0 ? [legacy, 'ada at work'] : [modern, 'bob at work'];
      assert.is(said(await client.callTool(WHOAMI)), account);
    }),
  );
  const used = new Map(backend.seen.map(({ token, account }) => [token, account]));
  assert.equal([...used.values()].sort(), ['ada at work', 'bob at work']);
  for (const token of Object.values(tokens)) assert.not.ok(used.has(token));
  await legacy.close();
  await modern.close();
});

test('a token that has expired is renewed once, and a user who disconnects is asked again', async () => {
  const before = backend.refreshes;
  backend.expireTokens();
  const bearer = { Authorization: `Bearer ${await tokenOf('ada')}` };
  const call = async () => {
    const response = await fetch(`${gateway.url}/mcp/notes/tools/call`, {
      ...{ method: 'POST', body: JSON.stringify(WHOAMI) },
      headers: { ...bearer, 'Content-Type': 'application/json' },
    });
    return { status: response.status, body: await response.json() };
  };
  const answers = await Promise.all([call(), call(), call()]);
  for (const { body } of answers) assert.is(said(body), 'ada at work');
  assert.is(backend.refreshes, before + 1);
  const browser = new ScriptedBrowser(gateway.url);
  await browser.open(`${gateway.url}/connections`);
  await browser.press('Sign in', { username: 'ada', password: PASSWORD });
  const list = pageOf(await browser.press('Disconnect'));
  assert.match(textOf(list), 'None yet');
  const { status, body } = await call();
  assert.equal([status, Object(body).error_code], [403, 'CONNECTION_REQUIRED']);
});

test.run();
