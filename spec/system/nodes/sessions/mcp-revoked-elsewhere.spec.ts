// Two nodes on one SQLite file: when a key is revoked on one node, the other node soon closes its sessions, streams and dedicated
// processes, and ends its calls over REST. Other clients are not affected. Accounts, and keys that expire: spec/auth/session-revalidator.spec.ts.

import * as assert from 'uvu/assert';
import { everythingProgram, startEverything } from '../../../fixtures/everything-server.ts';
import { stdioServerPath } from '../../../fixtures/programs.ts';
import { caller, field, newKey } from '../../../helpers/clients/caller.ts';
import { LegacyClient, ModernClient } from '../../../helpers/clients/mcp-client.ts';
import { becomes } from '../../../helpers/eventually.ts';
import { folderOfAll } from '../../../helpers/folder.ts';
import { register } from '../../../helpers/programs/mcp-program.ts';
import { suite } from '../../../helpers/suite.ts';
import { ASKED, askOnce, capabilities, isServed, type McpNode, startPair } from '../mcp-nodes.ts';

const test = suite('journey: MCP clients revoked elsewhere', { timeoutMs: 120_000 });

/** From the change on one node to the end of all at the other. Source: docs/guides/mcp-sessions.md, "When access is revoked". */
const endedWithinMs = 10_000;

const folder = folderOfAll(test);
let a: McpNode;
let b: McpNode;
/** Last opened, first closed. */
const opened: (() => unknown)[] = [];

test.before(async () => {
  const pair = await startPair({ url: `sqlite:///${folder('gateway.db')}` }, opened);
  ({ a, b } = pair);
  const backend = await startEverything({ era: 'legacy' });
  opened.push(() => backend.close());
  await register(b.admin, 'far', [{ id: 'far', endpoint: backend.url }]);
  await register(b.admin, 'near', [{ id: 'near', ...everythingProgram({ era: 'legacy' }) }]);
  await isServed(b, '/mcp/far', pair.options);
});
test.after(async () => {
  for (const close of opened) await close();
});

test('a revoked key loses its sessions, processes, streams and waiting calls at the other node, and no other key does', async () => {
  const stays = await newKey(a.admin, 'stays');
  const bystander = await LegacyClient.open(b.wire, '/mcp/near', { capabilities, headers: stays.headers });
  const before = await held();
  assert.equal(before, { sessions: 1, processes: 1 });

  // A server may ask these clients: each has a dedicated process of a shared program.
  const { id, headers } = await newKey(a.admin, 'revoked');
  const client = { capabilities, headers };
  const near = await LegacyClient.open(b.wire, '/mcp/near', client);
  await LegacyClient.open(b.wire, '/mcp/far', client); // idle, without a stream
  const joined = await LegacyClient.open(b.wire, '/mcp', client);
  await joined.call('far__test_simple_text');
  const streams = [
    await near.listen(),
    await joined.listen(),
    await new ModernClient(b.wire, '/mcp/far', client).listen({ toolsListChanged: true }),
  ];
  const asked = await askOnce(b, '/mcp/near', client, 'tools/call', ASKED);
  assert.is(asked.result.resultType, 'input_required');
  assert.equal(await held(), { sessions: 4, processes: 3 });

  assert.is((await a.admin(`DELETE /auth/api-keys/${id}`)).status, 204);
  await becomes(held, before, endedWithinMs);
  await becomes(() => streams.filter(({ hasEnded }) => !hasEnded).length, 0, endedWithinMs);
  assert.is((await askOnce(b, '/mcp/far', client, 'tools/list')).status, 401);
  assert.is((await bystander.ask('tools/list')).status, 200);
  assert.is(await bystander.close(), 200);
});

test('a REST call of a revoked key ends at the other node', async () => {
  const program = { command: process.execPath, args: [stdioServerPath] };
  await register(b.admin, 'slow', [{ id: 'slow', ...program }]);
  const { id, headers } = await newKey(a.admin, 'calls');
  const call = caller(b.url, headers);
  assert.is((await call('POST /mcp/slow/tools/call', { name: 'name' })).status, 200);
  const held = call('POST /mcp/slow/tools/call', { name: 'sleep', arguments: { ms: 60_000 } });
  await becomes(async () => field(await b.admin('GET /gateway/stats'), 'active_connections'), 1);
  assert.is((await a.admin(`DELETE /auth/api-keys/${id}`)).status, 204);
  const { status, tookMs } = await held;
  assert.is(status, 401);
  assert.ok(tookMs < endedWithinMs + 5_000, `it took ${tookMs} ms`);
});

test.run();

interface Held {
  readonly sessions: number;
  readonly processes: number;
}

/** The sessions and dedicated processes of the other node. */
async function held(): Promise<Held> {
  const stats = await b.admin('GET /gateway/stats');
  const { open } = Object(field(stats, 'sessions'));
  const { running } = Object(field(stats, 'own_processes'));
  return { sessions: open, processes: running };
}
