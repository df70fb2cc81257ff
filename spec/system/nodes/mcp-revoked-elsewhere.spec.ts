// Two nodes on one SQLite file: when a key or an account is revoked or changed on one node, the other node soon closes its
// sessions, streams and dedicated processes. The same holds for a key that expires. Other clients are not affected.

import * as assert from 'uvu/assert';
import { everythingProgram, startEverything } from '../../fixtures/everything-server.ts';
import { field, newKey, tokenOf } from '../../helpers/caller.ts';
import { becomes } from '../../helpers/eventually.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { LegacyClient, ModernClient } from '../../helpers/mcp-client.ts';
import { PASSWORD, register } from '../../helpers/mcp-program.ts';
import type { OpenStream } from '../../helpers/mcp-wire.ts';
import { suite } from '../../helpers/suite.ts';
import { ASKED, askOnce, capabilities, isServed, type McpNode, startPair } from './mcp-nodes.ts';

const test = suite('journey: MCP clients revoked elsewhere', { timeoutMs: 120_000 });

/** From the change on one node to the end of all at the other. Source: docs/guides/mcp-sessions.md, "When access is revoked". */
const endedWithinMs = 10_000;

type Headers = Readonly<Record<string, string>>;

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
  const parked = await askOnce(b, '/mcp/near', client, 'tools/call', ASKED);
  assert.is(parked.result.resultType, 'input_required');
  assert.equal(await held(), { sessions: 4, processes: 3 });

  assert.is((await a.admin(`DELETE /auth/api-keys/${id}`)).status, 204);
  await heldSoon(before);
  await allEnd(streams);
  assert.is((await askOnce(b, '/mcp/far', client, 'tools/list')).status, 401);
  assert.is((await bystander.ask('tools/list')).status, 200);
  assert.is(await bystander.close(), 200);
});

test('an expired key loses its sessions and streams on both nodes, although nothing changes', async () => {
  const expiresInMs = 8_000;
  const expiresAtMs = Date.now() + expiresInMs;
  const made = await a.admin('POST /auth/api-keys', {
    name: 'short',
    permissions: ['tools:call'],
    expires_at: new Date(expiresAtMs).toISOString(),
  });
  const headers = { 'X-API-Key': String(field(made, 'key')) };
  const onBoth = await Promise.all([a, b].map((node) => sessionAt(node, headers)));
  const streams = await Promise.all(onBoth.map((session) => session.listen()));
  assert.ok(Date.now() < expiresAtMs, 'too slow a machine');
  assert.is((await held()).sessions, 1);
  await heldSoon({ sessions: 0, processes: 0 }, expiresInMs);
  assert.ok(Date.now() >= expiresAtMs);
  await allEnd(streams);
  await becomes(async () => (await held(a)).sessions, 0, endedWithinMs);
});

test('a user who is deleted, disabled or given a new password loses their sessions; a new e-mail address keeps them', async () => {
  const changes: Readonly<Record<string, object | undefined>> = {
    deleted: undefined,
    disabled: { is_active: false },
    renewed: { password: 'battery staple' },
    harmless: { email: 'harmless@example.org' },
  };
  const ids = new Map<string, unknown>();
  for (const username of Object.keys(changes)) {
    const user = { username, email: `${username}@localhost`, password: PASSWORD, role: 'user' };
    const made = await a.admin('POST /auth/users', user);
    assert.is(made.status, 201, JSON.stringify(made.body));
    ids.set(username, field(made, 'id'));
    await sessionAt(b, await tokenOf(b.url, username, PASSWORD));
  }
  const count = Object.keys(changes).length;
  assert.is((await held()).sessions, count);
  for (const [username, change] of Object.entries(changes)) {
    const path = `/auth/users/${ids.get(username)}`;
    const { status } = await (change === undefined
      ? a.admin(`DELETE ${path}`)
      : a.admin(`PATCH ${path}`, change));
    assert.ok(status < 300, `${username}: ${status}`);
  }
  await heldSoon({ sessions: 1, processes: 0 });
});

test.run();

function sessionAt({ wire }: McpNode, headers: Headers): Promise<LegacyClient> {
  return LegacyClient.open(wire, '/mcp/far', { capabilities, headers });
}

interface Held {
  readonly sessions: number;
  readonly processes: number;
}

/** The sessions and dedicated processes of a node. */
async function held({ admin }: McpNode = b): Promise<Held> {
  const stats = await admin('GET /gateway/stats');
  const { open } = Object(field(stats, 'sessions'));
  const { running } = Object(field(stats, 'own_processes'));
  return { sessions: open, processes: running };
}

function heldSoon(wanted: Held, laterMs = 0): Promise<void> {
  return becomes(() => held(), wanted, laterMs + endedWithinMs);
}

function allEnd(streams: readonly OpenStream[]): Promise<void> {
  return becomes(() => streams.filter(({ hasEnded }) => !hasEnded).length, 0, endedWithinMs);
}
