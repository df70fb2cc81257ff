// Complete gateways on one PostgreSQL that find each other by the table of lives: no setting names the others.

import { type Logger, pino } from 'pino';
import * as assert from 'uvu/assert';
import { loadConfig } from '../../../src/config/config.ts';
import { VERSION } from '../../../src/domain/version.ts';
import { type RunningServer, startServer } from '../../../src/server/server.ts';
import type { Json } from '../../fixtures/wire.ts';
import { type Caller, caller, tokenOf } from '../../helpers/clients/caller.ts';
import { becomes } from '../../helpers/eventually.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { lineSink } from '../../helpers/http/app.ts';
import { GUARDED, PASSWORD } from '../../helpers/programs/mcp-program.ts';
import { freshDatabase } from '../../helpers/services/services.ts';
import { executeSql } from '../../helpers/services/sql.ts';
import { journey } from './journey.ts';
import { nodeEnv } from './mcp-nodes.ts';

const { test, onPostgresql, before, opened, close, database } = await journey('members of a deployment', {
  timeoutMs: 120_000,
});
const folder = folderOfAll(test);
let a: RunningServer;
/** A node, and one with a copy of its database. They know it after half a minute, in which the other tests run. */
let copied: readonly [CopiedNode, CopiedNode];

before(async () => {
  a = await start('a');
  copied = await startCopied();
});
test.after(close);

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

onPostgresql('a node is drained and resumed at another one; both record it', async () => {
  const b = await start('b');
  const live = async () => (await statesAt(a)).filter((state) => state === 'b live').length;
  await becomes(live, 1);
  const { life } = (await nodesAt(b))[0] ?? {};
  await becomes(async () => (await nodesAt(a)).some((node) => node.life === life), true);
  const [askA, askB] = [await adminOf(a), await adminOf(b)];
  for (const [command, draining, ready] of [
    ['drain', true, 503],
    ['resume', false, 200],
  ] as const) {
    const { status, body } = await askA(`POST /gateway/nodes/b/${command}`);
    assert.equal([status, Object(body).id, Object(body).draining], [200, 'b', draining]);
    assert.is((await askB('GET /readyz')).status, ready);
    const shown = async () => (await nodesAt(a)).find((node) => node.life === life);
    await becomes(async () => (await shown())?.draining, draining);
  }
  // Both nodes write to the audit log that they share.
  const entries = async () => {
    const { body } = await askA('GET /gateway/audit?action=POST+/gateway/nodes/:node_id/drain');
    const found: { actor_name: string; subject: string; status: number }[] = Object(body).entries;
    return found.map(({ actor_name, subject, status }) => [actor_name, subject, status]);
  };
  const entry = ['admin', '/gateway/nodes/b/drain', 200];
  await becomes(entries, [entry, entry]);
  await askA('POST /gateway/nodes/b/drain');
  await b.close();
  await becomes(live, 0);
  const { status, body } = await askA('POST /gateway/nodes/b/resume');
  assert.equal([status, Object(body).error_code], [503, 'NODE_UNAVAILABLE']);
  const again = await start('b');
  assert.is((await (await adminOf(again))('GET /readyz')).status, 200, 'a start is not drained');
  await again.close();
});

onPostgresql('a node with another secret is foreign, and named', async () => {
  await start('c', { GATEWAY_SECRET_KEY: 'another secret, which no other node of it has' });
  await becomes(async () => (await statesAt(a)).filter((state) => state.startsWith('c')), ['c foreign']);
  const { body } = await caller(String(a.urls[0]))('GET /readyz?verbose');
  const [line, ...others] = Object(body).warnings;
  assert.equal(others, []);
  assert.match(line, /^the node "c" has another secret than this one/);
});

onPostgresql('a node with another version is named with the versions of both, also in the log', async () => {
  // A row as a later release may write it. Texts are stored as JSON.
  const profile = JSON.stringify(JSON.stringify({ protocol: 999, version: '999.0.0' }));
  await executeSql(
    database.url,
    `insert into nodes (life, node, counter, profile, state) values ('life-999', 'later', 1, '${profile}', '"{}"')`,
  );
  const log: Json[] = [];
  const b = await start('b', {}, pino({ level: 'warn' }, lineSink(log)));
  const line = `the node "later" has version 999.0.0 and protocol 999, this one ${VERSION} and protocol 1: it is not a member until all have the same version`;
  assert.is(log.filter(({ msg }) => msg === line).length, 1);
  for (const node of [a, b])
    await becomes(async () => {
      const { body } = await caller(String(node.urls[0]))('GET /readyz?verbose');
      return Object(body).warnings.filter((text: string) => text.includes('later'));
    }, [line]);
  assert.ok((await statesAt(b)).includes('later foreign'));
  await b.close();
});

onPostgresql('two nodes with copies of one database are named by both', async () => {
  const lines = [
    'a node that uses a copy of the database of this node sends requests to it',
    'the node "original" continues a life that has ended in this database: it uses another database, of which this one is a copy',
  ];
  for (const [index, { node, log }] of copied.entries()) {
    const ready = async () => Object((await caller(String(node.urls[0]))('GET /readyz?verbose')).body);
    await becomes(ready, { status: 'ready', warnings: [lines[index]] }, 60_000);
    const { body } = await (await adminOf(node))('GET /gateway/nodes');
    assert.equal(Object(body).warnings, [lines[index]]);
    assert.is(log.filter(({ msg }) => msg === lines[index]).length, 1);
  }
});

test.run();

interface CopiedNode {
  readonly node: RunningServer;
  readonly log: readonly Json[];
}

async function startCopied(): Promise<readonly [CopiedNode, CopiedNode]> {
  const original = await freshDatabase(database);
  const [name, url] = [new URL(original.url).pathname.slice(1), `${original.url}_copy`];
  const logs: readonly [Json[], Json[]] = [[], []];
  const startOn = async (id: string, url: string, log: Json[]): Promise<CopiedNode> => ({
    node: await start(id, { GATEWAY_DATABASE_URL: url }, pino({ level: 'warn' }, lineSink(log))),
    log,
  });
  const first = await startOn('original', original.url, logs[0]);
  // A database with connections cannot be copied.
  for (const statement of [
    `alter database ${name} allow_connections false`,
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
    `create database ${name}_copy template ${name}`,
    `alter database ${name} allow_connections true`,
  ])
    await executeSql(database.url, statement);
  opened.push(
    () => executeSql(database.url, `drop database ${name}_copy with (force)`),
    () => original.drop(),
  );
  return [first, await startOn('copy', url, logs[1])];
}

async function adminOf(node: RunningServer): Promise<Caller> {
  const url = String(node.urls[0]);
  return caller(url, await tokenOf(url, 'admin', PASSWORD));
}

async function nodesAt(
  node: RunningServer,
): Promise<{ id: string; life: string; state: string; draining: boolean }[]> {
  const { body } = await (await adminOf(node))('GET /gateway/nodes');
  return Object(body).nodes;
}

async function statesAt(node: RunningServer): Promise<string[]> {
  return (await nodesAt(node)).map(({ id, state }) => `${id} ${state}`);
}

async function start(
  id: string,
  more: Record<string, string> = {},
  log: Logger = pino({ level: 'silent' }),
): Promise<RunningServer> {
  const env = { ...GUARDED, ...nodeEnv(database), ...more, GATEWAY_NODE_ID: id };
  const config = loadConfig({ flags: { port: '0', host: '127.0.0.1' }, env, cwd: folder() });
  const node = await startServer(config, { log });
  opened.unshift(() => node.close());
  return node;
}
