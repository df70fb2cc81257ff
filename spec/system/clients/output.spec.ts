// Standard streams that fail: a full disk, a reader that stopped reading, a terminal that is closed. None of them may block
// the gateway, end it abruptly or keep it from ending.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readdirSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { eventually } from '../../helpers/eventually.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { freePort } from '../../helpers/network/free-port.ts';
import { binPath, PLAIN, processesWithHome } from '../../helpers/programs/program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: output', { timeoutMs: 60_000 });
const fullDisk = '/dev/full';
const onFullDisk = test.needs(existsSync(fullDisk), 'only Linux has /dev/full, a disk that is always full');
const isLinux = process.platform === 'linux';
const onTerminal = test.needs(
  isLinux && spawnSync('python3', ['-c', 'import pty']).status === 0,
  'needs Linux and python3, whose pty module makes a terminal that can be closed',
);

const running: ChildProcess[] = [];
const home = folderOfEach(test);
test.after.each(async () => {
  for (const child of running.splice(0)) child.kill('SIGKILL');
  if (isLinux) for (const pid of processesWithHome(home())) process.kill(pid, 'SIGKILL');
});

onFullDisk('the gateway serves and exits with 0 when its log cannot be written', async () => {
  const full = openSync(fullDisk, 'w');
  const { url, child } = await start(['ignore', 'pipe', full]);
  closeSync(full);
  await serves(url, 50);
  child.kill('SIGTERM');
  assert.equal(await endOf(child), [0, null]);
});

onFullDisk('a command whose output cannot be written, or only in part, exits with 1', () => {
  const printed = (script: string) => {
    const words = ['-c', script, process.execPath, binPath];
    const { status, stderr } = spawnSync('sh', words, { cwd: home(), encoding: 'utf8' });
    return { status, stderr };
  };
  const failed = (code: string) => ({
    status: 1,
    stderr: `stagedoor: standard output cannot be written (${code})\n`,
  });
  assert.equal(printed(`exec "$0" "$1" --help > ${fullDisk}`), failed('ENOSPC'));
  assert.equal(printed('ulimit -f 1; exec "$0" "$1" --help > help.txt'), failed('EFBIG'));
  assert.equal(printed('"$0" "$1" --help | head -1 > first.txt'), { status: 0, stderr: '' });
});

test('the gateway serves and exits with 0 when its log is not read', async () => {
  const { url, child } = await start(['ignore', 'pipe', 'pipe']);
  child.stdout?.resume();
  // Far more than the pipe and the backlog hold.
  await serves(`${url}/${'x'.repeat(8_000)}`, 400, 404);
  child.kill('SIGTERM');
  assert.equal(await endOf(child), [0, null]);
});

onTerminal('the demo exits with 0 and leaves nothing when its terminal is closed', async () => {
  const child = spawn('python3', ['-c', inTerminal, process.execPath, binPath], {
    cwd: home(),
    env: { PATH: process.env.PATH, HOME: home(), TMPDIR: home(), ...PLAIN },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  running.push(child);
  const said = text(child.stdout);
  await once(child, 'close');
  assert.match(await said, /^5 of 5 servers are healthy.*ended with 0 within 15 s$/s);
  assert.equal(processesWithHome(home()), []);
  const found = readdirSync(home()).filter((name) => name.startsWith('stagedoor-demo'));
  assert.equal(found, []);
});

test.run();

/** Runs the demo in a terminal of its own, closes that terminal once all servers are up, and prints how it ended. */
const inTerminal = `
import os, pty, re, sys, time
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:] + ['gateway', 'start', '--demo', '--port', '0'])
seen = b''
while b'Ctrl-C stops' not in seen:
    seen += os.read(terminal, 65536)
print(re.search(rb'\\d of \\d servers are healthy', seen).group().decode())
os.close(terminal)
for wait in range(150):
    ended, status = os.waitpid(pid, os.WNOHANG)
    if ended: break
    time.sleep(0.1)
print('ended with', os.waitstatus_to_exitcode(status), 'within 15 s' if ended else 'not at all', end='')
`;

type Standard = 'ignore' | 'pipe' | number;

/** Starts a gateway on a port that is chosen before, since it may be unable to print its port. */
async function start(stdio: [Standard, Standard, Standard]): Promise<{ url: string; child: ChildProcess }> {
  const port = await freePort();
  const child = spawn(process.execPath, [binPath, 'gateway', 'start', '--port', String(port)], {
    cwd: home(),
    env: { PATH: process.env.PATH, HOME: home(), TMPDIR: home(), ...PLAIN },
    stdio,
  });
  running.push(child);
  const url = `http://127.0.0.1:${port}`;
  const ask = () =>
    fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  assert.ok(await eventually(ask, Boolean), 'it answers');
  return { url, child };
}

/** Makes `times` requests, one at a time; asserts the status of each answer. */
async function serves(url: string, times: number, status = 200): Promise<void> {
  const path = status === 200 ? '/gateway/health' : '';
  for (let count = 0; count < times; count += 1) {
    const response = await fetch(url + path, { signal: AbortSignal.timeout(30_000) });
    await response.arrayBuffer();
    assert.is(response.status, status);
  }
}

async function endOf(child: ChildProcess): Promise<unknown[]> {
  const ended = once(child, 'exit');
  return Promise.race([ended, delay(15_000, ['it does not end'], { ref: false })]);
}
