// A gateway on a SQLite file is killed with `kill -9` and started again: what its MCP clients see. The servers of these clients
// keep running; programs end with the gateway.

import { setTimeout as delay } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import * as assert from 'uvu/assert';
import { WATCHED_URI } from '../../fixtures/everything/resources.ts';
import { startEverything } from '../../fixtures/everything-server.ts';
import { type HttpFixture, startHttpServer } from '../../fixtures/http-server.ts';
import { stdioServerPath } from '../../fixtures/programs.ts';
import { type Caller, caller, field, newKey, tokenOf } from '../../helpers/clients/caller.ts';
import { LegacyClient, textOf } from '../../helpers/clients/mcp-client.ts';
import { Wire } from '../../helpers/clients/mcp-wire.ts';
import { becomes } from '../../helpers/eventually.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { freePort } from '../../helpers/network/free-port.ts';
import { Program } from '../../helpers/programs/program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: restart', { timeoutMs: 120_000 });
/** Within it, what is written behind is written. */
const WRITTEN_MS = 200;
const PASSWORD = 'correct horse';
const folder = folderOfEach(test);
let port: number;
let url: string;
let server: HttpFixture;
let programs: Program[];
let admin: Caller;
let headers: Readonly<Record<string, string>>;
let wires: Wire[];
test.before.each(async () => {
  [port, server] = await Promise.all([freePort(), startHttpServer()]);
  url = `http://127.0.0.1:${port}`;
  programs = [];
  wires = [];
  await start();
  headers = await tokenOf(url, 'admin', PASSWORD);
  admin = caller(url, headers);
});
test.after.each(async () => {
  for (const wire of wires) wire.close();
  for (const program of programs) await program.remove();
  await server.close();
});

async function start(env: Readonly<Record<string, string>> = {}): Promise<void> {
  const program = new Program(['gateway', 'start', '--port', String(port)], {
    folder: folder(),
    env: {
      GATEWAY_AUTH_ENABLED: 'true',
      GATEWAY_DATABASE_URL: 'sqlite:///gateway.db',
      GATEWAY_ADMIN_PASSWORD: PASSWORD,
      ...env,
    },
  });
  programs.push(program);
  await program.url();
}

async function kill(name: NodeJS.Signals = 'SIGKILL'): Promise<void> {
  const program = programs.at(-1);
  program?.signal(name);
  await program?.end();
}

async function restart(name?: NodeJS.Signals): Promise<void> {
  await kill(name);
  await start();
}

async function register(template: string, instance: object, settings: object = {}): Promise<void> {
  const { status, body } = await admin('POST /gateway/register?wait=20', {
    template_name: template,
    instance,
  });
  assert.is(status, 201, JSON.stringify(body));
  const changed = await admin(`PATCH /gateway/templates/${template}`, settings);
  assert.is(changed.status, 200, JSON.stringify(changed.body));
}

const http = () => ({ id: 'a', endpoint: server.url });
const program = () => ({ id: 'a', command: `'${process.execPath}' '${stdioServerPath}' --name=one` });

function open(template: string, own = headers, capabilities = {}): Promise<LegacyClient> {
  const wire = new Wire(url);
  wires.push(wire);
  return LegacyClient.open(wire, `/mcp/${template}`, { headers: own, capabilities });
}

test('the next call works under the same id, with log level and subscriptions', async () => {
  const everything = await startEverything({ era: 'legacy' });
  try {
    await register('t', { id: 'a', endpoint: everything.url });
    const client = await open('t');
    assert.is((await client.ask('logging/setLevel', { level: 'debug' })).status, 200);
    assert.equal((await client.ask('resources/subscribe', { uri: WATCHED_URI })).result, {});
    await delay(WRITTEN_MS);
    await restart();
    const { status, result } = await client.ask('resources/read', { uri: WATCHED_URI });
    assert.equal([status, Array.isArray(result?.contents)], [200, true]);
    const stream = await client.listen();
    assert.is(stream.status, 200);
    await stream.sees(({ method }) => method === 'notifications/resources/updated');
    await client.call('test_trigger_resource_update');
    await becomes(
      () => stream.messages.filter(({ method }) => method === 'notifications/resources/updated').length,
      2,
    );
    assert.is(await client.close(), 200);
  } finally {
    await everything.close();
  }
});

for (const [name, signal] of [
  ['a kill', 'SIGKILL'],
  ['a stop', 'SIGTERM'],
] as const) {
  test(`after ${name}, sessions with a program continue, or get one 404 after an unsafe call`, async () => {
    await register('t', program());
    const [reader, writer, asked] = [
      await open('t'),
      await open('t'),
      await open('t', headers, { sampling: {} }),
    ];
    assert.is(textOf(await reader.call('echo', { text: 'hi' })), 'hi');
    assert.is(textOf(await writer.call('count')), '1');
    assert.is(textOf(await asked.call('echo', { text: 'own process' })), 'own process');
    await restart(signal);
    const answers = await Promise.all([1, 2].map((id) => reader.call('echo', { text: String(id) }, { id })));
    assert.equal(answers.map(textOf), ['1', '2']);
    assert.is(textOf(await asked.call('echo', { text: 'again' })), 'again');
    assert.is((await writer.call('echo', { text: 'x' })).status, 404);
    const sessions = field(await admin('GET /gateway/sessions'), 'sessions');
    assert.is(Array.isArray(sessions) && sessions.length, 2);
  });
}

test('an unsafe call is noted before it leaves: killed at any moment, no session forgets it', async () => {
  await register('t', http());
  for (let round = 0; round < 4; round += 1) {
    const client = await open('t');
    const before = server.count('tools/call');
    const call = client.call('sleep', { ms: 30_000 }).catch(() => undefined);
    const unsafe = client.call('count').catch(() => undefined);
    await becomes(() => server.count('tools/call') >= before + 2, true);
    await restart();
    await Promise.all([call, unsafe]);
    assert.is((await client.ask('ping')).status, 404);
  }
});

test('deleted sessions, other callers, and deleted templates get their answers', async () => {
  await register('t', http());
  await register('gone', http());
  const { headers: key } = await newKey(admin, 'other');
  const other = { ...key, Authorization: undefined as never };
  const [kept, deleted, orphan] = [await open('t'), await open('t'), await open('gone')];
  assert.is(await deleted.close(), 200);
  await restart();
  assert.is((await deleted.ask('ping')).status, 404);
  assert.is((await kept.ask('ping', {}, { headers: other })).status, 404);
  assert.is((await kept.ask('ping')).status, 200);
  await admin('DELETE /gateway/deregister/gone/a');
  await admin('DELETE /gateway/templates/gone');
  assert.is(
    (await orphan.notify('notifications/custom')).status,
    404,
    'as for any path of a deleted template',
  );
  await restart();
  assert.is((await kept.ask('ping')).status, 200, 'a second restart');
  assert.is(await kept.close(), 200);
  assert.is((await kept.ask('ping')).status, 404);
});

test('with cluster.recover off every session ends with the gateway', async () => {
  await register('t', http());
  const client = await open('t');
  await kill();
  await start({ GATEWAY_CLUSTER_RECOVER: 'false' });
  assert.is((await client.ask('ping')).status, 404);
});

test('the client of the official SDK continues: calls, and notifications on its stream', async () => {
  const everything = await startEverything({ era: 'legacy' });
  try {
    await register('t', { id: 'a', endpoint: everything.url }, { session_failover: 'always' });
    const client = new Client({ name: 'spec', version: '1' });
    const updates: string[] = [];
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => {
      updates.push(params.uri);
    });
    const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp/t`), {
      requestInit: { headers },
      reconnectionOptions: {
        initialReconnectionDelay: 100,
        maxReconnectionDelay: 500,
        reconnectionDelayGrowFactor: 1.2,
        maxRetries: 100,
      },
    });
    await client.connect(transport as never);
    const { sessionId } = transport;
    await client.subscribeResource({ uri: WATCHED_URI });
    await delay(WRITTEN_MS);
    await restart();
    const { tools } = await client.listTools();
    assert.ok(tools.length > 0);
    assert.is(transport.sessionId, sessionId);
    await becomes(() => updates.length > 0, true);
    const seen = updates.length;
    await client.callTool({ name: 'test_trigger_resource_update', arguments: {} });
    await becomes(() => updates.length > seen, true);
    await client.close();
  } finally {
    await everything.close();
  }
});

test.run();
