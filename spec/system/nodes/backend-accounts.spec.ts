// One shared account at a server that wants OAuth, used by three real gateways on one PostgreSQL: its refresh tokens are for one use, so that
// a second refresh would end the account for all of them.

import * as assert from 'uvu/assert';
import { type OAuthBackend, startOAuthBackend } from '../../fixtures/oauth-backend.ts';
import { isPage, pageOf, ScriptedBrowser, textOf } from '../../helpers/browsers/scripted-browser.ts';
import {
  type Answer,
  caller,
  callTool,
  newKey,
  statusAndCode,
  toolText,
} from '../../helpers/clients/caller.ts';
import { becomes } from '../../helpers/eventually.ts';
import { PASSWORD, register } from '../../helpers/programs/mcp-program.ts';
import { journey } from './journey.ts';
import { heardWithinMs, type McpNode, startNode } from './mcp-nodes.ts';

const { test, onPostgresql, before, database } = await journey('journey: one account at several nodes', {
  timeoutMs: 300_000,
});

let backend: OAuthBackend;
const nodes: McpNode[] = [];
let key: Readonly<Record<string, string>> = {};
before(async () => {
  backend = await startOAuthBackend();
  backend.account = 'office';
  // Each has an address of its own, and so another client at the authorization server.
  nodes.push(...(await Promise.all([1, 2, 3].map(() => startNode(database)))));
  const [{ admin, url }] = nodes as [McpNode];
  key = (await newKey(admin, 'clients')).headers;
  const auth = { mode: 'oauth', who: 'shared' };
  // The other nodes notice the connection at a probe.
  const settings = { health_check_interval: 1 };
  await register(admin, 'mail', [{ id: 'one', endpoint: backend.url, auth }], settings);
  const asked = await admin('POST /gateway/connections', { template: 'mail', instance_id: 'one' });
  await connect(url, Object(asked.body).url);
  for (const node of nodes) await becomes(async () => (await callAt(node)).status, 200, heardWithinMs * 2);
});
test.after(async () => {
  for (const node of nodes) await node.remove();
  await backend?.close();
});

onPostgresql(
  '100 calls with an expired token at three nodes cause one refresh, and all are answered',
  async () => {
    const [refreshes, attempts] = [backend.refreshes, backend.refreshAttempts];
    backend.expireTokens();
    const answers = await Promise.all(Array.from({ length: 100 }, (_, n) => callAt(nodes[n % 3] as McpNode)));
    assert.equal(
      [...new Set(answers.map((answer) => `${answer.status} ${toolText(answer)}`))],
      ['200 office'],
    );
    assert.equal([backend.refreshes - refreshes, backend.refreshAttempts - attempts], [1, 1]);
  },
);

onPostgresql('a node that is killed in the middle of a refresh is replaced by one other, once', async () => {
  const [first, second] = nodes as [McpNode, McpNode];
  const [refreshes, attempts] = [backend.refreshes, backend.refreshAttempts];
  const gate = Promise.withResolvers<void>();
  gate.promise.catch(() => undefined);
  backend.refreshGate = gate.promise;
  backend.expireTokens();
  const lost = Array.from({ length: 25 }, () => callAt(first).catch(() => undefined));
  await becomes(() => backend.refreshAttempts - attempts, 1, 20_000);
  const waiting = Array.from({ length: 25 }, () => callAt(second));
  first.program.process.kill('SIGKILL');
  backend.refreshGate = undefined;
  assert.equal(await Promise.all(lost), Array(25).fill(undefined));
  // The lease of the killed node lasts longer than calls wait for it.
  for (const answer of await Promise.all(waiting)) {
    const [status, code] = statusAndCode(answer);
    assert.ok(status === 200 || code === 'BACKEND_UNAVAILABLE', `${status} ${code}`);
  }
  // The instance at a node may have failed probes meanwhile.
  for (const node of nodes.slice(1)) await becomes(async () => (await callAt(node)).status, 200, 60_000);
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, n) => callAt(nodes[1 + (n % 2)] as McpNode)),
  );
  assert.equal([...new Set(answers.map((answer) => `${answer.status} ${toolText(answer)}`))], ['200 office']);
  gate.reject(new Error('the client is gone'));
  assert.equal([backend.refreshes - refreshes, backend.refreshAttempts - attempts], [1, 2]);
});

function callAt({ url }: Pick<McpNode, 'url'>): Promise<Answer> {
  return callTool(caller(url, key), 'mail', 'whoami');
}

/** Opens the address as an admin, and connects the account of the server. */
async function connect(url: string, address: string): Promise<void> {
  const browser = new ScriptedBrowser(url);
  await browser.open(address);
  await browser.press('Sign in', { username: 'admin', password: PASSWORD });
  const there = await browser.press(`Continue to ${new URL(backend.url).host}`);
  assert.not.ok(isPage(there));
  const back = await fetch(there as URL, { redirect: 'manual' });
  const done = pageOf(await browser.open(back.headers.get('location') ?? ''));
  assert.match(textOf(done), 'The account is connected');
}

test.run();
