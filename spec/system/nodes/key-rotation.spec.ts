// The secret of a deployment is replaced while clients use it: two real gateways on one PostgreSQL, restarted one after the other in each of the
// three steps of docs/guides/key-rotation.md.

import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { printed, runCommand } from '../../cli/commands/against-gateway.ts';
import { startEverything } from '../../fixtures/everything-server.ts';
import { startHttpServer } from '../../fixtures/http-server.ts';
import { type Json, objectOr } from '../../fixtures/wire.ts';
import { caller, newKey, tokenOf } from '../../helpers/clients/caller.ts';
import { LegacyClient, requestText, textOf } from '../../helpers/clients/mcp-client.ts';
import { becomes } from '../../helpers/eventually.ts';
import { PASSWORD, register } from '../../helpers/programs/mcp-program.ts';
import { journey } from './journey.ts';
import {
  accepted,
  askOnce,
  capabilities,
  heardWithinMs,
  isServed,
  type McpNode,
  nodeEnv,
  retryOf,
  STATEFUL,
  startNode,
} from './mcp-nodes.ts';

const { test, onPostgresql, opened, database } = await journey('journey: another secret', {
  timeoutMs: 300_000,
});

const [oldKey, next] = ['the old secret of these nodes with 32 bytes or more', 'f'.repeat(64)];
const STEPS = [{ secret: `${oldKey},${next}` }, { secret: `${next}, ${oldKey}` }, { secret: next }];
const IDS = ['a', 'b'] as const;
const nodes = new Map<string, McpNode>();

onPostgresql('no call fails, no client initializes again, and nothing stored is lost', async () => {
  for (const id of IDS) await start(id, { secret: oldKey });
  const { headers } = await newKey(node('a').admin, 'clients');
  const options = { capabilities, headers };
  const legacy = await startEverything({ era: 'legacy' });
  const modern = await startEverything({ era: 'modern' });
  const pages = await startHttpServer({ era: 'modern', pages: 3 });
  opened.push(...[legacy, modern, pages].map((backend) => () => backend.close()));
  // The calls of these sessions are not marked as safe to repeat: without this such a session begins again at another node.
  const failover = { session_failover: 'always' };
  await register(node('a').admin, 'legacy', [{ id: 'one', endpoint: legacy.url }], failover);
  await register(node('a').admin, 'pages', [{ id: 'one', endpoint: pages.url }]);
  const secret = { endpoint: modern.url, headers: { 'X-Backend-Key': 'of the backend' } };
  await register(node('a').admin, 'modern', [{ id: 'one', ...secret }]);
  for (const id of IDS)
    for (const template of ['legacy', 'modern', 'pages'])
      await isServed(node(id), `/mcp/${template}`, options);
  for (const id of IDS) await becomes(() => states(id), ['live', 'live'], heardWithinMs);

  const sessions = await Promise.all(
    IDS.map((id) => LegacyClient.open(node(id).wire, '/mcp/legacy', options)),
  );
  let turn = 0;
  /** The next node that is not being restarted. */
  const serving = (): McpNode => {
    const up = [...nodes.values()];
    turn += 1;
    const chosen = up[turn % up.length];
    assert.ok(chosen);
    return chosen;
  };
  const failures: unknown[] = [];
  let calls = 0;
  let isOver = false;
  const clients = sessions.map(async ({ headers: ofSession }) => {
    const body = requestText(1, 'tools/call', { name: 'test_simple_text', arguments: {} });
    while (!isOver) {
      const { status, text, messages } = await serving().wire.exchange('/mcp/legacy', {
        headers: ofSession,
        body,
      });
      const said = textOf({ result: objectOr(messages.at(-1)?.result) });
      if (status !== 200 || !said.includes('simple text response')) failures.push([status, text, messages]);
      const { result } = await askOnce(serving(), '/mcp/modern', options, 'tools/call', {
        name: 'test_simple_text',
        arguments: {},
      });
      if (!textOf({ result }).includes('simple text response')) failures.push(result);
      calls += 2;
      await delay(20);
    }
  });
  for (const client of clients) client.catch(() => undefined);

  for (const step of STEPS) {
    // After the second step, while clients call: the third leaves no key for what was encrypted with the old one.
    if (step === STEPS[2]) await rekey();
    const login = await tokenOf(node('b').url, 'admin', PASSWORD);
    const asked = await askOnce(node('b'), '/mcp/modern', options, 'tools/call', STATEFUL);
    const { result: page } = await askOnce(node('b'), '/mcp/pages', options, 'tools/list');
    for (const id of IDS) {
      const callsBefore = calls;
      await restart(id, step);
      for (const template of ['modern', 'pages']) await isServed(node(id), `/mcp/${template}`, options); // with the header of its instance
      for (const each of IDS) await becomes(() => states(each), ['live', 'live'], heardWithinMs);
      assert.ok(calls > callsBefore, 'calls went on meanwhile');
      if (step === STEPS[2]) continue; // what the old secret signed is not valid any more
      for (const each of [...nodes.values()]) {
        assert.is((await caller(each.url, login)('GET /auth/users')).status, 200);
        const goesOn = await askOnce(
          each,
          '/mcp/modern',
          options,
          'tools/call',
          retryOf(STATEFUL, asked, accepted),
        );
        assert.is(textOf(goesOn), 'state-ok');
        const { nextCursor: cursor } = page;
        const read = await askOnce(each, '/mcp/pages', options, 'tools/list', { cursor });
        assert.is(read.error, undefined);
      }
    }
  }
  isOver = true;
  await Promise.all(clients);
  assert.equal(failures, []);
  // A node that was forgotten is no member, and says so.
  nodes.delete('b');
  const forgotten = await startNode(database, { id: 'c', secret: oldKey });
  opened.unshift(forgotten.remove);
  await forgotten.program.complains(/has another secret than the other nodes/);
  const listed = async () => {
    const { body } = await node('a').admin('GET /gateway/nodes');
    return Object(body).nodes.find(({ id }: Json) => id === 'c')?.state;
  };
  await becomes(listed, 'foreign', heardWithinMs);
});

test.run();

function node(id: string): McpNode {
  const found = nodes.get(id);
  assert.ok(found);
  return found;
}

async function start(id: string, step: Parameters<typeof startNode>[1], port?: number): Promise<void> {
  const started = await startNode(database, { ...step, id, ...(port === undefined ? {} : { port }) });
  opened.unshift(started.remove);
  nodes.set(id, started);
}

/** `stagedoor db rekey` with the keys of the second step. */
async function rekey(): Promise<void> {
  const env = { ...nodeEnv(database), GATEWAY_SECRET_KEY: String(STEPS[1]?.secret) };
  const { done, unreadable } = JSON.parse(await printed(runCommand(['db', 'rekey', '--json'], env)));
  // At least the header of an instance.
  assert.equal([done > 0, unreadable], [true, 0]);
}

/** Takes no further request before it stops, as a load balancer that follows `/readyz`. */
async function restart(id: string, step: Parameters<typeof startNode>[1]): Promise<void> {
  const before = node(id);
  nodes.delete(id);
  before.program.signal('SIGTERM');
  await before.program.end();
  await start(id, step, before.port);
}

async function states(id: string): Promise<readonly string[]> {
  const { body } = await node(id).admin('GET /gateway/nodes');
  return Object(body)
    .nodes.map(({ state }: Json) => state)
    .filter((state: string) => state !== 'ended');
}
