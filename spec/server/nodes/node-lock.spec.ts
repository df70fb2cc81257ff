// Only one living process at a time may be a node of a database. Files with real processes, servers with simulated time.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { ConfigError } from '../../../src/config/config-error.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import type { SettingStore } from '../../../src/persistence/store.ts';
import { lockNodeOfFile, lockNodeOfServer, type NodeLock } from '../../../src/server/nodes/node-lock.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { thrownBy } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('lock of a node in a file', { timeoutMs: 60_000 });
const processes: ChildProcess[] = [];
const folder = folderOfEach(test);
let file = '';
test.before.each(() => {
  file = folder('gateway.db');
});
test.after.each(async () => {
  for (const process of processes.splice(0)) await killed(process);
});

test('a node has one lock until its release, also within one process and through a link to the file', async () => {
  writeFileSync(file, '');
  symlinkSync(file, folder('link.db'));
  const lock = await lockNodeOfFile(file, 'local');
  for (const path of [file, folder('link.db')])
    assert.match(String(await thrownBy(lockNodeOfFile(path, 'local'))), '--node-id');
  const beside = await lockNodeOfFile(file, 'second');
  await lock.release();
  await lock.release();
  const next = await lockNodeOfFile(file, 'local');
  for (const held of [next, beside]) await held.release();
  if (process.platform !== 'win32') assert.is(statSync(`${file}.local.claim`).mode & 0o077, 0);
});

test('refuses a node that another process has, and takes it over as soon as that is killed', async () => {
  const { outcome, child } = await startHolding('local');
  assert.is(outcome, 'held');
  const refused = await thrownBy(lockNodeOfFile(file, 'local'));
  assert.instance(refused, ConfigError);
  assert.match(String(refused), `already runs as the node "local" on the database ${file}: stop it`);
  await killed(child);
  const lock = await lockNodeOfFile(file, 'local');
  await lock.release();
});

test('gives the node to one of many processes that start at once, whatever the file contains', async () => {
  writeFileSync(`${file}.local.claim`, '');
  const outcomes = await Promise.all(Array.from({ length: 4 }, () => startHolding('local')));
  assert.equal(outcomes.map(({ outcome }) => outcome).toSorted(), ['held', 'refused', 'refused', 'refused']);
});

test('escapes the node id in the file name', async () => {
  const lock = await lockNodeOfFile(file, 'web-1:8080');
  assert.ok(statSync(folder('gateway.db.web-1%3A8080.claim')));
  await lock.release();
  const refused = await thrownBy(lockNodeOfFile(folder('missing', 'gateway.db'), 'local'));
  assert.instance(refused, ConfigError);
  assert.match(String(refused), 'ENOENT');
});

test.run();

const server = suite('lock of a node on a server');
const NODE = 'web-1:8080';
const DATABASE = 'mysql://db/mcp';
const locks: NodeLock[] = [];
server.before.each(() => mock.timers.enable({ apis: ['setTimeout', 'setInterval'] }));
server.after.each(async () => {
  for (const lock of locks.splice(0)) await lock.release();
  mock.timers.reset();
});

server('gives a released node at once, and names the living holder when it refuses one', async () => {
  const { settings } = new MemoryStore();
  const first = await lock(settings);
  await first.release();
  await pass(4_000); // it sends no heartbeat any more
  await lock(settings, 'process 7 on web-1');
  const second = thrownBy(lock(settings));
  await pass(4_000);
  const refused = await second;
  assert.instance(refused, ConfigError);
  assert.match(
    String(refused),
    'process 7 on web-1 already runs as the node "web-1:8080" on the database mysql://db/mcp: stop it, or start this one with another ' +
      '--node-id (the lock of a killed process expires after 10 s)',
  );
});

server('one of several waiting processes takes over the node of a killed process after 10 s', async () => {
  const { settings } = new MemoryStore();
  const { mortal, state } = mortalSettings(settings);
  const first = await lock(mortal, 'process 7 on web-1');
  state.isAway = true;
  const said: string[] = [];
  const waiting = [1, 2].map((pid) =>
    lockNodeOfServer(settings, NODE, {
      database: DATABASE,
      processName: `process ${pid}`,
      onNotice: (line) => said.push(line),
    }).then(
      (held) => {
        locks.push(held);
        return 'held';
      },
      () => 'refused',
    ),
  );
  await pass(9_000);
  assert.is(await Promise.race([...waiting, turn('waiting')]), 'waiting');
  await pass(1_500);
  assert.equal((await Promise.all(waiting)).toSorted(), ['held', 'refused']);
  assert.match(String(said[0]), 'belongs to process 7 on web-1, which did not release it: waiting 10 s');
  state.isAway = false;
  await first.release();
  const third = thrownBy(lock(settings));
  await pass(4_000);
  assert.instance(await third, ConfigError, 'a process releases only its own lock');
});

server('a start that is stopped waits no longer for the heartbeat', async () => {
  const { settings } = new MemoryStore();
  const { mortal, state } = mortalSettings(settings);
  await lock(mortal);
  state.isAway = true;
  const stopping = new AbortController();
  const waiting = thrownBy(lockNodeOfServer(settings, NODE, { database: DATABASE, signal: stopping.signal }));
  await pass(2_000);
  stopping.abort('stopped');
  assert.is(await Promise.race([waiting, turn('waiting')]), 'stopped');
  state.isAway = false;
});

server('keeps the node while the database is away', async () => {
  const { settings } = new MemoryStore();
  const { mortal, state } = mortalSettings(settings);
  await lock(mortal);
  state.isAway = true;
  await pass(60_000);
  state.isAway = false;
  await pass(3_500);
  const second = thrownBy(lock(settings));
  await pass(4_000);
  assert.instance(await second, ConfigError);
});

server('reports when another process has taken over the node of one that was stopped', async () => {
  const { settings } = new MemoryStore();
  const { mortal, state } = mortalSettings(settings);
  const said: string[] = [];
  locks.push(
    await lockNodeOfServer(mortal, NODE, { database: DATABASE, onNotice: (line) => said.push(line) }),
  );
  state.isAway = true;
  const next = lock(settings, 'process 8 on web-1');
  await pass(11_000);
  const taken = await next;
  state.isAway = false;
  await pass(6_500);
  await pass(12_000);
  assert.equal(said, [
    'process 8 on web-1 has taken over the node "web-1:8080": stop one of the two, because both run the programs of the node',
  ]);
  await taken.release();
  await pass(3_500);
  const third = thrownBy(lock(settings));
  await pass(4_000);
  assert.instance(await third, ConfigError, 'the first process has the node again');
});

const onLinux = server.needs(process.platform === 'linux', 'only Linux tells processes apart by their start');

onLinux('a start does not wait for a process of this machine that was killed', async () => {
  const { settings, child } = await lockOfChild();
  const said: string[] = [];
  const early = thrownBy(
    lockNodeOfServer(settings, NODE, { database: DATABASE, onNotice: (line) => said.push(line) }),
  );
  await pass(5_000);
  assert.match(String(said), 'waiting 10 s', 'it lives, though it sends no heartbeat');
  await killed(child);
  await lock(settings); // without any time
  await pass(1_000);
  assert.instance(await early, ConfigError);
});

onLinux('waits for the heartbeat of a process that may still run', async () => {
  const { settings, child, stored } = await lockOfChild();
  await killed(child);
  const { name, text } = stored();
  const row = JSON.parse(text);
  const places = [
    { ...row.place, bootId: 'of another machine' },
    { ...row.place, namespaces: 'of another container' },
    { ...row.place, pid: process.pid, startTime: startTimeOf(process.pid) },
    undefined, // a system that cannot tell
  ];
  for (const place of places) {
    await settings.exchange(name, stored().text, JSON.stringify({ ...row, place }));
    const waiting = lockNodeOfServer(settings, NODE, { database: DATABASE });
    await pass(9_000);
    assert.is(await Promise.race([waiting, turn('waiting')]), 'waiting', JSON.stringify(place));
    await pass(1_500);
    await (await waiting).release();
    await settings.exchange(name, undefined, text);
  }
  const reused = { ...row.place, pid: process.pid };
  await settings.exchange(name, text, JSON.stringify({ ...row, place: reused }));
  await lock(settings); // another process has its id by now
});

server.run();

async function lock(settings: SettingStore, processName = 'another process'): Promise<NodeLock> {
  const held = await lockNodeOfServer(settings, NODE, { database: DATABASE, processName });
  locks.push(held);
  return held;
}

/** The lock of a process that is killed soon, and sends no heartbeat. `stored` returns the row and its name. */
async function lockOfChild() {
  const { settings } = new MemoryStore();
  const child = spawn('sleep', ['60'], { stdio: 'ignore' });
  await once(child, 'spawn');
  processes.push(child);
  let last = { name: '', text: '' };
  const recorded: SettingStore = {
    ...settings,
    exchange: async (name, before, after) => {
      const isChanged = await settings.exchange(name, before, after);
      if (isChanged) last = { name, text: after ?? '' };
      return isChanged;
    },
  };
  const { mortal, state } = mortalSettings(recorded);
  locks.push(await lockNodeOfServer(mortal, NODE, { database: DATABASE, pid: child.pid ?? 0 }));
  state.isAway = true;
  return { settings: recorded, child, stored: () => last };
}

function startTimeOf(pid: number): string | undefined {
  return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[19];
}

/** Settings that one process cannot reach while they are away, as if it were stopped or its database away. */
function mortalSettings(settings: SettingStore) {
  const state = { isAway: false };
  const mortal: SettingStore = {
    ...settings,
    exchange: async (...change) => {
      if (state.isAway) throw new Error('away');
      return settings.exchange(...change);
    },
  };
  return { mortal, state };
}

/** Lets so much simulated time pass, with turns for what it wakes. */
async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 500) {
    for (let turns = 0; turns < 3; turns += 1) await turn();
    mock.timers.tick(500);
  }
  await turn();
}

/** A process that locks the node of the file and, if it gets it, holds it until it is killed. */
async function startHolding(nodeId: string): Promise<{ outcome: string; child: ChildProcess }> {
  const module = JSON.stringify(new URL('../../../src/server/nodes/node-lock.ts', import.meta.url).href);
  const script = `import { lockNodeOfFile } from ${module};
    const [file, nodeId] = process.argv.slice(1);
    globalThis.lock = await lockNodeOfFile(file, nodeId).catch(() => undefined);
    console.log(globalThis.lock === undefined ? 'refused' : 'held');
    if (globalThis.lock !== undefined) setInterval(() => {}, 1_000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script, file, nodeId], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  processes.push(child);
  const [said] = await once(child.stdout, 'data');
  return { outcome: String(said).trim(), child };
}

async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}
