// The spec of the spec runner: each way in which a spec file could pass without testing anything is written to a temporary
// folder, run, and must be reported as a failure with its cause.

import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import * as assert from 'uvu/assert';
import { folderOfAll } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';
import type { FileLimits, FileResult, Totals } from '../../runner/result.ts';
import { runFile } from '../../runner/spec-process.ts';
import { preamble, runSamples, writeSample } from './runner-samples.ts';

const test = suite('the spec runner', { timeoutMs: 30_000 });
const limits = { timeoutMs: 20_000, graceMs: 400 };
const folder = folderOfAll(test)();

test.before(async () => {
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
});

const A = `test('a', () => {});`;
const B = `test('b', () => {});`;
/** Tests of one suite, which runs after them: the counts (passed, failed, skipped), and the messages of failures and skips. */
const SAMPLES: readonly (readonly [
  name: string,
  body: string,
  counts: readonly [number, number, number],
  said?: RegExp,
])[] = [
  ['a test that throws undefined', `test('a', () => { throw undefined; }); ${B}`, [1, 1, 0]],
  [
    'a throwing before',
    `test.before(() => { throw 'no'; }); ${A} ${B}`,
    [0, 3, 0],
    /before of suite "sample" /,
  ],
  ['a throwing after', `test.after(() => { throw 'still open'; }); ${A} ${B}`, [2, 1, 0], /still open/],
  ['a throwing after.each', `test.after.each(() => { throw 'dirt'; }); ${A} ${B}`, [2, 2, 0], /dirt/],
  ['tests that are declared after run()', `${A} test.run(); test('late', () => {}); if (0)`, [1, 1, 0]],
  ['no run()', `${A} if (0)`, [0, 1, 0], /never run: call test\.run\(\)/],
  ['a suite without a test', '', [0, 1, 0], /suite "sample" has no test/],
  ['a test that hangs', `test('a', () => new Promise(() => {})); ${B}`, [1, 1, 0], /longer than 300 ms/],
  [
    'a file that exits with 0 in the middle',
    `${A} test('leaves', () => process.exit(0));`,
    [1, 1, 0],
    /^exited with 0 before its tests had finished, in "sample > leaves"$/,
  ],
  [
    'an unhandled rejection',
    `test('a', () => { void Promise.reject(new Error('nobody cares')); });`,
    [1, 1, 0],
    /unhandled rejection: Error: nobody cares/,
  ],
  [
    'an exception that surfaces after the last test',
    `test('a', () => { setTimeout(() => { throw new Error('too late'); }, 50); });`,
    [1, 1, 0],
    /uncaught exception: Error: too late/,
  ],
  [
    'an open handle after the last test',
    `import { createServer } from 'node:net'; test('a', () => new Promise((resolve) => createServer().listen(0, resolve)));`,
    [1, 1, 0],
    /^left something open: TCPServerWrap$/,
  ],
  [
    'skips and their reasons',
    `${A} test.skip('b', 'not today'); test.needs(false, 'set X')('c', () => {}); test.needs(true, 'set X')('d', () => {});`,
    [2, 0, 2],
    /^b: not today\nc: set X$/,
  ],
];
for (const [name, body, counts, said = /(?:)/] of SAMPLES)
  test(`reports ${name}`, async () => {
    const { passed, failed, skipped, failures } = await run(`${body} test.run();`);
    assert.equal([passed, failed, skipped.length], counts, failures.join());
    const reasons = skipped.map((skip) => `${skip.name}: ${skip.reason}`);
    assert.match([...failures, ...reasons].join('\n'), said);
  });

test('shows a failing test with the output of its file', async () => {
  const result = await run(
    `test('works', () => {}); test('breaks', () => { console.log('a hint'); throw new Error('no such luck'); }); test.run();`,
  );
  assert.equal(counts(result), { passed: 1, failed: 1, skipped: 0 });
  assert.match(result.failures[0] ?? '', /"breaks".*no such luck/s);
  assert.match(result.output, 'a hint');
});

test('fails a file without a suite, and a file that cannot be loaded', async () => {
  const empty = await run('', '');
  assert.equal(counts(empty), { passed: 0, failed: 1, skipped: 0 });
  assert.match(empty.failures.join(), 'no test was run');
  const broken = await run(`import './missing.ts';`, '');
  assert.match(broken.failures.join(), /could not be loaded.*missing\.ts/s);
});

test('kills a file that blocks, and names its current test', async () => {
  const body = `test('fine', () => {}); test('spins', () => { for (;;); }); test.run();`;
  const result = await run(body, preamble, { timeoutMs: 6_000, graceMs: 400 });
  assert.equal(counts(result), { passed: 1, failed: 1, skipped: 0 });
  assert.equal(result.failures, ['timed out after 6 s in "sample > spins"']);
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
  assert.is(await lastLine('--system'), '1 passed, 0 failed, 0 skipped');
  assert.is(await lastLine('--system', 'b.spec'), '0 passed, 0 failed, 0 skipped');
  assert.is(await lastLine('a.spec'), '1 passed, 0 failed, 0 skipped');
  assert.is(await lastLine('.spec'), '2 passed, 0 failed, 0 skipped');
});

const PASSES = `${A} test.run();`;
const FAILS = `test('a', () => { throw new Error('no'); }); test.run();`;
const SKIPS = `${A} test.skip('b', 'not today'); test.run();`;
const UNEXPLAINED = `${A} test.skip('b', () => {}); test.run();`;
/** Runs of the whole runner: the closing line and the exit code. */
for (const [name, files, code, closing, CI = ''] of [
  ['0', { 'a.spec.ts': SKIPS, 'deep/b.spec.ts': PASSES }, 0, '2 passed, 0 failed, 1 skipped'],
  [
    '1 when something failed',
    { 'a.spec.ts': PASSES, 'b.spec.ts': FAILS },
    1,
    '1 passed, 1 failed, 0 skipped',
  ],
  ['1 when nothing was run', {}, 1, '0 passed, 0 failed, 0 skipped'],
  ['1 for a skip without a reason', { 'a.spec.ts': UNEXPLAINED }, 1, '1 passed, 1 failed, 1 skipped', 'true'],
  ['0 for such a skip without CI', { 'a.spec.ts': UNEXPLAINED }, 0, '1 passed, 0 failed, 1 skipped'],
] as const)
  test(`closes with one line and exit code ${name}`, async () => {
    const outcome = await runSamples(join(folder, randomUUID()), files, [], { CI });
    assert.equal([outcome.code, outcome.lines.at(-1)], [code, closing]);
    if (name === '0') assert.ok(outcome.lines.includes('  a.spec.ts  sample > b: not today'));
  });

test('names the slowest files of a run of many', async () => {
  const files = Object.fromEntries(Array.from({ length: 11 }, (_, index) => [`f${index}.spec.ts`, PASSES]));
  const { lines } = await runSamples(join(folder, randomUUID()), files);
  const shown = lines.slice(lines.indexOf('slowest:') + 1);
  assert.match(shown.slice(0, 10).join('\n'), /^( {2}\d+ s {2}\w+\.spec\.ts\n?){10}$/);
  assert.equal([shown[10], shown.length], ['', 12]);
});

test('runs each file in exactly one of the shards', async () => {
  const names = ['a.spec.ts', 'b.spec.ts', 'c.spec.ts', 'd.spec.ts', 'e.spec.ts'];
  const files = Object.fromEntries(names.map((name) => [name, PASSES]));
  const runs = await Promise.all(
    ['1/2', '2/2'].map((shard) => runSamples(join(folder, randomUUID()), files, ['--shard', shard])),
  );
  const ran = runs.map(({ lines }) =>
    names.filter((name) => lines.some((line) => line.includes(` ${name} `))),
  );
  assert.equal(ran, [
    ['a.spec.ts', 'c.spec.ts', 'e.spec.ts'],
    ['b.spec.ts', 'd.spec.ts'],
  ]);
  assert.ok(runs[1]?.lines.includes('shard 2/2: 2 of 5 files'));
});

for (const shard of ['0/2', '3/2', '1', 'a/b'])
  test(`refuses the shard ${shard}`, async () => {
    const { code } = await runSamples(join(folder, randomUUID()), { 'a.spec.ts': PASSES }, [
      '--shard',
      shard,
    ]);
    assert.is(code, 2);
  });

/** Appends the pid of the process that runs the file to a file beside it. */
const shares = `
import { appendFileSync } from 'node:fs';
const diary = new URL('diary', import.meta.url);
test('is here', () => appendFileSync(diary, process.pid + '\\n'));`;

/** The number of processes that ran the files, and the output. */
async function processesOf(files: Readonly<Record<string, string>>) {
  const root = join(folder, randomUUID());
  const { lines } = await runSamples(root, files, ['--jobs', '1', '--grace', '0.4']);
  const pids = (await readFile(join(root, 'diary'), 'utf8')).trimEnd().split('\n');
  return { count: new Set(pids).size, closing: lines.at(-1), text: lines.join('\n') };
}

test('runs files in one process while they leave nothing open', async () => {
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

test('fails a spec file without run() that is started by hand, where uvu alone would pass', async () => {
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

function counts({ passed, failed, skipped }: FileResult): Totals {
  return { passed, failed, skipped: skipped.length };
}
