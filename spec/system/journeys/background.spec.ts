// A gateway in the background: started, found, followed, restarted and stopped with commands, and killed. Each test uses a new
// folder for database and state.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { stopDaemon } from '../../../src/cli/background/start-daemon.ts';
import { recordingTerminal } from '../../cli/recording-terminal.ts';
import { becomes } from '../../helpers/eventually.ts';
import { isRunning } from '../../helpers/programs/processes.ts';
import { AS_IT_COMES, binPath, PLAIN, Program, runProgram } from '../../helpers/programs/program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('a gateway in the background');
const onPosix = test.needs(process.platform !== 'win32', 'Windows has no ulimit');
const asOthers = test.needs(
  process.getuid?.() === 0 && asNobody('/', '--version').status === 0,
  'only root starts programs as others, who may not be able to read the clone',
);
const START = ['gateway', 'start', '--background', '--port', '0'];

/** A folder in which commands run; `leave` kills the gateways that run in the background there. */
class Workspace {
  readonly folder = mkdtempSync(join(tmpdir(), 'stagedoor-background-'));
  /** Another home than that of the program that starts it, which kills all processes with its home when it ends. */
  readonly #env = { HOME: this.folder, GATEWAY_DATABASE_URL: '' };
  readonly #pids = new Set<number>();

  run(...words: string[]) {
    return this.runWith({}, ...words);
  }

  runWith(env: Readonly<Record<string, string>>, ...words: string[]) {
    return runProgram(words, { env: { ...this.#env, ...env }, folder: this.folder });
  }

  open(...words: string[]): Program {
    return new Program(words, { env: this.#env, folder: this.folder });
  }

  /** Starts a gateway, and returns its pid and its URL. */
  async start(...words: string[]): Promise<{ pid: number; url: string }> {
    const { code, err, out } = await this.run(...START, ...words);
    assert.is(code, 0, `${out}\n${err}`);
    return this.running();
  }

  /** The content of the pid file. */
  running(): { pid: number; url: string } {
    const [pid, url = ''] = readFileSync(join(this.folder, 'gateway.pid'), 'utf8').split('\n');
    this.#pids.add(Number(pid));
    return { pid: Number(pid), url };
  }

  has(name: string): boolean {
    return existsSync(join(this.folder, name));
  }

  async leave(): Promise<void> {
    for (const pid of this.#pids) if (isRunning(pid)) process.kill(pid, 'SIGKILL');
    await rm(this.folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

/** Runs a command as another user. */
function asNobody(cwd: string, ...words: string[]) {
  const env = { ...PLAIN, GATEWAY_DATABASE_URL: '', PATH: process.env.PATH, HOME: '/nonexistent' };
  const place = { cwd, uid: 65_534, encoding: 'utf8', env } as const;
  return spawnSync(process.execPath, [binPath, ...words], place);
}

let workspace: Workspace;
test.before.each(() => {
  workspace = new Workspace();
});
test.after.each(() => workspace.leave());

test('is ready when the start command ends, is found in its folder, logs, and stops', async () => {
  const { code, out, err } = await workspace.run(...START);
  assert.equal([code, err], [0, '']);
  const { pid, url } = workspace.running();
  assert.match(out, `listening on ${url}`);
  assert.match(
    out,
    `running in the background: process ${pid}, log ${join(workspace.folder, 'gateway.log')}`,
  );
  assert.match(out, `its MCP clients use ${url}/mcp`);
  const ready = await fetch(`${url}/readyz`);
  await ready.arrayBuffer();
  assert.is(ready.status, 200);

  const status = await workspace.run('gateway', 'status', '--json');
  assert.is(JSON.parse(status.out).url, url);

  const logs = await workspace.run('gateway', 'logs', '--lines', '1');
  // The requests of the status are concurrent: any of them may be logged last.
  assert.match(JSON.parse(logs.out).path, /^\/gateway\/(health|registry|stats)$/);

  const stopped = await workspace.run('gateway', 'stop');
  assert.equal([stopped.code, stopped.err], [0, '']);
  assert.match(stopped.out, `stopped: process ${pid}, ${url}`);
  assert.is(isRunning(pid), false);
  assert.is(workspace.has('gateway.pid'), false);
  assert.match(readFileSync(join(workspace.folder, 'gateway.log'), 'utf8'), /stopping after SIGTERM/);
});

test('starts only once per state folder, also concurrently, and with any port and database', async () => {
  const both = await Promise.all([workspace.run(...START), workspace.run(...START)]);
  assert.equal(both.map(({ code }) => code).sort(), [0, 1]);
  assert.match(both.map(({ err }) => err).join(''), /^stagedoor: (a|another) gateway .*in the background/);
  const { pid, url } = workspace.running();
  const second = await workspace.run(...START, '--database', 'sqlite:///other.db');
  assert.is(second.code, 1);
  assert.match(second.err, `a gateway already runs in the background: ${url}, process ${pid}`);
  assert.is(workspace.has('other.db'), false);
  assert.is(workspace.running().pid, pid);
  const elsewhere = await workspace.run(...START, '--database', 'sqlite:///other.db', '--state-dir', 'other');
  assert.is(elsewhere.code, 0, elsewhere.err);
  const words = ['gateway', 'stop', '--state-dir', join(workspace.folder, 'other')];
  assert.match(elsewhere.out, `${words.join(' ')}"; its MCP clients`); // without the option, that of the folder
  const stopped = await workspace.run(...words, '--json');
  assert.is(JSON.parse(stopped.out).stopped, true);
  assert.is(isRunning(pid), true);
});

test('can be started again after it was killed, and a stop in between finds none', async () => {
  const { pid } = await workspace.start();
  process.kill(pid, 'SIGKILL');
  await becomes(() => isRunning(pid), false);
  const stopped = await workspace.run('gateway', 'stop');
  assert.is(stopped.code, 1);
  assert.match(stopped.err, `no gateway runs in the background with the state folder ${workspace.folder}`);
  assert.is.not((await workspace.start()).pid, pid);
});

test('restarts with its original options, and keeps running if the restart is impossible', async () => {
  const before = await workspace.start('--log-level', 'debug');
  const restarted = await workspace.run('gateway', 'restart', '--json');
  assert.is(restarted.code, 0, restarted.err);
  const after = workspace.running();
  assert.equal(JSON.parse(restarted.out), { pid: after.pid, url: after.url });
  assert.is.not(after.pid, before.pid);
  assert.is(isRunning(before.pid), false);
  assert.match(readFileSync(join(workspace.folder, 'gateway.pid'), 'utf8'), '"--log-level","debug"');
  const half = await workspace.run('gateway', 'restart', 'search');
  assert.equal([half.code, half.out], [2, '']);
  assert.match(half.err, /missing required argument <id>; see .* instance restart --help/);

  const file = join(workspace.folder, 'gateway.pid');
  writeFileSync(file, readFileSync(file, 'utf8').replace(workspace.folder, join(workspace.folder, 'gone')));
  const nowhere = await workspace.run('gateway', 'restart');
  assert.equal([nowhere.code, nowhere.out], [1, '']);
  assert.match(nowhere.err, /keeps running: its folder \S+\/gone is gone\n$/);
  assert.is(isRunning(after.pid), true);
});

onPosix('keeps running if the disk has no space for a start', async () => {
  const { pid } = await workspace.start();
  // A limit of files, too, takes the first bytes of a write.
  const limited = ['-c', 'ulimit -f 64 && exec "$@"', 'sh', process.execPath, binPath];
  const env = { ...process.env, ...PLAIN, GATEWAY_DATABASE_URL: '', HOME: workspace.folder };
  const { status, stderr } = spawnSync('sh', [...limited, 'gateway', 'restart'], {
    cwd: workspace.folder,
    encoding: 'utf8',
    env,
  });
  assert.is(stderr, `stagedoor: ${workspace.folder} cannot be written (EFBIG); the gateway keeps running\n`);
  assert.equal([status, isRunning(pid), workspace.running().pid], [1, true, pid]);
  assert.is(workspace.has('gateway.pid'), true);
});

asOthers('tells another user that the files of the gateway are not theirs', async () => {
  await workspace.start();
  chmodSync(workspace.folder, 0o755);
  const started = asNobody(workspace.folder, 'gateway', 'start', '--port', '0');
  assert.match(started.stderr, /gateway\.db\.local\.claim cannot be locked: EACCES: permission denied/);
  const stopped = asNobody(workspace.folder, 'gateway', 'stop');
  const file = join(workspace.folder, 'gateway.pid');
  assert.equal(stopped.stderr, `stagedoor: ${file} cannot be read: this user may not read it\n`);
  assert.equal([started.status, stopped.status], [2, 1]);
});

test('names the file with the first password, which a start without a terminal does not print', async () => {
  const started = await workspace.runWith({ GATEWAY_AUTH_ENABLED: 'true' }, ...START);
  assert.is(started.code, 0, started.err);
  workspace.running();
  const file = join(workspace.folder, 'initial-admin-password');
  assert.match(started.out, `the password of the user "admin" is in ${file}\n`);
  assert.not.match(started.out, readFileSync(file, 'utf8').trim());
});

test('restarts as the same node from a shell that does not name it', async () => {
  const started = await workspace.runWith({ GATEWAY_NODE_ID: 'blue' }, ...START);
  assert.is(started.code, 0, started.err);
  const nodeOf = () =>
    JSON.parse(readFileSync(join(workspace.folder, 'gateway.pid'), 'utf8').split('\n')[2] ?? '').nodeId;
  for (const [env, node] of [
    [{}, 'blue'],
    [{ GATEWAY_NODE_ID: 'green' }, 'green'],
    [{}, 'green'],
  ] as const) {
    workspace.running();
    const restarted = await workspace.runWith(env, 'gateway', 'restart');
    assert.equal([restarted.code, nodeOf()], [0, node], restarted.err);
    assert.ok(workspace.has(`gateway.db.${node}.claim`));
  }
  workspace.running();
});

test('reports why it cannot start, and leaves no process', async () => {
  const occupant = createServer().listen(0, '127.0.0.1');
  await once(occupant, 'listening');
  const { port } = Object(occupant.address());
  const taken = await workspace.run('gateway', 'start', '--background', '--port', String(port));
  occupant.close();
  assert.is(taken.code, 2);
  assert.match(taken.err, `port ${port} on 127.0.0.1 is already in use`);
  assert.is(workspace.has('gateway.pid'), false);
  const nowhere = await workspace.run(...START, '--database', 'sqlite:///no/such/folder/gateway.db');
  assert.is(nowhere.code, 2);
  assert.is(workspace.has('no'), false);
  const demo = await workspace.run(...START, '--demo');
  assert.is(demo.code, 2);
  assert.match(demo.err, '--background');
});

test('is ended by Ctrl-C while its start waits for the database', async () => {
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const url = `postgresql://u@127.0.0.1:${Object(silent.address()).port}/x`;
  const starting = workspace.open(...START, '--state-dir', workspace.folder, '--database', url);
  try {
    const [connection] = await once(silent, 'connection');
    connection.on('error', () => {});
    starting.signal('SIGINT');
    assert.equal(await starting.end(), { code: 130, signal: null });
    assert.match(starting.err, 'stagedoor: cancelled\n');
    assert.equal(await starting.survivors(), []);
  } finally {
    await starting.remove();
    silent.close();
  }
});

test('never logs the first password, even if its terminal is gone before it is ready', async () => {
  const env = { ...AS_IT_COMES, STAGEDOOR_BACKGROUND: '80' };
  const daemon = new Program(['gateway', 'start', '--port', '0'], { env, folder: workspace.folder });
  try {
    await becomes(async () => workspace.has('gateway.pid'), true);
    daemon.signal('SIGTERM');
    await daemon.complains(/stopping after/);
    assert.not.match(daemon.err, 'password');
    assert.is(workspace.has('initial-admin-password'), false);
  } finally {
    await daemon.remove();
  }
});

const linux = test.needs(process.platform === 'linux', 'only Linux shows that a process is a zombie');

linux('counts as ended while process 1 has not reaped it', async () => {
  const parent = spawn('sh', ['-c', 'setsid sleep 60 & echo $!; exec sleep 60']);
  const [output] = await once(parent.stdout, 'data');
  const daemon = { pid: Number(output), url: '', words: [], folder: '', graceMs: 0 };
  try {
    // A shell may reap its child; what it becomes does not.
    await becomes(() => readFileSync(`/proc/${parent.pid}/comm`, 'utf8'), 'sleep\n');
    await stopDaemon(daemon, recordingTerminal());
    assert.is(process.kill(daemon.pid, 0), true);
  } finally {
    parent.kill('SIGKILL');
  }
});

test('has a log that `logs -f` follows', async () => {
  const { url } = await workspace.start();
  const logs = workspace.open('gateway', 'logs', '-f', '-n', '0');
  try {
    for (let seen = false; !seen; ) {
      await (await fetch(`${url}/livez?look`)).arrayBuffer();
      await (await fetch(`${url}/gateway/health`)).arrayBuffer();
      seen = await logs.sees(/"path":"\/gateway\/health"/, 500).then(
        () => true,
        () => false,
      );
    }
    logs.signal('SIGINT');
    assert.equal(await logs.end(), { code: 0, signal: null });
  } finally {
    await logs.remove();
  }
});

test.run();
