// Real processes: which ones count as running in a group, a parent that gets SIGKILL, and children that ignore SIGTERM.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import * as assert from 'uvu/assert';
import { ProcessTable } from '../../src/programs/process-table.ts';
import { Reaper } from '../../src/programs/reaper.ts';
import { until } from '../helpers/eventually.ts';
import { isRunning } from '../helpers/programs/processes.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('reaper');
const posix = test.needs(process.platform !== 'win32', 'Windows knows no process groups');

const MODULE = new URL('../../src/programs/reaper.ts', import.meta.url).href;
/** Larger than any process id. */
const UNUSED_PID = 2 ** 22 + 1;

/** Ignores the end of its input and SIGTERM. */
const STUBBORN = `
  process.on('SIGTERM', () => {});
  setInterval(() => {}, 60_000);
  process.stdin.resume().on('end', () => {});
`;

/** Starts two such children, forgets the first, and prints the process ids. */
const PARENT = `
  import { spawn } from 'node:child_process';
  import { once } from 'node:events';
  const { Reaper } = await import(process.argv[1]);
  const reaper = new Reaper({ waitsMs: [0, 1_000] });
  const children = [1, 2].map(() => {
    const child = spawn(process.execPath, ['-e', process.argv[2]], { detached: true, stdio: 'pipe' });
    reaper.watch(child.pid);
    return child;
  });
  reaper.forget(children[0].pid);
  await Promise.all(children.map((child) => once(child, 'spawn')));
  console.log(JSON.stringify([reaper.pid, ...children.map(({ pid }) => pid)]));
  setInterval(() => {}, 60_000);
`;

posix('the reaper ends watched children when their parent is killed, and then itself', async () => {
  const parent = spawn(process.execPath, ['--input-type=module', '-e', PARENT, MODULE, STUBBORN], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [shell, forgotten, watched] = await pidsOf(parent);
  try {
    for (const pid of [shell, forgotten, watched]) assert.ok(isRunning(pid));
    const environment =
      process.platform === 'linux' ? readFileSync(`/proc/${shell}/environ`, 'utf8') : 'PATH=';
    assert.match(environment, /^PATH=[^\0]*\0?$/);
    parent.kill('SIGKILL');
    await until(() => !isRunning(watched) && !isRunning(shell), 'they have ended');
    assert.ok(isRunning(forgotten));
  } finally {
    for (const pid of [forgotten, watched]) if (isRunning(pid)) process.kill(pid, 'SIGKILL');
  }
});

posix(
  'the reaper has a shell while there are children, and replaces it when it is killed, at the next child or a second later',
  async () => {
    const reaper = new Reaper();
    assert.is(reaper.pid, undefined);
    reaper.watch(UNUSED_PID + 1);
    const { pid: first } = reaper;
    reaper.watch(UNUSED_PID + 2);
    assert.is(reaper.pid, first);
    process.kill(Number(first), 'SIGKILL');
    await until(() => reaper.pid === undefined, 'its end is known');
    reaper.watch(UNUSED_PID + 3);
    const second = Number(reaper.pid);
    assert.is.not(second, first);
    process.kill(second, 'SIGKILL');
    await until(() => ![undefined, second].includes(reaper.pid), 'it is replaced without a child');
    const third = Number(reaper.pid);
    for (const n of [1, 2, 3]) reaper.forget(UNUSED_PID + n);
    assert.is(reaper.pid, undefined);
    await until(() => !isRunning(third), 'it has nothing to wait for');
  },
);

posix('a reaper that cannot start a shell leaves the children alone, and tries once per second', async () => {
  const text = `
    import childProcess from 'node:child_process';
    import { syncBuiltinESMExports } from 'node:module';
    import { mock } from 'node:test';
    mock.timers.enable({ apis: ['setTimeout'] });
    const { spawn } = childProcess;
    let starts = 0;
    for (const failing of [() => { starts += 1; throw new Error('EPERM'); }, (...words) => Object.assign(spawn(...words), { stdin: undefined })]) {
      childProcess.spawn = failing;
      syncBuiltinESMExports();
      const { Reaper } = await import(process.argv[1] + '?' + failing.length);
      const reaper = new Reaper();
      reaper.watch(${UNUSED_PID});
      reaper.watch(${UNUSED_PID + 1});
      mock.timers.tick(1_000);
      if (starts !== 3) process.exit(1);
      reaper.forget(${UNUSED_PID});
      reaper.forget(${UNUSED_PID + 1});
    }
  `;
  const program = spawn(process.execPath, ['--input-type=module', '-e', text, MODULE], { stdio: 'inherit' });
  assert.equal(await once(program, 'exit'), [0, null]);
});

posix('a zombie does not count as running in its group', async () => {
  // `sleep` replaces the shell and never reaps its child.
  const leader = spawn('sh', ['-c', 'true & echo $!; exec sleep 60'], { detached: true, stdio: 'pipe' });
  const [output] = await once(leader.stdout, 'data');
  const member = Number(String(output));
  await until(() => !isRunning(member), 'the member has ended');
  const processes = new ProcessTable();
  assert.ok(await processes.isRunning(Number(leader.pid)));
  leader.kill('SIGKILL');
  await once(leader, 'exit');
  assert.not(await processes.isRunning(Number(leader.pid)));
});

posix(
  'programs do not wait without a former process, nor where the pipe cannot be made, which a warning names',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'stagedoor-reaper-'));
    try {
      writeFileSync(join(folder, 'file'), '');
      const lines: string[] = [];
      const say = (line: string) => lines.push(line);
      const reaperOf = (name: string) =>
        new Reaper({ pipe: { path: join(folder, name), onNotice: say, onWarning: say } });
      for (const name of ['file', 'file/pipe']) await reaperOf(name).untilFree();
      assert.is(lines.length, 2);
      for (const line of lines) assert.match(line, join(folder, 'file'));
      for (const attempt of ['made', 'left by the first']) {
        const reaper = reaperOf('new/pipe');
        await reaper.untilFree();
        assert.is(reaper.untilFree(), undefined, attempt);
        reaper.close();
      }
      assert.is(lines.length, 2);
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);

posix('programs wait for the reaper of a former process, which ends with its last group', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'stagedoor-reaper-'));
  const lines: string[] = [];
  const pipe = {
    path: join(folder, 'pipe'),
    onNotice: (line: string) => lines.push(line),
    onWarning: (line: string) => lines.push(line),
  };
  const child = spawn(process.execPath, ['-e', STUBBORN], { detached: true, stdio: 'pipe' });
  try {
    const former = new Reaper({ waitsMs: [60_000, 60_000], pipe });
    await former.untilFree();
    former.watch(Number(child.pid));
    former.close();
    const next = new Reaper({ pipe });
    const free = next.untilFree();
    child.kill('SIGKILL');
    await once(child, 'exit');
    former.forget(Number(child.pid));
    await free;
    next.close();
    assert.is(lines.length, 1);
    assert.match(String(lines), 'former process');
  } finally {
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true });
  }
});

async function pidsOf(parent: ChildProcess): Promise<[number, number, number]> {
  assert.ok(parent.stdout);
  const [first] = await once(createInterface(parent.stdout), 'line');
  return JSON.parse(first);
}

test.run();
