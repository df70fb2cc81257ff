// Complete gateways on one PostgreSQL that find each other by the table of lives: no setting names the others.

import * as assert from 'uvu/assert';
import { loadConfig } from '../../../src/config/config.ts';
import { type RunningServer, startServer } from '../../../src/server/server.ts';
import { caller, tokenOf } from '../../helpers/caller.ts';
import { becomes } from '../../helpers/eventually.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { GUARDED, PASSWORD } from '../../helpers/mcp-program.ts';
import { type FreshDatabase, freshDatabase, postgresql } from '../../helpers/services.ts';
import { suite } from '../../helpers/suite.ts';
import { nodeEnv } from './mcp-nodes.ts';

const server = await postgresql();
const test = suite('members of a deployment', { timeoutMs: 120_000 });
const onPostgresql = test.needs(server.url, server.skip);
const folder = folderOfAll(test);
const opened: (() => unknown)[] = [];
let database: FreshDatabase;
let a: RunningServer;

test.before(async () => {
  if (server.url === undefined) return;
  database = await freshDatabase(server);
  opened.unshift(database.drop);
  a = await start('a');
});
test.after(async () => {
  for (const close of opened) await close();
});

onPostgresql('each node lists the others, and one that stopped as ended', async () => {
  const b = await start('b');
  await becomes(() => statesAt(a), ['a live', 'b live']);
  assert.equal(await statesAt(b), ['b live', 'a live']);
  await b.close();
  await becomes(() => statesAt(a), ['a live', 'b ended']);
});

onPostgresql('a node that starts again is listed with a new life', async () => {
  const b = await start('b');
  await becomes(async () => (await statesAt(a)).toSorted(), ['a live', 'b ended', 'b live']);
  await b.close();
});

onPostgresql('a node with another secret is foreign', async () => {
  await start('c', { GATEWAY_SECRET_KEY: 'another secret, which no other node of it has' });
  await becomes(async () => (await statesAt(a)).filter((state) => state.startsWith('c')), ['c foreign']);
});
test.run();

async function statesAt(node: RunningServer): Promise<string[]> {
  const url = String(node.urls[0]);
  const { body } = await caller(url, await tokenOf(url, 'admin', PASSWORD))('GET /gateway/nodes');
  const nodes: { id: string; state: string }[] = Object(body).nodes;
  return nodes.map(({ id, state }) => `${id} ${state}`);
}

async function start(id: string, more: Record<string, string> = {}): Promise<RunningServer> {
  const env = { ...GUARDED, ...nodeEnv(database), ...more, GATEWAY_NODE_ID: id };
  const config = loadConfig({ flags: { port: '0', host: '127.0.0.1' }, env, cwd: folder() });
  const node = await startServer(config);
  opened.unshift(() => node.close());
  return node;
}
