// GET /gateway/connect/{template}: the snippets of the command `connect`, for clients on other machines.

import * as assert from 'uvu/assert';
import { CONNECT_KINDS } from '../../../src/connect/index.ts';
import { type Json, objectOr } from '../../fixtures/wire.ts';
import { head, sendRaw } from '../../helpers/clients/raw-http.ts';
import { type AccountsFixture, startWithAccounts } from '../../helpers/http/accounts.ts';
import { appFor, startApp } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the connect route');
const app = appFor(test, () => startWithAccounts({ trustedProxies: [] }));
test.before(() => app.serve('demo', 'one'));

async function snippets(from: Pick<AccountsFixture, 'ask'> = app): Promise<Json[]> {
  const { status, body } = await from.ask('GET', '/gateway/connect/demo', { headers: app.user });
  assert.is(status, 200);
  return (body.snippets as unknown[]).map(objectOr);
}

test('has a snippet for each kind of client, in the order of the command `connect`', async () => {
  const all = await snippets();
  assert.equal(
    all.map(({ kind }) => kind),
    CONNECT_KINDS.map(({ name }) => name),
  );
  for (const { kind, text, steps, hints } of all) {
    assert.ok(String(text).includes('demo'), String(kind));
    assert.ok(String(text).includes(app.url), String(kind));
    assert.ok(Array.isArray(steps) && steps.length > 0 && Array.isArray(hints), String(kind));
  }
});

test('takes the wanted transport where a client has both, and connects to all templates at once', async () => {
  const { body } = await app.ask('GET', '/gateway/connect/demo?transport=stdio', { headers: app.user });
  const cursor = (body.snippets as unknown[]).map(objectOr).find(({ kind }) => kind === 'cursor');
  assert.equal([cursor?.transport, cursor?.transports], ['stdio', ['stdio', 'http']]);
  assert.match(String(cursor?.text), '"bridge"');
  const all = await app.ask('GET', '/gateway/connect', { headers: app.user });
  for (const { kind, transport, text } of (all.body.snippets as unknown[]).map(objectOr)) {
    assert.ok(kind !== 'curl' && kind !== 'postman');
    if (transport === 'http') assert.match(String(text), new RegExp(`${app.url}/mcp(?!/)`));
    else assert.not.match(String(text), 'demo');
  }
});

test('names the variable of the API key, and contains no path of the machine of the gateway', async () => {
  const all = await snippets();
  assert.match(JSON.stringify(all), 'STAGEDOOR_API_KEY');
  assert.not.match(JSON.stringify(all), process.execPath);
  const claude = all.find(({ kind }) => kind === 'claude');
  const server = objectOr(Object.values(objectOr(objectOr(JSON.parse(String(claude?.text))).mcpServers))[0]);
  assert.equal([server.command, server.args], ['stagedoor', ['bridge', 'demo', '--url', app.url]]);
  assert.match(String(claude?.location), 'claude_desktop_config.json');
});

test('omits the API key where authentication is off', async () => {
  const open = await startApp();
  await open.serve('demo', 'one');
  assert.not.match(JSON.stringify(await snippets(open)), 'X-API-Key');
  await open.close();
});

test('keeps shell code in the Host header out of its snippets', async () => {
  const other = await startWithAccounts({ isPublic: true });
  await other.serve('demo', 'one');
  const headers = { ...other.user, Host: "a'$(id)'", Connection: 'close' };
  const answer = await sendRaw(other.port, head('GET /gateway/connect/demo', headers));
  assert.match(answer, 'http://localhost/mcp/demo');
  assert.not.match(answer, '$(id)');
  await other.close();
});

test.run();
