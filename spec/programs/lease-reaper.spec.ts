// Real processes: the programs of any node are killed at the end of the lease, also when their gateway is killed, and none starts later.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import * as assert from 'uvu/assert';
import { LeaseReaper } from '../../src/programs/lease-reaper.ts';
import { Reaper } from '../../src/programs/reaper.ts';
import { becomes } from '../helpers/eventually.ts';
import {
  canFindProcesses,
  isRunning,
  killNow,
  NO_PROCESSES,
  processesWhere,
} from '../helpers/programs/processes.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('lease reaper', { timeoutMs: 30_000 });
const posix = test.needs(process.platform !== 'win32', 'Windows knows no process groups');
const onLinux = test.needs(canFindProcesses, NO_PROCESSES);

const MODULES = ['lease-reaper.ts', 'reaper.ts'].map(
  (file) => new URL(`../../src/programs/${file}`, import.meta.url).href,
);
/** The shell looks twice a second; a busy machine takes longer. */
const LATE_MS = 3_000;

/** Ignores the end of its input and SIGTERM. */
const STUBBORN = "trap '' TERM; while :; do sleep 60; done";

const pids: number[] = [];
test.after.each(() => {
  for (const pid of pids.splice(0)) killNow(pid);
});

// How much earlier than the lease a program may end: without the clock of the machine the shell counts half seconds.
for (const [clock, uptime, earlyMs] of [
  ['the clock of the machine', undefined, 50],
  ['what was left of the lease', '/no/such/file', 650],
] as const) {
  posix(`by ${clock}: the lease ends a program, not earlier, and one that is renewed later`, async () => {
    const reaper = new LeaseReaper(new Reaper(), uptime);
    reaper.lease(performance.now() + 1_500);
    const pid = start(reaper);
    await becomes(() => isRunning(pid), true, LATE_MS);
    const renewedAtMs = performance.now();
    reaper.lease(renewedAtMs + 3_000);
    const endMs = (await endOf(pid, 3_000 + LATE_MS)) - renewedAtMs;
    assert.ok(endMs >= 3_000 - earlyMs, `it ended after ${endMs} ms`);
    // The shell may end it that much earlier than the lease is over.
    await becomes(() => refusalOf(reaper), 'this node may not run it any more', 2_000);
  });
}

posix('a program whose lease ends on the way to its start does not begin', async () => {
  const reaper = new LeaseReaper(new Reaper());
  reaper.lease(performance.now() + 10_000);
  const { command, args, channel } = startOf(reaper, 'echo began');
  const deadline = args.indexOf('stagedoor-start') + 2;
  const late = args.with(deadline, '0');
  const child = spawn(command, late, { stdio: ['pipe', 'pipe', 'ignore', channel], detached: true });
  const { pid = 0 } = child;
  reaper.of('one').watch(pid);
  let out = '';
  child.stdout?.on('data', (piece) => {
    out += piece;
  });
  assert.equal([...(await once(child, 'close')), out], [1, null, '']);
  reaper.of('one').forget(pid);
});

posix('after a shell that the system could not start, the next program has one', async () => {
  const code = `
    const [{ LeaseReaper }, { Reaper }] = await Promise.all([import(process.argv[1]), import(process.argv[2])]);
    const { closeSync, openSync } = await import('node:fs');
    const { setImmediate: turn } = await import('node:timers/promises');
    const reaper = new LeaseReaper(new Reaper());
    reaper.lease(performance.now() + 60_000);
    const said = [];
    const start = () => {
      try {
        said.push(reaper.of('one').start('/bin/true', []).command);
      } catch ({ message }) {
        said.push(message);
      }
    };
    const files = [];
    try {
      for (;;) files.push(openSync('/dev/null'));
    } catch {
      // no file can be opened any more
    }
    start();
    await turn();
    for (const file of files) closeSync(file);
    start();
    console.log(JSON.stringify(said));
    reaper.of('one').forget(0);
  `;
  const limited = ['-c', 'ulimit -n 100 && exec "$0" "$@"', process.execPath];
  const parent = spawn('/bin/sh', [...limited, '--input-type=module', '-e', code, ...MODULES], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const failed = 'the shell that ends it with this node cannot be started';
  assert.equal(JSON.parse(await lineOf(parent)), [failed, '/bin/sh']);
});

onLinux('no shell is left by a program that was not started', async () => {
  const before = shells(); // those of other tests may end meanwhile
  const added = () => shells().filter((one) => !before.includes(one)).length;
  const reaper = new LeaseReaper(new Reaper());
  assert.is(refusalOf(reaper), 'this node may not run it any more');
  assert.is(added(), 0);
  reaper.lease(performance.now() + 60_000);
  startOf(reaper, 'exit'); // its start fails
  assert.is(added(), 1);
  await becomes(added, 0, LATE_MS);
});

posix('the lease ends a program whose gateway was killed, and then its shell', async () => {
  const code = `
    const [{ LeaseReaper }, { Reaper }] = await Promise.all([import(process.argv[1]), import(process.argv[2])]);
    const { spawn } = await import('node:child_process');
    // The other reaper would end them first.
    const reaper = new LeaseReaper({ watch() {}, forget() {}, untilFree() {} });
    reaper.lease(performance.now() + 2_500);
    const watch = reaper.of('one');
    const { command, args, channel } = watch.start('/bin/sh', ['-c', process.argv[3]]);
    const child = spawn(command, args, { stdio: ['pipe', 'ignore', 'ignore', channel], detached: true });
    watch.watch(child.pid);
    setTimeout(() => console.log(child.pid), 300);
  `;
  const parent = spawn(process.execPath, ['--input-type=module', '-e', code, ...MODULES, STUBBORN], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const pid = Number(await lineOf(parent));
  pids.push(pid);
  const killedAtMs = performance.now();
  parent.kill('SIGKILL');
  const endMs = (await endOf(pid, 2_500 + LATE_MS)) - killedAtMs;
  assert.ok(endMs > 1_000, `it ended ${endMs} ms after its gateway`);
});

onLinux('a shell that is killed is replaced, and knows the programs that run', async () => {
  const reaper = new LeaseReaper(new Reaper());
  reaper.lease(performance.now() + 3_000);
  const before = shells();
  const pid = start(reaper);
  const [shell = 0] = shells().filter((one) => !before.includes(one));
  assert.ok(shell > 0);
  killNow(shell);
  await endOf(pid, 3_000 + LATE_MS);
});

posix('a shell that cannot be started again is tried until it can, and the gateway goes on', async () => {
  const text = `
    import childProcess from 'node:child_process';
    import { once } from 'node:events';
    import { syncBuiltinESMExports } from 'node:module';
    import { setTimeout as delay } from 'node:timers/promises';
    const { spawn } = childProcess;
    const shells = [];
    let failures = 0;
    setInterval(() => {}, 1_000);
    const by = (start) => {
      childProcess.spawn = (...words) => (words[1].includes('stagedoor-lease') ? start(...words) : spawn(...words));
      syncBuiltinESMExports();
    };
    by((...words) => {
      const shell = spawn(...words);
      shells.push(shell);
      return shell;
    });
    const [{ LeaseReaper }, { Reaper }] = await Promise.all(process.argv.slice(1).map((file) => import(file)));
    const reaper = new LeaseReaper(new Reaper());
    reaper.lease(performance.now() + 60_000);
    const watch = reaper.of('program');
    watch.start('true', []);
    watch.watch(${2 ** 22 + 1});
    by(() => {
      failures += 1;
      throw new Error('ENOMEM');
    });
    shells[0].kill('SIGKILL');
    await once(shells[0], 'exit');
    await delay(500);
    if (failures < 2) process.exit(2);
    by((...words) => {
      const shell = spawn(...words);
      shells.push(shell);
      return shell;
    });
    await delay(300);
    watch.forget(${2 ** 22 + 1});
    process.exit(shells.length === 2 ? 0 : 3);
  `;
  const words = ['--input-type=module', '-e', text, ...MODULES];
  const program = spawn(process.execPath, words, { stdio: ['ignore', 'ignore', 'inherit'] });
  assert.equal(await once(program, 'exit'), [0, null]);
});

test.run();

/** Process ids of the shells of all lease reapers of this process. */
function shells(): number[] {
  const own = new RegExp(`\\) \\S ${process.pid} `);
  const children = processesWhere('stat', (stat) => own.test(stat));
  return processesWhere('cmdline', (line) => line.includes('stagedoor-lease')).filter((pid) =>
    children.includes(pid),
  );
}

function startOf(reaper: LeaseReaper, code: string) {
  const gated = reaper.of('one').start?.('/bin/sh', ['-c', code]);
  if (gated === undefined) throw new Error('it has no gate');
  return gated;
}

/** Process id of a stubborn program that it watches. */
function start(reaper: LeaseReaper): number {
  const { command, args, channel } = startOf(reaper, STUBBORN);
  const { pid = 0 } = spawn(command, args, {
    stdio: ['pipe', 'ignore', 'ignore', channel],
    detached: true,
  });
  pids.push(pid);
  reaper.of('one').watch(pid);
  return pid;
}

/** Why it starts no program, if it does not. */
function refusalOf(reaper: LeaseReaper): string | undefined {
  try {
    startOf(reaper, STUBBORN);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** When it has ended, by the monotonic clock. */
async function endOf(pid: number, withinMs: number): Promise<number> {
  await becomes(() => isRunning(pid), false, withinMs);
  return performance.now();
}

async function lineOf({ stdout }: ChildProcess): Promise<string> {
  if (stdout === null) throw new Error('it has no output');
  const [line] = await once(createInterface({ input: stdout }), 'line');
  return line;
}
