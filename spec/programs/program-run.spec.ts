// Real programs as children: their environment, how they end, that nothing they started outlives them, and the tail of stderr.

import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { childEnvironment, missingVariables } from '../../src/domain/instances/command.ts';
import { TaskScheduler } from '../../src/domain/time/task-scheduler.ts';
import type { Program } from '../../src/programs/child-process.ts';
import { LineTail, STDERR_LINE_CHARACTERS, STDERR_LINES } from '../../src/programs/line-tail.ts';
import { ProgramRun, type ProgramRunOptions } from '../../src/programs/program-run.ts';
import { Reaper } from '../../src/programs/reaper.ts';
import { programUser } from '../../src/server/program-user.ts';
import { until } from '../helpers/eventually.ts';
import { collectGarbage } from '../helpers/garbage.ts';
import { isRunning } from '../helpers/programs/processes.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('program run');
const posix = test.needs(process.platform !== 'win32', 'Windows knows neither signals nor process groups');

const PATIENT = { stdinEndMs: 8_000, terminateMs: 8_000 };
const BRISK = { stdinEndMs: 150, terminateMs: 150 };

test('passes arguments to the program unchanged, without a shell', async () => {
  const words = ['two words', '$HOME', '; exit 3', '"quoted"', '*', ''];
  const program = node('process.stdout.write(JSON.stringify(process.argv.slice(1)))', words);
  assert.equal(JSON.parse((await outputOf(program)).text), words);
});

const asRoot = test.needs(process.getuid?.() === 0, 'only root can start programs as another user');

asRoot('runs the program as another user, in its home folder, and can stop it', async () => {
  const user = await programUser('nobody');
  const look = '[process.getuid(), process.getgid(), process.getgroups(), process.cwd(), process.env.HOME]';
  const { text } = await outputOf(node(`process.stdout.write(JSON.stringify(${look}))`), { user });
  assert.equal(JSON.parse(text), [user.uid, user.gid, [user.gid], user.home, user.home]);
  const child = new ProgramRun(node('setInterval(() => {}, 1000)'), { user, ladder: BRISK });
  await child.stop();
  assert.match((await child.exited).reason, 'killed by SIGTERM');
  assert.is(await refusalOf('root'), 'ConfigError: stdio.user: "root" is root itself');
  assert.match(await refusalOf('no-such-user'), 'there is no user "no-such-user"');
});

test('is refused another user when the gateway is not root', async () => {
  assert.match(await refusalOf('nobody', 1000), 'ConfigError: stdio.user: only root can start');
});

test('gives the program PATH, HOME and LANG and its own variables, and no secret of the gateway', async () => {
  const program = node('process.stdout.write(JSON.stringify(process.env))');
  process.env.GATEWAY_SECRET_KEY = 'secret';
  const { text } = await outputOf({ ...program, env: { OWN: 'yes', LANG: 'C' } });
  delete process.env.GATEWAY_SECRET_KEY;
  const { PATH, HOME } = process.env;
  const seen = subset(JSON.parse(text), ['PATH', 'HOME', 'LANG', 'GATEWAY_SECRET_KEY', 'OWN']);
  assert.equal(seen, { PATH, HOME, LANG: 'C', OWN: 'yes' });
});

test('adds variables that Windows programs need, on Windows only', () => {
  const source = { PATH: 'p', SystemRoot: 'C:\\Windows', ComSpec: 'cmd', USERPROFILE: 'u', SECRET: 's' };
  assert.equal(childEnvironment({ A: '1' }, source, 'linux'), { PATH: 'p', A: '1' });
  assert.equal(childEnvironment({ A: '1' }, source, 'win32'), {
    PATH: 'p',
    SystemRoot: 'C:\\Windows',
    ComSpec: 'cmd',
    USERPROFILE: 'u',
    A: '1',
  });
});

test('an own variable replaces that of the gateway, on Windows whatever the case of its name', () => {
  const source = { PATH: 'p', HTTPS_PROXY: 'gateway' };
  const own = { Path: 'q', https_proxy: 'own' };
  assert.equal(childEnvironment(own, source, 'win32'), own);
  assert.equal(childEnvironment(own, source, 'linux'), { ...source, ...own });
});

test('passes variables for proxies, but no credentials unless the variable is named', () => {
  const proxy = 'http://me:secret@proxy:3128';
  const source = {
    HTTPS_PROXY: proxy,
    http_proxy: 'http://proxy:3128',
    NODE_EXTRA_CA_CERTS: '/ca@home.pem',
    OTHER: 'x',
  };
  assert.equal(childEnvironment({}, source, 'linux'), {
    http_proxy: 'http://proxy:3128',
    NODE_EXTRA_CA_CERTS: '/ca@home.pem',
  });
  assert.equal(childEnvironment({ HTTPS_PROXY: 'own' }, source, 'linux', ['HTTPS_PROXY', 'OTHER', 'GONE']), {
    HTTPS_PROXY: 'own',
    OTHER: 'x',
  });
  assert.equal(childEnvironment({}, source, 'linux', ['HTTPS_PROXY']), { HTTPS_PROXY: proxy });
  assert.equal(childEnvironment({}, source, 'linux', []), {});
  assert.equal(childEnvironment({}, { HTTP_PROXY: 'me:secret@proxy:3128' }, 'linux'), {});
  assert.equal(missingVariables({}, undefined, source), ['HTTPS_PROXY']);
  assert.equal(missingVariables({ https_proxy: 'own' }, undefined, source), []);
  assert.equal(missingVariables({}, [], source), ['HTTPS_PROXY', 'http_proxy', 'NODE_EXTRA_CA_CERTS']);
});

posix('is watched by the reaper from its start to the end of its group', async () => {
  const reported: string[] = [];
  class Witness extends Reaper {
    override watch(leader: number): void {
      reported.push(`watch ${leader}`);
    }
    override forget(leader: number): void {
      reported.push(`forget ${leader} ${isRunning(leader)}`);
    }
  }
  const child = new ProgramRun(node('setInterval(() => {}, 60_000)'), {
    ladder: BRISK,
    reaper: new Witness(),
  });
  const { pid } = child;
  assert.equal(reported, [`watch ${pid}`]);
  await child.stop();
  assert.equal(reported, [`watch ${pid}`, `forget ${pid} false`]);
  await new ProgramRun({ command: '/no/such/program', args: [], env: {} }, { reaper: new Witness() }).exited;
  assert.is(reported.length, 2);
});

test('reports why a program could not be started', async () => {
  const failures: readonly (readonly [Partial<Program>, RegExp])[] = [
    [{ command: 'no-such-program' }, /^could not be started: ENOENT, there is no program "no-such-program"$/],
    [{ workingDir: '/no/folder' }, /^could not be started: ENOENT, "\/no\/folder" is not a folder that can/],
    [
      { workingDir: process.execPath },
      /^could not be started: ENOTDIR, "\/.* is not a folder that can be entered$/,
    ],
    [{ args: ['a\0b'] }, /^could not be started: .*null bytes/],
  ];
  for (const [difference, reason] of failures) {
    const child = new ProgramRun({ ...node(''), ...difference });
    assert.match((await child.exited).reason, reason);
    assert.is(child.pid, null);
    const { promise: answered, resolve } = Promise.withResolvers<unknown>();
    child.write('to nobody', resolve);
    assert.instance(await answered, Error);
    await child.stop();
  }
});

posix('reports why a file cannot be run', async () => {
  const child = new ProgramRun({ ...node(''), command: import.meta.filename });
  assert.match((await child.exited).reason, /^could not be started: .*EACCES/);
});

test('reports the exit of a program only after reading all of its output', async () => {
  const program = node("process.stdout.write('x'.repeat(3_000_000), () => process.exit(1))");
  assert.is((await outputOf(program)).text.length, 3_000_000);
});

posix('stops a program that ignores the end of its stdin by SIGTERM', async () => {
  const { child, says } = run("setInterval(() => {}, 1e6); console.log('ready')", {
    ...PATIENT,
    stdinEndMs: 50,
  });
  await says(/ready/);
  await child.stop();
  assert.is((await child.exited).reason, 'killed by SIGTERM');
});

posix('kills a program that ignores SIGTERM, too, and says so', async () => {
  const { child, says } = run(IGNORE_SIGTERM, BRISK);
  await says(/ready/);
  await child.stop();
  assert.is((await child.exited).reason, 'killed by SIGKILL');
});

posix('a program that cannot be killed counts as ended when the stop gives up', async () => {
  const { child, says } = run("setInterval(() => {}, 1e6); console.log('ready')");
  await says(/ready/);
  const pid = Number(child.pid);
  const kill = mock.method(process, 'kill', () => true);
  await child.stop();
  kill.mock.restore();
  assert.is((await child.exited).reason, 'could not be stopped');
  assert.ok(isRunning(pid));
  process.kill(pid, 'SIGKILL');
});

posix('kills a grandchild that ignores SIGTERM', async () => {
  const { child, says } = run(`${grandchild(IGNORE_SIGTERM)} process.stdin.resume()`, BRISK);
  const pid = Number(await says(/\d+/));
  await says(/ready/);
  await child.stop();
  assert.not(isRunning(pid));
});

posix('stops what a program leaves behind when it exits by itself, without waiting for a stop', async () => {
  const { child, says } = run(
    `${grandchild('setInterval(() => {}, 1e6)')} process.stdin.once('data', () => process.exit(5))`,
  );
  const pid = Number(await says(/\d+/));
  child.write('go\n', () => {});
  assert.is((await child.exited).reason, 'exited with code 5');
  await until(() => !isRunning(pid), 'the grandchild has ended');
  await child.stop();
});

posix('does not wait for a descendant that left the group and holds the pipes', async () => {
  const { child, says } = run(
    `${grandchild('setInterval(() => {}, 1e6)', true)} process.stdin.once('data', () => process.exit(5))`,
    BRISK,
  );
  const pid = Number(await says(/\d+/));
  child.write('go\n', () => {});
  assert.is((await child.exited).reason, 'exited with code 5');
  await child.stop();
  assert.ok(isRunning(pid), 'a program that starts a session of its own cannot be followed');
  process.kill(pid, 'SIGKILL');
});

posix('endless output that is much work leaves most of each turn to others', async () => {
  const turns = [0];
  const onOutput = (): void => {
    turns.push(Number(turns.pop()) + 1);
    for (const end = performance.now() + 20; performance.now() < end; );
  };
  const write = 'while (process.stdout.write(Buffer.alloc(65_536)));';
  const program = node(`const go = () => { ${write} process.stdout.once('drain', go) }; go()`);
  const child = new ProgramRun(program, { onOutput, ladder: BRISK });
  while (turns.filter(Boolean).length < 5) {
    await new Promise(setImmediate);
    turns.push(0);
  }
  assert.ok(Math.max(...turns) <= 4, turns.join(' '));
  await child.stop();
});

test('does not report closed pipes when the program exits', async () => {
  const reported: string[] = [];
  const { child } = run('process.exit(1)', BRISK, { onPipeClosed: (pipe) => reported.push(pipe) });
  await child.exited;
  await child.stop();
  assert.equal(reported, []);
});

test('the tail of stderr keeps lines that arrive in pieces, also when cut inside a character', () => {
  const bytes = Buffer.from('first é line\r\nsecond 🎭\n\nunfinished');
  const tail = new LineTail();
  for (const byte of bytes) tail.write(Buffer.from([byte]));
  assert.equal(tail.lines, ['first é line', 'second 🎭', 'unfinished']);
});

test('the tail of stderr keeps the last lines only', () => {
  const tail = new LineTail();
  const numbers = Array.from({ length: 3 * STDERR_LINES }, (_, index) => `line ${index}`);
  tail.write(Buffer.from(`${numbers.join('\n')}\nthe end`));
  assert.equal(tail.lines, [...numbers.slice(1 - STDERR_LINES), 'the end']);
});

test('the tail of stderr cuts long lines and holds no more of them', () => {
  const tail = new LineTail();
  for (let written = 0; written < 100; written += 1) tail.write(Buffer.alloc(1000, 'x'));
  tail.write(Buffer.from('\nnext\n'));
  assert.equal(tail.lines, ['x'.repeat(STDERR_LINE_CHARACTERS), 'next']);
});

test('the tail of stderr keeps lines without the rest of the output that they came with', () => {
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  const tail = new LineTail();
  for (let at = 0; at < 150; at += 1) tail.write(Buffer.from(`this is line ${at}\n${' '.repeat(60_000)}\n`));
  collectGarbage();
  const kept = process.memoryUsage().heapUsed - before;
  assert.ok(kept < 2_000_000, `${kept} bytes`);
  assert.is(tail.lines.at(-1), 'this is line 149');
});

test('the tail of stderr removes colours, and keeps no lines of them alone', () => {
  const tail = new LineTail();
  tail.write(Buffer.from(`\u001b[31mred\u001b[0m alert\n${'\u001b[2K\u001b[1G\n'.repeat(500)}`));
  assert.equal(tail.lines, ['red alert']);
});

test('the tail of stderr inserts lines of stdout between its own lines', () => {
  const tail = new LineTail();
  tail.write(Buffer.from('one\ntw'));
  tail.add(Buffer.from('from stdout\r'));
  tail.add(Buffer.from('  '));
  assert.equal(tail.lines, ['one', 'from stdout', 'tw']);
  tail.write(Buffer.from('o\n'));
  assert.equal(tail.lines, ['one', 'from stdout', 'two']);
});

const IGNORE_SIGTERM = "process.on('SIGTERM', () => {}); setInterval(() => {}, 1e6); console.log('ready');";

/** Code that starts a grandchild and prints its pid. */
function grandchild(code: string, detached = false): string {
  const options = JSON.stringify({ stdio: 'inherit', detached });
  const start = `require('child_process').spawn(process.execPath, ['-e', ${JSON.stringify(code)}], ${options})`;
  return `console.log(${start}.pid);`;
}

function node(code: string, words: readonly string[] = []): Program {
  return { command: process.execPath, args: ['-e', code, '--', ...words], env: {} };
}

/** Runs code as a child; `says` waits until its output matches. */
function run(code: string, ladder = BRISK, options: ProgramRunOptions = {}) {
  let text = '';
  let look = (): void => {};
  const onOutput = (chunk: Buffer): void => {
    text += chunk.toString();
    look();
  };
  const child = new ProgramRun(node(code), { onOutput, ladder, ...options });
  const says = (pattern: RegExp): Promise<string> =>
    new Promise((resolve) => {
      look = () => {
        const match = pattern.exec(text);
        if (match) resolve(match[0]);
      };
      look();
    });
  return { child, says };
}

async function outputOf(program: Program, options: ProgramRunOptions = {}) {
  const chunks: Buffer[] = [];
  const child = new ProgramRun(program, { ...options, onOutput: (chunk) => chunks.push(chunk) });
  await child.exited;
  return { child, text: Buffer.concat(chunks).toString() };
}

function subset(all: Readonly<Record<string, unknown>>, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(names.filter((name) => name in all).map((name) => [name, all[name]]));
}

const linux = test.needs(process.platform === 'linux', 'only Linux has /proc');

linux(
  'programs that end together, and leave others behind, share the reads of the process table',
  async () => {
    const reaper = new Reaper();
    const args = ['-c', '(trap "" TERM; echo on; sleep 60) & cat >/dev/null'];
    const programs = Array.from({ length: 30 }, () => {
      const { promise: isOn, resolve: onOutput } = Promise.withResolvers<Buffer>();
      const program = new ProgramRun(
        { command: '/bin/sh', args, env: {} },
        { ladder: BRISK, reaper, onOutput },
      );
      return { program, isOn };
    });
    await Promise.all(programs.map(({ isOn }) => isOn));
    const listed = mock.method(fs, 'readdirSync');
    syncBuiltinESMExports();
    try {
      await Promise.all(programs.map(({ program }) => program.stop()));
    } finally {
      listed.mock.restore();
      syncBuiltinESMExports();
    }
    const reads = listed.mock.callCount(); // each program looks at least three times
    assert.ok(reads > 0 && reads < 2 * programs.length, `${reads} reads`);
  },
);

test('says in several turns of the event loop which of many programs have ended together', async () => {
  const turns: (() => void)[] = [];
  const scheduler = new TaskScheduler({ perTurn: 1, nextTurn: (run) => turns.push(run) });
  const children = [1, 2, 3].map(() => new ProgramRun(node(''), { ladder: BRISK, scheduler }));
  let ended = 0;
  for (const { exited } of children)
    void exited.then(() => {
      ended += 1;
    });
  await until(() => scheduler.waiting >= 2, 'two ends wait for a turn');
  let before = ended;
  const takeTurn = () => {
    assert.ok(ended <= before + 1, `${ended - before} ends in a turn`);
    before = ended;
    turns.shift()?.();
    return ended === 3;
  };
  await until(takeTurn, 'all ends are known');
});

test.run();

async function refusalOf(...user: Parameters<typeof programUser>): Promise<string> {
  return programUser(...user).then(() => 'found', String);
}
