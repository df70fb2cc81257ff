// Workers of one gateway that hang or end, supervisors that end before them, and starts and stops of both: real processes, on SQLite.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { everythingProgram } from '../../../fixtures/everything-server.ts';
import { stdioServerPath } from '../../../fixtures/programs.ts';
import { becomes, eventually } from '../../../helpers/eventually.ts';
import { register } from '../../../helpers/programs/mcp-program.ts';
import {
  canFindProcesses,
  isRunning,
  NO_PROCESSES,
  readProcessFile,
} from '../../../helpers/programs/processes.ts';
import { Program } from '../../../helpers/programs/program.ts';
import { suite } from '../../../helpers/suite.ts';
import { SIMPLE, socketFolders, workersOf } from './gateway-of-workers.ts';

const test = suite('journey: ends of workers', { timeoutMs: 240_000 });
const { start } = workersOf(test);
const onLinux = test.needs(canFindProcesses, NO_PROCESSES);

onLinux('the supervisor is killed: its workers end, with their programs', async () => {
  const gateway = await start({ GATEWAY_DATABASE_URL: 'sqlite:///gateway.db' });
  await register(gateway.admin, 'programs', [{ id: 'one', ...everythingProgram() }]);
  assert.is(socketFolders(gateway.program).length, 1);
  gateway.program.signal('SIGKILL');
  assert.equal(await gateway.program.survivors(), []);
  assert.equal(socketFolders(gateway.program), []);
});

onLinux(
  'a hangup without a terminal, as under nohup, ends nothing: a killed worker is started again',
  async () => {
    const gateway = await start({ GATEWAY_DATABASE_URL: 'sqlite:///gateway.db' });
    gateway.program.signal('SIGHUP');
    const [first] = gateway.pids();
    process.kill(first, 'SIGKILL');
    await gateway.program.complains(/worker 1 has ended \(SIGKILL\); it is started again/);
    await becomes(() => gateway.pids()[0] !== first && gateway.pids().length === 2, true);
  },
);

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

onLinux('SIGUSR1, which a program may send: no process opens an inspector, and none ends', async () => {
  const gateway = await start({ GATEWAY_DATABASE_URL: 'sqlite:///gateway.db' });
  for (const pid of [gateway.program.process.pid, ...gateway.pids()]) process.kill(Number(pid), 'SIGUSR1');
  await register(gateway.admin, 'programs', [{ id: 'one', ...everythingProgram() }]);
  assert.equal(await gateway.states(), ['1 live', '2 live']);
  gateway.program.signal('SIGTERM');
  assert.equal(await gateway.program.end(), { code: 0, signal: null });
  assert.not.match(gateway.program.err, /Debugger/);
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
  // Not a copy of the supervisor that is about to run something: it would wait for the copy.
  const isWorker = (pid: number) =>
    !others.has(pid) && readProcessFile(pid, 'environ').includes('STAGEDOOR_WORKER={"number":2');
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

onLinux('a worker for which the machine has no process now is started again later', async () => {
  const gateway = await start({ GATEWAY_DATABASE_URL: 'sqlite:///gateway.db' });
  const [first, second] = gateway.pids();
  const limitFiles = (most: string) =>
    execFileSync('prlimit', ['--pid', String(gateway.program.process.pid), `--nofile=${most}:`]);
  const isWithoutProcess = (times: number) => {
    const ends = gateway.program.err.match(
      /worker 2 has ended \(spawn \S+ EMFILE\); it is started again in \d+ s/g,
    );
    return (ends?.length ?? 0) >= times;
  };
  limitFiles('5');
  process.kill(second, 'SIGKILL');
  await becomes(() => isWithoutProcess(2), true);
  limitFiles('1024');
  await becomes(() => gateway.pids()[1] !== second, true);
  assert.is(gateway.pids()[0], first, 'the other one is still the same process');
  // A stop while there is none.
  limitFiles('5');
  process.kill(gateway.pids()[1], 'SIGKILL');
  await becomes(() => isWithoutProcess(3), true);
  gateway.program.signal('SIGTERM');
  assert.equal(await gateway.program.end(), { code: 0, signal: null });
});

onLinux(
  'a worker that finds wrong settings says so, is started again, and serves once they are right',
  async () => {
    const gateway = await start({ GATEWAY_DATABASE_URL: 'sqlite:///gateway.db' });
    const file = join(gateway.program.home, 'gateway.yaml');
    const [, second] = gateway.pids();
    writeFileSync(file, 'workers: [2');
    process.kill(second, 'SIGKILL');
    await gateway.program.complains(/"reason":"gateway.yaml: [^"]+","msg":"worker 2 cannot start"/);
    await gateway.program.complains(/worker 2 has ended \(exit code 1\); it is started again in 1 s/);
    assert.equal(await gateway.callTool('legacy'), [200, SIMPLE]);
    rmSync(file);
    await becomes(() => gateway.states(), ['1 live', '2 live']);
  },
);

onLinux(
  'a first worker that is started again serves the registry as it is while the file has a fault',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'stagedoor-registry-'));
    const file = join(folder, 'registry.json');
    writeFileSync(file, JSON.stringify({ servers: { listed: everythingProgram() } }));
    const gateway = await start({
      GATEWAY_DATABASE_URL: 'sqlite:///gateway.db',
      GATEWAY_REGISTRY_FILE: file,
    });
    writeFileSync(file, '{"servers": {');
    process.kill(gateway.pids()[0], 'SIGKILL');
    await gateway.program.complains(/registry\.json: not JSON: [^"]+; its instances are left unchanged/);
    await becomes(() => gateway.program.err.match(/worker 1 is ready/g)?.length, 2);
    assert.equal(await gateway.states(), ['1 live', '2 live']);
    assert.is((await gateway.admin('GET /gateway/templates/listed')).status, 200);
    rmSync(folder, { recursive: true });
  },
);

onLinux('a worker that is started again makes no database in the place of one that is gone', async () => {
  const gateway = await start({ GATEWAY_DATABASE_URL: 'sqlite:///gateway.db' });
  const { home } = gateway.program;
  const files = readdirSync(home).filter((name) => /^gateway\.db(-\w+)?$/.test(name));
  const aside = join(home, 'aside');
  mkdirSync(aside);
  for (const file of files) renameSync(join(home, file), join(aside, file));
  // The first one makes the database at the start of the gateway.
  process.kill(gateway.pids()[0], 'SIGKILL');
  await gateway.program.complains(
    /"reason":"there is no database [^"]+: put it back, or start the gateway again","msg":"worker 1 cannot start"/,
  );
  assert.not.ok(existsSync(join(home, 'gateway.db')));
  for (const file of files) renameSync(join(aside, file), join(home, file));
  await becomes(() => gateway.program.err.match(/worker 1 is ready/g)?.length, 2);
  for (let n = 0; n < 4; n += 1) assert.equal(await gateway.callTool('legacy'), [200, SIMPLE]);
});

const OWN_SECRET = 'the first secret of this gateway: 32 bytes';
const OTHER_SECRET = 'another secret than before: 32 bytes long';
for (const [what, written] of [
  ['another secret', OTHER_SECRET],
  ['a secret that its gateway does not know yet', `${OTHER_SECRET},${OWN_SECRET}`],
] as const)
  onLinux(`a worker that would sign with ${what} does not serve, until the first one is back`, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'stagedoor-secret-'));
    const file = join(folder, 'secret');
    const write = (text: string): void => writeFileSync(file, text, { mode: 0o600 });
    write(OWN_SECRET);
    const gateway = await start({
      GATEWAY_DATABASE_URL: 'sqlite:///gateway.db',
      GATEWAY_SECRET_KEY: '',
      GATEWAY_SECRET_KEY_FILE: file,
    });
    write(written);
    process.kill(gateway.pids()[1], 'SIGKILL');
    await gateway.program.complains(
      /"reason":"the secret differs from the one that the gateway uses, [^"]+","msg":"worker 2 cannot start"/,
    );
    for (let n = 0; n < 4; n += 1) assert.is((await gateway.admin('GET /auth/me')).status, 200);
    write(OWN_SECRET);
    await becomes(() => gateway.states(), ['1 live', '2 live']);
    rmSync(folder, { recursive: true });
  });

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

onLinux('when all workers end at once, the gateway goes on at the port that it had picked', async () => {
  const port = { GATEWAY_METRICS_PORT: '0' };
  const gateway = await start({ GATEWAY_DATABASE_URL: 'sqlite:///gateway.db', ...port });
  const scraped = /metrics are served at (\S+)\/metrics/.exec(gateway.program.err)?.[1];
  const before = gateway.pids();
  for (const pid of before) process.kill(pid, 'SIGKILL');
  await becomes(() => gateway.pids().some((pid) => before.includes(pid)), false, 60_000);
  await becomes(() => gateway.states(), ['1 live', '2 live']);
  assert.is((await fetch(`${scraped}/metrics`)).status, 200);
});

onLinux(
  'the registry file is read by the first worker alone: another one starts again whatever is in it',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'stagedoor-registry-'));
    const file = join(folder, 'registry.yaml');
    writeFileSync(file, 'templates: { named: {} }\n');
    const env = { GATEWAY_DATABASE_URL: 'sqlite:///gateway.db', MCP_GATEWAY_REGISTRY_FILE: file };
    const gateway = await start(env);
    writeFileSync(file, 'half: [written');
    const [, second] = gateway.pids();
    process.kill(second, 'SIGKILL');
    await becomes(() => gateway.pids()[1] === second, false, 60_000);
    await becomes(() => gateway.states(), ['1 live', '2 live']);
    rmSync(folder, { recursive: true });
  },
);

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
