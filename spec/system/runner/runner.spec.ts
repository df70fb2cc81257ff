// The spec of the spec runner: each way in which a spec file could pass without having tested anything is written to
// a temporary folder, run, and must come out as a failure with a sentence that says what happened.

import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import * as assert from 'uvu/assert';
import { preamble, runSamples, type SamplesRun, writeSample } from '../../helpers/runner-samples.ts';
import { suite } from '../../helpers/suite.ts';
import type { FileLimits, FileResult, Totals } from '../../runner/result.ts';
import { runFile } from '../../runner/spec-process.ts';

const test = suite('the spec runner', { timeoutMs: 30_000 });
const limits = { timeoutMs: 20_000, graceMs: 400 };
let folder = '';

test.before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stagedoor-runner-'));
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
});
test.after(() => rm(folder, { recursive: true, force: true }));

test('counts what passes', async () => {
  const result = await run(`test('a', () => {}); test('b', async () => {}); test.run();`);
  assert.equal(counts(result), { passed: 2, failed: 0, skipped: 0 });
  assert.equal(result.failures, []);
});

test('fails a failing test and shows it, with what the file wrote', async () => {
  const result = await run(
    `test('works', () => {}); test('breaks', () => { console.log('a hint'); throw new Error('no such luck'); }); test.run();`,
  );
  assert.equal(counts(result), { passed: 1, failed: 1, skipped: 0 });
  assert.match(result.failures[0] ?? '', /"breaks".*no such luck/s);
  assert.match(result.output, 'a hint');
});

test('fails a test that throws something that is no Error', async () => {
  const result = await run(`test('a', () => { throw undefined; }); test('b', () => {}); test.run();`);
  assert.equal(counts(result), { passed: 1, failed: 1, skipped: 0 });
});

test('fails every test behind a throwing before, and says so', async () => {
  const result = await run(
    `test.before(() => { throw new Error('no database'); }); test('a', () => {}); test('b', () => {}); test.run();`,
  );
  assert.equal(counts(result), { passed: 0, failed: 3, skipped: 0 });
  assert.match(result.failures.join(), /before of suite "sample" failed: Error: no database/);
});

test('fails a throwing after without losing the results', async () => {
  const result = await run(
    `test.after(() => { throw new Error('still open'); }); test('a', () => {}); test('b', () => {}); test.run();`,
  );
  assert.equal(counts(result), { passed: 2, failed: 1, skipped: 0 });
  assert.match(result.failures.join(), 'still open');
});

test('fails a throwing before.each as the test it precedes', async () => {
  const result = await run(
    `test.before.each(() => { throw new Error('no ground'); }); test('a', () => {}); test('b', () => {}); test.run();`,
  );
  assert.equal(counts(result), { passed: 0, failed: 2, skipped: 0 });
});

test('fails a throwing after.each once per test', async () => {
  const result = await run(
    `test.after.each(() => { throw new Error('dirt'); }); test('a', () => {}); test('b', () => {}); test.run();`,
  );
  assert.equal(counts(result), { passed: 2, failed: 2, skipped: 0 });
});

test('fails a file that forgets run()', async () => {
  const result = await run(`test('a', () => {});`);
  assert.is(result.passed, 0);
  assert.ok(result.failed > 0);
  assert.match(result.failures.join(), 'never run: call test.run()');
});

test('fails tests that are declared after run()', async () => {
  const result = await run(`test('a', () => {}); test.run(); test('late', () => {});`);
  assert.equal(counts(result), { passed: 1, failed: 1, skipped: 0 });
});

test('fails a suite without a test', async () => {
  const result = await run(`test.run();`);
  assert.match(result.failures.join(), 'suite "sample" has no test');
});

test('runs the system tier only when a filter chooses it', async () => {
  const files = {
    'system/a.spec.ts': `test('a', () => {}); test.run();`,
    'b.spec.ts': `test('b', () => {}); test.run();`,
  };
  const root = join(folder, 'tiers');
  const lastLine = async (...args: string[]) => (await runSamples(root, files, args)).lines.at(-1);
  assert.is(await lastLine(), '1 passed, 0 failed, 0 skipped');
  assert.is(await lastLine('system/'), '1 passed, 0 failed, 0 skipped');
  assert.is(await lastLine('a.spec'), '1 passed, 0 failed, 0 skipped');
  assert.is(await lastLine('.spec'), '2 passed, 0 failed, 0 skipped');
});

test('fails a file without a suite', async () => {
  const result = await run('', '');
  assert.equal(counts(result), { passed: 0, failed: 1, skipped: 0 });
  assert.match(result.failures.join(), 'no test was run');
});

test('fails a file that cannot be loaded', async () => {
  const result = await run(`import './missing.ts';`, '');
  assert.match(result.failures.join(), /could not be loaded.*missing\.ts/s);
});

test('fails a test that hangs and goes on with the next', async () => {
  const result = await run(`test('waits', () => new Promise(() => {})); test('next', () => {}); test.run();`);
  assert.equal(counts(result), { passed: 1, failed: 1, skipped: 0 });
  assert.match(result.failures.join(), 'the test took longer than 300 ms');
});

test('keeps its time limits while a test simulates the clock', async () => {
  const result = await run(
    `import { mock } from 'node:test';
     test('waits', () => { mock.timers.enable(); return new Promise(() => {}); }); test.run();`,
  );
  assert.equal(counts(result), { passed: 0, failed: 1, skipped: 0 });
});

test('kills a file that blocks, and names the test it was in', async () => {
  const result = await run(
    `test('fine', () => {}); test('spins', () => { for (;;); }); test.run();`,
    preamble,
    { timeoutMs: 1_500, graceMs: 400 },
  );
  assert.equal(counts(result), { passed: 1, failed: 1, skipped: 0 });
  assert.equal(result.failures, ['timed out after 1.5 s in "sample > spins"']);
});

test('fails a file that exits with 0 in the middle', async () => {
  const result = await run(`test('fine', () => {}); test('leaves', () => process.exit(0)); test.run();`);
  assert.equal(counts(result), { passed: 1, failed: 1, skipped: 0 });
  assert.equal(result.failures, ['exited with 0 before its tests had finished, in "sample > leaves"']);
});

test('fails a file whose top level never settles', async () => {
  const result = await run(`await new Promise(() => {}); test('a', () => {}); test.run();`);
  assert.match(result.failures.join(), 'before its tests had finished');
});

test('fails a file that sets an exit code', async () => {
  const result = await run(`test('a', () => { process.exitCode = 3; }); test.run();`);
  assert.equal(counts(result), { passed: 1, failed: 1, skipped: 0 });
  assert.equal(result.failures, ['set the exit code to 3']);
});

test('fails a file with an unhandled rejection', async () => {
  const result = await run(
    `test('a', () => { void Promise.reject(new Error('nobody cares')); }); test.run();`,
  );
  assert.equal(counts(result), { passed: 1, failed: 1, skipped: 0 });
  assert.match(result.failures.join(), /unhandled rejection: Error: nobody cares/);
});

test('fails a file with an exception that surfaces after the last test', async () => {
  const result = await run(
    `test('a', () => { setTimeout(() => { throw new Error('too late'); }, 50); }); test.run();`,
  );
  assert.equal(counts(result), { passed: 1, failed: 1, skipped: 0 });
  assert.match(result.failures.join(), /uncaught exception: Error: too late/);
});

test('fails a file that leaves something open, and says what', async () => {
  const result = await run(
    `import { createServer } from 'node:net';
     test('a', () => new Promise((resolve) => createServer().listen(0, resolve))); test.run();`,
  );
  assert.equal(counts(result), { passed: 1, failed: 1, skipped: 0 });
  assert.equal(result.failures, ['left something open: TCPServerWrap']);
});

test('fails a file that never yields after its last test', async () => {
  const result = await run(`test('a', () => { setTimeout(() => { for (;;); }, 100); }); test.run();`);
  assert.match(result.failures.join(), 'left something open: a loop that never yields');
});

test.needs(process.platform !== 'win32', 'Windows keeps no group for an orphan')(
  'ends what a file started and forgot',
  async () => {
    const server = createServer().listen(0);
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const connected = once(server, 'connection');
    const orphan = `require('node:net').connect(${port}).on('connect', () => console.log('ready'))`;
    const result = await run(
      `import { spawn } from 'node:child_process';
       import { once } from 'node:events';
       test('a', async () => {
         const child = spawn(process.execPath, ['-e', ${JSON.stringify(orphan)}], { stdio: ['ignore', 'pipe', 'ignore'] });
         await once(child.stdout, 'data');
         child.stdout.destroy();
         child.unref();
       });
       test.run();`,
      preamble.replace('300', '10_000'),
    );
    server.close();
    assert.equal(counts(result), { passed: 1, failed: 0, skipped: 0 });
    const [socket] = (await connected) as [Socket];
    // A killed process closes its sockets, with or without a reset.
    if (!socket.closed) await once(socket.on('error', () => {}).resume(), 'close');
  },
);

test('counts skips and keeps their reasons', async () => {
  const result = await run(
    `test('a', () => {}); test.skip('b', 'not today'); test.needs(false, 'set X')('c', () => {});
     test.needs(true, 'set X')('d', () => {}); test.run();`,
  );
  assert.equal(counts(result), { passed: 2, failed: 0, skipped: 2 });
  assert.equal(
    result.skipped.map(({ name, reason }) => `${name}: ${reason}`),
    ['b: not today', 'c: set X'],
  );
});

test('lets a file pass that had to skip everything', async () => {
  const result = await run(`test.needs(false, 'set X')('c', () => {}); test.run();`);
  assert.equal(counts(result), { passed: 0, failed: 0, skipped: 1 });
});

test('counts what test.only sets aside', async () => {
  const result = await run(`test('a', () => {}); test.only('b', () => {}); test.run();`);
  assert.equal(counts(result), { passed: 1, failed: 0, skipped: 1 });
});

test('closes with one line and exit code 0', async () => {
  const { code, lines } = await runFolder({
    'a.spec.ts': `test('a', () => {}); test.skip('b', 'not today'); test.run();`,
    'deep/b.spec.ts': `test('a', () => {}); test.run();`,
  });
  assert.is(code, 0);
  assert.is(lines.at(-1), '2 passed, 0 failed, 1 skipped');
  assert.ok(lines.includes('  a.spec.ts  sample > b: not today'));
});

test('closes with one line and exit code 1 when something failed', async () => {
  const { code, lines } = await runFolder({
    'a.spec.ts': `test('a', () => {}); test.run();`,
    'b.spec.ts': `test('a', () => { throw new Error('no'); }); test.run();`,
  });
  assert.is(code, 1);
  assert.is(lines.at(-1), '1 passed, 1 failed, 0 skipped');
});

test('runs only the files whose path holds a filter', async () => {
  const files = {
    'a.spec.ts': `test('a', () => {}); test.run();`,
    'b.spec.ts': `test('a', () => { throw new Error('no'); }); test.run();`,
  };
  const { code, lines } = await runFolder(files, ['a.spec']);
  assert.is(code, 0);
  assert.is(lines.at(-1), '1 passed, 0 failed, 0 skipped');
});

/** Writes the process that runs the file into a file beside it. */
const shares = `
import { appendFileSync } from 'node:fs';
const diary = new URL('diary', import.meta.url);
test('is here', () => appendFileSync(diary, process.pid + '\\n'));`;

/** How many processes ran the files, and what was printed. */
async function processesOf(files: Readonly<Record<string, string>>) {
  const root = join(folder, randomUUID());
  const { lines } = await runSamples(root, files, ['--jobs', '1', '--grace', '0.4']);
  const pids = (await readFile(join(root, 'diary'), 'utf8')).trimEnd().split('\n');
  return { count: new Set(pids).size, closing: lines.at(-1), text: lines.join('\n') };
}

test('runs files in one process while nothing is left behind', async () => {
  const { count, closing } = await processesOf({
    'a.spec.ts': `${shares} test('a', () => { process.env.LEFT = 'x'; process.chdir('/'); }); test.run();`,
    'b.spec.ts': `${shares} test('b', () => { if (process.env.LEFT || process.cwd() === '/') throw new Error('dirty'); }); test.run();`,
  });
  assert.equal([count, closing], [1, '4 passed, 0 failed, 0 skipped']);
});

for (const [what, body, complaint] of [
  ['a test that failed', `throw new Error('no');`, ''],
  ['a simulated clock', `mock.timers.enable();`, 'left the clock simulated'],
  ['a listener', `process.on('SIGTERM', () => {});`, 'left a listener for SIGTERM'],
  ['an open server', `createServer().listen(0);`, 'left something open: TCPServerWrap'],
] as const)
  test(`runs no other file in a process with ${what}`, async () => {
    const { count, closing, text } = await processesOf({
      'a.spec.ts': `import { mock } from 'node:test'; import { createServer } from 'node:net';
        ${shares} test('a', () => { ${body} }); test.run();`,
      'b.spec.ts': `${shares} test.run();`,
    });
    assert.equal([count, closing?.replace(/^\d/, 'N')], [2, 'N passed, 1 failed, 0 skipped']);
    assert.match(text, complaint);
  });

test('gives a file a process of its own when it says why', async () => {
  const { count, closing } = await processesOf({
    'a.spec.ts': `${shares} test.run();`,
    'b.spec.ts': `// @own-process: it listens for signals
      ${shares} test('b', () => { process.on('SIGTERM', () => {}); }); test.run();`,
    'c.spec.ts': `${shares} test.run();`,
  });
  assert.equal([count, closing], [2, '4 passed, 0 failed, 0 skipped']);
});

test('exits with 1 when nothing was run', async () => {
  const { code, lines } = await runFolder({ 'a.spec.ts': `test('a', () => {}); test.run();` }, ['nothing']);
  assert.is(code, 1);
  assert.is(lines.at(-1), '0 passed, 0 failed, 0 skipped');
});

test('refuses a skip without a reason when CI=true', async () => {
  const files = { 'a.spec.ts': `test('a', () => {}); test.skip('b', () => {}); test.run();` };
  const strict = await runFolder(files, [], { CI: 'true' });
  assert.is(strict.lines.at(-1), '1 passed, 1 failed, 1 skipped');
  const lenient = await runFolder(files, [], { CI: '' });
  assert.is(lenient.lines.at(-1), '1 passed, 0 failed, 1 skipped');
});

test('refuses options it does not know', async () => {
  const { code } = await runFolder({}, ['--job', '3']);
  assert.is(code, 2);
});

test('a spec file started by hand fails where uvu alone would pass', async () => {
  const file = join(folder, 'by-hand.spec.ts');
  await writeSample(file, `${preamble}test('a', () => {});`);
  const child = spawn(process.execPath, [file], { stdio: ['ignore', 'ignore', 'pipe'] });
  const [errors, [code]] = await Promise.all([text(child.stderr), once(child, 'close')]);
  assert.is(code, 1);
  assert.match(errors, 'never run: call test.run()');
});

test.run();

/** Runs one sample in its own process, as the runner does. */
async function run(body: string, head = preamble, within: FileLimits = limits): Promise<FileResult> {
  const file = join(folder, randomUUID(), 'sample.spec.ts');
  await writeSample(file, head + body);
  return runFile(file, within);
}

/** Runs the whole runner, as `npm run spec` does, over a folder of samples. */
function runFolder(
  files: Readonly<Record<string, string>>,
  args?: readonly string[],
  env?: Readonly<Record<string, string>>,
): Promise<SamplesRun> {
  return runSamples(join(folder, randomUUID()), files, args, env);
}

function counts({ passed, failed, skipped }: FileResult): Totals {
  return { passed, failed, skipped: skipped.length };
}
