// A gateway with several workers: real processes that share one port, on PostgreSQL and on SQLite. Sessions are used at each of them, and go
// on when a worker is killed.

import { readdirSync } from 'node:fs';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { everythingProgram, startEverything } from '../../fixtures/everything-server.ts';
import { stdioServerPath } from '../../fixtures/programs.ts';
import { newKey, toolText } from '../../helpers/caller.ts';
import { becomes, eventually } from '../../helpers/eventually.ts';
import { LegacyClient, textOf } from '../../helpers/mcp-client.ts';
import { GUARDED, type McpHarness, register, startGuarded } from '../../helpers/mcp-program.ts';
import { canFindProcesses, isRunning, NO_PROCESSES, readProcessFile } from '../../helpers/processes.ts';
import { Program } from '../../helpers/program.ts';
import { freshDatabase, postgresql } from '../../helpers/services.ts';
import { suite } from '../../helpers/suite.ts';
import { capabilities } from './mcp-nodes.ts';

const server = await postgresql();
const test = suite('journey: workers of one gateway', { timeoutMs: 240_000 });
const opened: (() => unknown)[] = [];
const SIMPLE = 'This is a simple text response for testing.';
const SECRET = 'a secret of these workers, 32 bytes or more';
let backend: Awaited<ReturnType<typeof startEverything>>;

test.before(async () => {
  backend = await startEverything({ era: 'legacy' });
  opened.unshift(() => backend.close());
});
test.after(async () => {
  for (const close of opened) await close();
});

const databases: readonly (readonly [name: string, open: () => Promise<string>, isThere: boolean])[] = [
  ['SQLite', async () => 'sqlite:///gateway.db', true],
  [
    'PostgreSQL',
    async () => {
      const { url, drop } = await freshDatabase({ url: server.url ?? '' });
      opened.unshift(drop);
      return url;
    },
    server.url !== undefined,
  ],
];

for (const [name, open, isThere] of databases) {
  const onDatabase = test.needs(isThere, server.skip);
  let gateway: Workers;

  onDatabase(`${name}: each worker serves the sessions of all, on one port`, async () => {
    gateway = await start({ GATEWAY_DATABASE_URL: await open() });
    await becomes(() => gateway.states(), ['1 live', '2 live']);
    for (const address of await gateway.addresses())
      assert.match(address, name === 'SQLite' ? /^unix:.*\/stagedoor-workers-\w+\/[12]$/ : /^http:/);
    const clients = await gateway.clients(4);
    for (const { sessionId } of clients)
      for (let n = 0; n < 4; n += 1) assert.equal(await gateway.call(sessionId), [200, SIMPLE]);
    const entries = () => [
      ...gateway.program.err.matchAll(/"worker":(\d),"method":"POST","path":"\/mcp\/legacy"/g),
    ];
    await becomes(() => [...new Set(entries().map(([, worker]) => worker))].sort(), ['1', '2']);
  });

  onDatabase(`${name}: a program runs once, and each worker uses it`, async () => {
    const program = everythingProgram();
    await register(gateway.admin, 'programs', [{ id: 'one', ...program }]);
    for (let n = 0; n < 6; n += 1) assert.equal(await gateway.callTool('programs'), [200, SIMPLE]);
    const file = program.args[0] ?? '';
    const isProgram = (pid: number) => readProcessFile(pid, 'cmdline').includes(file);
    assert.is(gateway.program.descendants().filter(isProgram).length, 1);
    // At once, so over several connections, each at the next worker.
    for (const command of ['drain', 'resume']) {
      const at = `POST /gateway/instances/programs/one/${command}`;
      const answers = await Promise.all(Array.from({ length: 6 }, () => gateway.admin(at)));
      assert.equal([...new Set(answers.map(({ status }) => status))], [200], command);
    }
  });

  onDatabase(`${name}: one scrape has the series of all workers`, async () => {
    const isOfAll = (text: string) =>
      [1, 2].every((worker) => new RegExp(`^stagedoor_\\w+\\{.*worker="${worker}".*\\} `, 'm').test(text));
    // A worker that does not answer within a second is missing.
    const text = await eventually(() => gateway.metrics(), isOfAll);
    assert.ok(isOfAll(text), text);
    const heads = text.match(/^# TYPE (\S+)/gm) ?? [];
    assert.is(new Set(heads).size, heads.length, 'each metric stands together');
  });

  onDatabase(`${name}: a worker that is silent is killed`, async () => {
    const [, second] = gateway.pids();
    process.kill(second, 'SIGSTOP');
    const asked = Promise.allSettled(Array.from({ length: 4 }, () => gateway.metrics()));
    await gateway.program.complains(/worker 2 did not answer for 8 s: it is killed/);
    const cut = (await asked).filter(({ status }) => status === 'rejected');
    assert.equal(cut, [], 'the connection that it had not taken goes to the other one');
    await becomes(() => gateway.pids()[1] !== second, true);
    await becomes(() => gateway.states(), ['1 live', '2 live']);
  });

  onDatabase(`${name}: a worker is killed; its sessions go on, and it is started again`, async () => {
    const clients = await gateway.clients(6);
    const before = gateway.pids();
    process.kill(before[0], 'SIGKILL');
    await becomes(() => isRunning(before[0]), false);
    await delay(200); // the other one sees that its connections have ended
    const startedAtMs = performance.now();
    for (const { sessionId } of clients) assert.equal(await gateway.call(sessionId), [200, SIMPLE]);
    assert.ok(performance.now() - startedAtMs < 10_000, 'not after the expiry of its row');
    await becomes(() => gateway.pids()[0] !== before[0], true);
    await becomes(() => gateway.states(), ['1 live', '2 live']);
    assert.is(gateway.pids()[1], before[1], 'the other one is still the same process');
    for (const { sessionId } of clients)
      for (let n = 0; n < 3; n += 1) assert.equal(await gateway.call(sessionId), [200, SIMPLE]);
  });

  onDatabase(`${name}: SIGTERM to the supervisor ends all in order, with exit code 0`, async () => {
    const pids = gateway.pids();
    gateway.program.signal('SIGTERM');
    assert.equal(await gateway.program.end(), { code: 0, signal: null });
    const stops = [...gateway.program.err.matchAll(/"duration_ms":(\d+),"msg":"stopped"/g)];
    assert.is(stops.length, 2);
    for (const [, durationMs] of stops)
      assert.ok(Number(durationMs) < 3_000, 'no wait for reads of the members');
    assert.equal(pids.filter(isRunning), []);
    assert.equal(socketFolders(gateway.program), []);
  });
}

const onLinux = test.needs(canFindProcesses, NO_PROCESSES);

onLinux('the supervisor is killed: its workers end, with their programs', async () => {
  const gateway = await start({ GATEWAY_DATABASE_URL: 'sqlite:///gateway.db' });
  await register(gateway.admin, 'programs', [{ id: 'one', ...everythingProgram() }]);
  assert.is(socketFolders(gateway.program).length, 1);
  gateway.program.signal('SIGKILL');
  assert.equal(await gateway.program.survivors(), []);
  assert.equal(socketFolders(gateway.program), []);
});

onLinux('the supervisor is killed: a worker that hangs is killed 10 s later', async () => {
  const gateway = await start({ GATEWAY_DATABASE_URL: 'sqlite:///gateway.db' });
  const [first, second] = gateway.pids();
  process.kill(second, 'SIGSTOP');
  gateway.program.signal('SIGKILL');
  const killedAtMs = performance.now();
  await becomes(() => isRunning(first), false);
  assert.ok(isRunning(second));
  await becomes(() => isRunning(second), false, 20_000);
  assert.ok(performance.now() - killedAtMs > 9_000, 'a worker that is only slow has its time');
  await becomes(() => gateway.program.descendants(), []);
});

onLinux('the supervisor is killed: a worker with a call in flight ends after it', async () => {
  const gateway = await start({ GATEWAY_DATABASE_URL: 'sqlite:///gateway.db' });
  await register(gateway.admin, 'programs', [
    { id: 'one', command: process.execPath, args: [stdioServerPath] },
  ]);
  const calling = gateway.admin('POST /mcp/programs/tools/call', {
    name: 'count',
    arguments: { ms: 12_000 },
  });
  await delay(500);
  gateway.program.signal('SIGKILL');
  assert.is((await calling).status, 200);
  assert.equal(await gateway.program.survivors(), []);
});

onLinux('Ctrl-C in a terminal: all end in order, and none by the signal itself', async () => {
  const gateway = await start({ GATEWAY_DATABASE_URL: 'sqlite:///gateway.db' }, true);
  await register(gateway.admin, 'programs', [{ id: 'one', ...everythingProgram() }]);
  gateway.program.signalGroup('SIGINT');
  assert.equal(await gateway.program.end(), { code: 0, signal: null });
  assert.is([...gateway.program.err.matchAll(/"msg":"stopped"/g)].length, 2);
  assert.equal(await gateway.program.survivors(), []);
});

onLinux('a worker that hangs before its first sign of life is killed', async () => {
  const gateway = await start({ GATEWAY_DATABASE_URL: 'sqlite:///gateway.db' });
  const [first, second] = gateway.pids();
  const others = new Set(gateway.program.descendants());
  const isWorker = (pid: number) =>
    !others.has(pid) && readProcessFile(pid, 'cmdline').includes('stagedoor.mjs');
  process.kill(second, 'SIGKILL');
  const next = await eventually(async () => gateway.program.descendants().find(isWorker), Boolean);
  process.kill(next ?? 0, 'SIGSTOP');
  await gateway.program.complains(/worker 2 gave no sign of life for 60 s: it is killed/, 90_000);
  await becomes(() => gateway.states(), ['1 live', '2 live']);
  assert.is(gateway.pids()[0], first, 'the other one is still the same process');
});

onLinux(
  'a worker that ends again and again is started with growing delays, and each call is served meanwhile',
  async () => {
    const gateway = await start({ GATEWAY_DATABASE_URL: 'sqlite:///gateway.db' });
    const [client] = await gateway.clients(1);
    const serves = async () => {
      for (let n = 0; n < 3; n += 1) {
        assert.equal(await gateway.callTool('legacy'), [200, SIMPLE]);
        assert.equal(await gateway.call(client?.sessionId ?? ''), [200, SIMPLE]);
      }
    };
    const delays: string[] = [];
    for (const when of ['at once', 'in 1 s', 'in 2 s', 'in 4 s']) {
      const [, second] = gateway.pids();
      process.kill(second, 'SIGKILL');
      delays.push(when);
      await gateway.program.complains(
        new RegExp(`worker 2 has ended \\(SIGKILL\\); it is started again ${when}`),
      );
      await serves();
      await becomes(async () => {
        await serves();
        return gateway.pids()[1] !== second;
      }, true);
    }
    const named = gateway.program.err.matchAll(
      /worker 2 has ended \(SIGKILL\); it is started again ([^"]+)/g,
    );
    assert.equal(
      [...named].map(([, when]) => when),
      delays,
    );
    await serves();
  },
);

onLinux('a background gateway with workers is started and stopped', async () => {
  const env = { GATEWAY_DATABASE_URL: 'sqlite:///gateway.db' };
  const starter = new Program(['gateway', 'start', '--background', '--port', '0', '--workers', '2'], { env });
  assert.equal(await starter.end(60_000), { code: 0, signal: null }); // two starts, one after the other
  const folder = starter.home;
  const stopping = new Program(['gateway', 'stop'], { env, folder });
  assert.equal(await stopping.end(), { code: 0, signal: null }, stopping.err);
  assert.equal(await starter.survivors(), []);
  await stopping.remove();
  await starter.remove();
});

test('workers need a database that they share', async () => {
  const program = new Program(['gateway', 'start', '--port', '0', '--workers', '2']);
  assert.equal(await program.end(), { code: 2, signal: null });
  assert.match(program.err, /2 workers need a database that they share/);
  await program.remove();
});

test('a start that fails ends as that of one process', async () => {
  const taken = new Program(['gateway', 'start', '--port', '0']);
  const { port } = new URL(await taken.url());
  const env = { GATEWAY_DATABASE_URL: 'sqlite:///gateway.db' };
  const program = new Program(['gateway', 'start', '--port', port, '--workers', '2'], { env });
  assert.equal(await program.end(), { code: 2, signal: null });
  assert.match(program.err, /port \d+ on 127\.0\.0\.1 is already in use/);
  await program.remove();
  await taken.remove();
});

test.run();

interface Workers extends McpHarness {
  /** Process ids, by number. */
  pids(): [number, number];
  /** Number and state of each worker that has not ended, sorted. */
  states(): Promise<string[]>;
  /** Of the peer channel of each. */
  addresses(): Promise<string[]>;
  clients(count: number): Promise<LegacyClient[]>;
  /** Status and text of a call without a session, over a connection of its own. */
  callTool(template: string): Promise<readonly unknown[]>;
  metrics(): Promise<string>;
  /** Status and text of a call in this session, over a connection of its own. */
  call(sessionId: string): Promise<readonly unknown[]>;
}

/** The folders of socket files that are there. */
function socketFolders({ home }: Program): string[] {
  return readdirSync(home).filter((name) => name.startsWith('stagedoor-workers-'));
}

/** A gateway with two workers, which serves the template `legacy`. */
async function start(env: Readonly<Record<string, string>>, isGroup = false): Promise<Workers> {
  const harness = await startGuarded({
    env: { ...GUARDED, GATEWAY_SECRET_KEY: SECRET, GATEWAY_WORKERS: '2', ...env },
    isGroup,
  });
  opened.unshift(harness.remove);
  const { program, url, wire, admin } = harness;
  await program.complains(/worker 2 is ready/);
  const { headers } = await newKey(admin, 'clients');
  await register(admin, 'legacy', [{ id: 'one', endpoint: backend.url }]);
  const nodes = async (): Promise<{ id: string; state: string; address: string }[]> => {
    const answer = await ask(url, 'GET', '/gateway/nodes', { ...headers });
    return Object(JSON.parse(answer.body)).nodes;
  };
  const pidOf = (worker: number): number => {
    const lines = [...program.err.matchAll(/"pid":(\d+),"msg":"worker (\d) is ready"/g)];
    return Number(lines.findLast(([, , number]) => Number(number) === worker)?.[1]);
  };
  return {
    ...harness,
    pids: () => [pidOf(1), pidOf(2)],
    states: async () =>
      (await nodes())
        .filter(({ state }) => state !== 'ended')
        .map(({ id, state }) => `${id.split('/')[1]} ${state}`)
        .sort(),
    addresses: async () => (await nodes()).map(({ address }) => address),
    clients: (count) => {
      const one = () => LegacyClient.open(wire, '/mcp/legacy', { capabilities, headers });
      return Promise.all(Array.from({ length: count }, one));
    },
    metrics: async () => (await ask(url, 'GET', '/metrics', headers)).body,
    callTool: async (template) => {
      const call = JSON.stringify({ name: 'test_simple_text', arguments: {} });
      const { status, body } = await ask(url, 'POST', `/mcp/${template}/tools/call`, headers, call);
      return [
        status,
        status === 200
          ? toolText({ status, body: JSON.parse(body), headers: new Headers(), tookMs: 0 })
          : body,
      ];
    },
    call: async (sessionId) => {
      const sent = { ...headers, 'Mcp-Session-Id': sessionId };
      const params = { name: 'test_simple_text', arguments: {} };
      const message = { jsonrpc: '2.0', id: Math.random().toString(), method: 'tools/call', params };
      const { status, body } = await ask(url, 'POST', '/mcp/legacy', sent, JSON.stringify(message));
      const json = /^data: (.+)$/m.exec(body)?.[1] ?? body;
      return [status, status === 200 ? textOf(JSON.parse(json)) : body];
    },
  };
}

/** Over a new connection, which goes to the next worker. */
async function ask(
  url: string,
  method: string,
  path: string,
  credentials: Readonly<Record<string, string>>,
  body?: string,
): Promise<{ readonly status: number | undefined; readonly body: string }> {
  const headers = {
    ...credentials,
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
  };
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number | undefined; body: string }>();
  const sent = request(`${url}${path}`, { method, headers, agent: false }, (response) => {
    text(response).then((read) => resolve({ status: response.statusCode, body: read }), reject);
  });
  sent.once('error', reject);
  sent.end(body);
  return promise;
}
