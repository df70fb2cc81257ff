// The composition root with real sockets and in-process backends: what is up when, and in which order it ends.

import { once } from 'node:events';
import { chmod, mkdtemp, readdir, stat, writeFile } from 'node:fs/promises';
import { Agent, get, type IncomingMessage } from 'node:http';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pino } from 'pino';
import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { fields } from '../../src/cli/remote/answers.ts';
import { loadConfig } from '../../src/config/config.ts';
import { VERSION } from '../../src/domain/version.ts';
import type { Gateway } from '../../src/gateway/gateway.ts';
import type { RevisionChange } from '../../src/persistence/revision-watch.ts';
import { RegistryFileError } from '../../src/registry/files/registry-file.ts';
import { lockNodeOfFile } from '../../src/server/nodes/node-lock.ts';
import { logDatabase } from '../../src/server/operator-lines.ts';
import { type RunningServer, type ServerOptions, startServer } from '../../src/server/server.ts';
import { ListenError } from '../../src/server/sockets/listeners.ts';
import { HeldTool, serving } from '../helpers/backends/function-backend.ts';
import { openSession, rpc } from '../helpers/clients/mcp-messages.ts';
import { becomes, until } from '../helpers/eventually.ts';
import { folderOfAll } from '../helpers/folder.ts';
import { type Ask, send } from '../helpers/http/app.ts';
import { thrownBy } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('server');
/** No authentication, and a store in memory. */
const OPEN = { GATEWAY_AUTH_ENABLED: 'false', GATEWAY_DATABASE_URL: 'memory://' };
const cleanups: (() => unknown)[] = [];
const folder = folderOfAll(test)();
test.after.each(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

test('serves both surfaces, with the version of the package as build', async () => {
  const { urls } = await start();
  const health = fields(await (await fetch(`${urls[0]}/gateway/health`)).json());
  assert.equal([health.status, health.build], ['healthy', VERSION]);
  assert.is((await fetch(`${urls[0]}/health`)).status, 200);
  assert.is((await fetch(`${urls[0]}/readyz`)).status, 200);
});

test('lists itself as the only node', async () => {
  const { urls } = await start({ 'node-id': 'a' });
  const { nodes } = fields(await (await fetch(`${urls[0]}/gateway/nodes`)).json());
  const listed = (nodes as Record<string, unknown>[]).map((node) => [
    node.id,
    node.address,
    node.state,
    node.draining,
  ]);
  assert.equal(listed, [['a', null, 'live', false]]);
});

test('gives templates the defaults of the configuration', async () => {
  const { gateway } = await start({ strategy: 'random', 'call-timeout': '1.5' });
  assert.equal([gateway.policy.strategy, gateway.policy.callTimeoutMs], ['random', 1500]);
});

test('serves metrics and probes without credentials on a separate port, until it has closed', async () => {
  const { logged, options } = listening();
  const server = await start({ 'metrics-port': '0' }, options);
  const [url = ''] = logged.flatMap(({ msg }) => /^metrics are served at (.*)$/.exec(String(msg))?.[1] ?? []);
  assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/metrics$/);
  const versions = `stagedoor_build_info{version="2.0.0",build="${VERSION}"} 1`;
  assert.match(await (await fetch(url)).text(), versions);
  assert.is((await fetch(new URL('/health', url))).status, 404);
  assert.equal(await (await fetch(new URL('/livez', url))).json(), { status: 'alive' });
  assert.equal(await (await fetch(new URL('/readyz', url))).json(), { status: 'ready' });
  const [port] = /\d+(?=\/metrics)/.exec(url) ?? [];
  const error = await start({ 'metrics-port': String(port) }).catch((thrown: unknown) => thrown);
  assert.instance(error, ListenError);
  assert.match(String(error), `choose another with --metrics-port <port>`);
  await server.close();
  assert.is(await fetch(url).catch(() => 'closed'), 'closed');
  const plain = listening();
  await start({}, plain.options);
  assert.not.match(JSON.stringify(plain.logged), 'metrics');
});

test('a node on a free port is named after the port that it got', async () => {
  const nodes = await Promise.all(
    [{}, {}, { 'node-id': 'chosen:0' }].map(async (flags) => {
      const { gateway, urls } = await start(flags);
      await gateway.register('demo', { id: 'one', command: process.execPath, args: ['-e', ''] });
      const [server] = gateway.servers();
      return { nodeId: server?.definition.nodeId, port: new URL(urls[0] ?? '').port };
    }),
  );
  const found = nodes.map(({ nodeId }) => nodeId);
  assert.equal(found, [`${hostname()}:${nodes[0]?.port}`, `${hostname()}:${nodes[1]?.port}`, 'chosen:0']);
});

test('applies the registry file before it accepts calls, and warns of invalid entries', async () => {
  const file = join(folder, 'registry.json');
  const instances = [{ id: 'one', endpoint: 'http://127.0.0.1:9/mcp' }, { id: 'two' }];
  await writeFile(file, JSON.stringify({ templates: { demo: { instances } } }));
  const { logged, received, options } = listening();
  const { gateway, warnings } = await start({ 'registry-file': file }, options);
  const starts = received.filter((type) => type === 'instance.starting' || type === 'gateway.started');
  assert.equal([...starts, gateway.phase], ['instance.starting', 'gateway.started', 'running']);
  const known = gateway.servers().map(({ definition }) => [definition.id, definition.source]);
  assert.equal(known, [['one', 'file']]);
  const counts = { added: 1, changed: 0, removed: 0, unchanged: 0, skipped: 0, problems: 1 };
  assert.equal(logged, [{ level: 30, ...counts, msg: 'registry file applied' }]);
  assert.is(warnings.length, 1);
  assert.match(String(warnings[0]), 'templates.demo.instances[1]');
});

test('a stop during the start ends the import of a large registry file', async () => {
  const file = join(folder, 'large.json');
  const instances = Array.from({ length: 2_000 }, (_, at) => ({
    id: `i${at}`,
    endpoint: 'http://127.0.0.1:9/mcp',
  }));
  await writeFile(file, JSON.stringify({ templates: { demo: { instances } } }));
  const stop = new AbortController();
  let registered = 0;
  const onGateway = (gateway: Gateway) =>
    gateway.on('instance.registered').subscribe(() => {
      registered += 1;
      stop.abort();
    });
  const thrown = await thrownBy(start({ 'registry-file': file }, { onGateway, signal: stop.signal }));
  assert.is(thrown, stop.signal.reason);
  assert.ok(registered < 50, `${registered} instances were registered`);
});

test('a stop during the start rejects with its reason also when the gateway cannot be closed', async () => {
  const file = join(folder, 'one.json');
  await writeFile(file, '{"mcpServers": {"one": {"url": "http://127.0.0.1:9/mcp"}}}');
  const stop = new AbortController();
  const onGateway = (gateway: Gateway) => {
    const close = gateway.close.bind(gateway);
    gateway.close = async (options) => {
      await close(options);
      throw new Error('something stays open');
    };
    gateway.on('instance.registered').subscribe(() => stop.abort());
  };
  const thrown = await thrownBy(start({ 'registry-file': file }, { onGateway, signal: stop.signal }));
  assert.is(thrown, stop.signal.reason);
});

test('emits all events from the start on', async () => {
  const env = { ...OPEN, GATEWAY_DATABASE_URL: `sqlite:///${join(folder, 'restored.db')}` };
  const first = await start({}, {}, env);
  await first.gateway.register('demo', { id: 'one', endpoint: 'http://127.0.0.1:9/mcp' });
  await first.close();
  const { received, options } = listening();
  await start({}, options, env);
  assert.is(received[0], 'instance.starting');
  assert.ok(received.includes('gateway.started')); // a probe may be answered before it
});

test('does not start with a registry file that cannot be read', async () => {
  const error = await thrownBy(start({ 'registry-file': join(folder, 'nothing.json') }));
  assert.instance(error, RegistryFileError);
});

test('shows the first password also when the start fails after the first admin was created', async () => {
  const file = join(folder, 'empty.json');
  await writeFile(file, '{}');
  const write = (line: string) => {
    if (line.includes('registry file applied')) throw new Error('no space left');
  };
  const notices: string[] = [];
  const onNotice = (line: string) => void notices.push(line);
  const options = { log: pino({}, { write }), onNotice, isTerminal: true };
  const failed = start({ 'registry-file': file }, options, { GATEWAY_DATABASE_URL: 'memory://' });
  assert.match(String(await thrownBy(failed)), 'no space left');
  assert.match(notices[0] ?? '', /its password, shown only once: \S{24}$/);
});

test('starts no program and makes no database, key or first admin when the port is taken', async () => {
  const empty = await mkdtemp(join(folder, 'taken-'));
  const file = join(folder, 'commands.json');
  const script = `require('node:fs').writeFileSync(${JSON.stringify(join(empty, 'started'))}, '')`;
  const instance = { id: 'one', command: process.execPath, args: ['-e', script] };
  await writeFile(file, JSON.stringify({ templates: { demo: { instances: [instance] } } }));
  const env = { GATEWAY_DATABASE_URL: `sqlite:///${join(empty, 'gateway.db')}` };
  const flags = { port: String(await takenPort()), 'registry-file': file };
  assert.instance(await thrownBy(start(flags, {}, env)), ListenError);
  assert.equal(await readdir(empty), []);
});

test('does not migrate the database file of another gateway that runs as the same node', async () => {
  const shared = await mkdtemp(join(folder, 'shared-'));
  const file = join(shared, 'gateway.db');
  await writeFile(file, '');
  const lock = await lockNodeOfFile(file, 'local');
  const env = { GATEWAY_DATABASE_URL: `sqlite:///${file}` };
  assert.match(String(await thrownBy(start({}, {}, env))), 'already runs as the node "local"');
  assert.is((await stat(file)).size, 0);
  await lock.release();
  await start({}, {}, env);
});

test('continues without a default port that is taken, and warns of it', async () => {
  const port = await takenPort();
  const config = loadConfig({ flags: { port: '0', host: '127.0.0.1' }, env: OPEN, cwd: folder });
  const listeners = [{ host: '127.0.0.1', port, label: 'templates' as const }, ...config.listeners];
  const server = await startServer({ ...config, listeners, portsDefaulted: true });
  cleanups.push(() => server.close());
  assert.is(server.urls.length, 1);
  assert.equal(server.warnings, [`port ${port} is already in use; continuing without it`]);
});

test('closing lets a call in flight finish, is no longer ready and refuses new calls', async () => {
  const server = await start();
  const { held, call } = await holding(server);
  const answer = call();
  await until(() => held.waiting === 1, 'the call is there');
  const closed = server.close();
  // On separate connections: the client of the call may need one to answer questions of its server.
  const agent = new Agent({ keepAlive: true });
  cleanups.push(() => agent.destroy());
  const [live, notReady] = [await ask(server, agent, '/livez'), await ask(server, agent, '/readyz')];
  assert.equal([live.statusCode, notReady.statusCode, live.headers.connection], [200, 503, 'close']);
  assert.is((await call()).outcome, '503 SHUTTING_DOWN');
  held.answer();
  assert.is((await answer).text, '{"content":[{"type":"text","text":"held"}]}');
  await closed;
  assert.instance(await thrownBy(fetch(`${server.urls[0]}/livez`)), TypeError);
});

test('ends calls that outlive the grace time', async () => {
  const server = await start({ 'grace-seconds': '0.05' });
  const { held, call } = await holding(server);
  const answer = call();
  await until(() => held.waiting === 1, 'the call is there');
  await server.close();
  assert.is((await answer).status, 503);
});

test('a change of a user ends the MCP sessions of the user’s keys, and no others', async () => {
  const env = { ...OPEN, GATEWAY_AUTH_ENABLED: 'true', GATEWAY_ADMIN_PASSWORD: 'a password for the specs' };
  const { gateway, auth, urls } = await start({}, {}, env);
  await gateway.register('demo', { handler: () => ({ tools: [] }) }, { waitMs: 5_000 });
  const input = { email: 'a@localhost', password: 'correct horse', role: 'user' } as const;
  const ada = await auth.accounts.createUser({ ...input, username: 'ada' });
  const eve = await auth.accounts.createUser({ ...input, username: 'eve' });
  const app = { ask: (method: string, path: string, ask?: Ask) => send(method, `${urls[0]}${path}`, ask) };
  const open = async (ownerId: string) => {
    const { key } = await auth.accounts.createApiKey({ name: 'k', permissions: ['tools:call'], ownerId });
    const headers = await openSession(app, '/mcp/demo', { credentials: { 'x-api-key': key } });
    return async () => (await app.ask('POST', '/mcp/demo', { body: rpc('ping'), headers })).status;
  };
  const [ofAda, ofEve] = [await open(ada.id), await open(eve.id)];
  assert.equal([await ofAda(), await ofEve()], [200, 200]);
  await auth.accounts.changeUser(ada.id, { templates: ['demo'] });
  await becomes(ofAda, 404);
  assert.is(await ofEve(), 200);
});

test.needs(process.platform !== 'win32', 'files have no modes on Windows')(
  'warns of a SQLite file that other users can read, until its owner changes that',
  async () => {
    const file = join(folder, 'open.db');
    const env = { ...OPEN, GATEWAY_DATABASE_URL: 'sqlite:///open.db' };
    const warningsOf = async () => {
      const server = await start({}, {}, env);
      await server.close();
      return server.warnings;
    };
    assert.equal(await warningsOf(), []);
    await chmod(file, 0o644);
    // What was written last is in the journal, which has the mode of the file.
    assert.equal(await warningsOf(), [
      `other users can read the database: run "chmod 600 ${file} ${file}-wal"`,
    ]);
    await chmod(file, 0o600);
    assert.equal(await warningsOf(), []);
  },
);

test.run();

async function start(
  flags: Record<string, string> = {},
  options: ServerOptions = {},
  env: Record<string, string> = OPEN,
): Promise<RunningServer> {
  const config = loadConfig({ flags: { port: '0', host: '127.0.0.1', ...flags }, env, cwd: folder });
  const server = await startServer(config, options);
  cleanups.push(() => server.close());
  return server;
}

/** The log lines and events of a server, from its start on. */
function listening() {
  const logged: Record<string, unknown>[] = [];
  const log = pino({ base: null, timestamp: false }, { write: (line) => void logged.push(JSON.parse(line)) });
  const received: string[] = [];
  const onGateway = ({ events$ }: Gateway) => void events$.subscribe(({ type }) => received.push(type));
  return { logged, received, options: { log, onGateway } };
}

/** The port of another gateway. */
async function takenPort(): Promise<number> {
  const { urls } = await start();
  return Number(new URL(String(urls[0])).port);
}

/** Registers a tool that waits for the spec. */
async function holding({ gateway, urls }: RunningServer) {
  const held = new HeldTool();
  await gateway.register('slow', { id: 'one', handler: serving({ wait: held.body }) });
  const call = () => send('POST', `${urls[0]}/mcp/slow/tools/call`, { body: { name: 'wait' } });
  return { held, call };
}

async function ask(server: RunningServer, agent: Agent, path: string): Promise<IncomingMessage> {
  const [response]: IncomingMessage[] = await once(get(`${server.urls[0]}${path}`, { agent }), 'response');
  if (response === undefined) throw new Error('no response');
  await text(response);
  return response;
}

const databaseLog = suite('log of the database');

databaseLog('has one line for each loss of the database, with the reason, and one for each return', () => {
  const storeChanges$ = new Subject<RevisionChange>();
  const lines: unknown[] = [];
  const listening = logDatabase(storeChanges$, {
    error: (...line: unknown[]) => lines.push(line),
    info: (...line: unknown[]) => lines.push(line),
  });
  const gone = (reason: string) => [
    { reason },
    'the database is unavailable; known callers and instances are still served',
  ];
  storeChanges$.next({ kind: 'answered' });
  storeChanges$.next({ kind: 'changed' });
  assert.equal(lines, []);
  storeChanges$.next({ kind: 'away', reason: 'no answer within 5000 ms' });
  storeChanges$.next({ kind: 'away', reason: 'another one' });
  assert.equal(lines, [gone('no answer within 5000 ms')]);
  storeChanges$.next({ kind: 'changed' });
  storeChanges$.next({ kind: 'answered' });
  assert.equal(lines.slice(1), [['the database is available again']]);
  storeChanges$.next({ kind: 'away', reason: 'again' });
  assert.equal(lines.slice(2), [gone('again')]);
  listening.unsubscribe();
  storeChanges$.next({ kind: 'answered' });
  assert.is(lines.length, 3);
});

databaseLog.run();
