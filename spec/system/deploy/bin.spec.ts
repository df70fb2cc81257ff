// bin/stagedoor.mjs and the launcher of the scripts: which file they load, the exit code, and how they switch from a Node that
// is too old to the Node that npm installed. The program is a stub in a temporary folder.
// "Too old" is simulated by a preloaded version number, and tried with a real old Node where the machine has one.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmod, copyFile, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { folderOfAll } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('bin/stagedoor.mjs', { timeoutMs: 20_000 });
const bin = fileURLToPath(new URL('../../../bin/', import.meta.url));
const binFiles = [
  'stagedoor.mjs',
  'with-node.mjs',
  'node-version.mjs',
  'compile-cache.mjs',
  'inlined-packages.mjs',
  'relative-imports.mjs',
];
const isWindows = process.platform === 'win32';
const oldNode = findOldNode();
const folder = folderOfAll(test)();

const sayArguments = `export async function main(argv) { console.log(WHERE, process.version, ...argv); return 7; }`;
const waitForSignal = `export async function main() {
  const received = await new Promise((resolve) => {
    for (const name of ['SIGTERM', 'SIGHUP', 'SIGINT']) process.on(name, resolve);
    const stayAlive = setInterval(() => {}, 1000);
    process.stdout.write('ready\\n');
  });
  process.stdout.write('heard ' + received + '\\n');
  process.exit(5);
}`;
const sayAndWait = `export async function main() {
  process.on('SIGTERM', () => { process.stdout.write('SIGTERM\\n'); process.exit(0); });
  setInterval(() => {}, 1000);
  process.stdout.write('ready\\n');
}`;

test.before(async () => {
  await writeFile(
    join(folder, 'old.cjs'),
    `for (const [name, value] of [['version', 'v20.20.2'], ['versions', { ...process.versions, node: '20.20.2' }]])
       Object.defineProperty(process, name, { value });`,
  );
});

const SOURCES = { 'src/cli/main.ts': sayArguments };
const DIST = { 'dist/program/main.js': sayArguments };
const LACKING = { 'src/cli/main.ts': `import 'a-missing-package'; ${sayArguments}` };
/** Program files, and their outcome: the exit code, standard output and standard error. */
const ENDS: readonly (readonly [what: string, files: Record<string, string>, end: RegExp])[] = [
  ['a clone', { ...SOURCES, ...DIST }, /^7 src v2\d\.\S+ a b c\n$/],
  ['a tree without sources', DIST, /^7 dist v2\d\.\S+ a b c\n$/],
  ['an installed package', { ...SOURCES, ...DIST }, /^7 dist v2\d\.\S+ a b c\n$/],
  ['a clone that was not built', {}, /^2 stagedoor is not built here: run npm run build\n$/],
  ['missing dependencies', LACKING, /^2 stagedoor lacks .*'a-missing-package'\): run npm ci\n$/],
  [
    'an old Node alone',
    DIST,
    /^2 stagedoor needs Node 22\.18 or later \(this is v20\.20\.2\); .+ or type: npx -y node@24 \S+stagedoor\.mjs a 'b c'\n$/,
  ],
  [
    'an installed package and an old Node',
    DIST,
    /^2 [^\n]+; install it, or type: npx -y node@24 \S+stagedoor\.mjs a 'b c'\n$/,
  ],
  ['an old Node in a bare clone', SOURCES, /^2 stagedoor lacks .*: run npm ci \(Node 22\.18 or later .+\n$/],
];
for (const [what, files, end] of ENDS)
  test(`runs the right file, or reports in one line why not: ${what}`, async () => {
    const node = what.includes('old Node') ? simulatedOldNode() : [process.execPath];
    const root = await plant(files, what.includes('installed') ? 'node_modules/stagedoor' : '.');
    const { code, out, err } = await run(node, root, ['a', 'b c']);
    assert.match(`${code} ${out}${err}`, end);
  });

test('uses no syntax or module that Node 12 cannot load', async () => {
  for (const file of binFiles) {
    const source = await readFile(join(bin, file), 'utf8');
    assert.not.match(source, /\?\.|\?\?|'node:|^await |\.at\(|#[a-z]\w* ?[=(]/m, file);
  }
});

test('the launcher runs a script with its arguments and exit code', async () => {
  const root = await plant({
    'tool.mjs': `console.log(process.argv.slice(1).join()); process.exitCode = 3;`,
  });
  const { code, out } = await run([process.execPath], root, [join(root, 'tool.mjs'), 'a'], {
    entry: 'with-node.mjs',
  });
  assert.equal({ code, out }, { code: 3, out: `${join(root, 'tool.mjs')},a\n` });
});

test.needs(!isWindows, 'symbolic links need a privilege on Windows')(
  'does not start the same Node again',
  async () => {
    const root = await brought(sayArguments, (file) => symlink(process.execPath, file));
    const { code } = await run(simulatedOldNode(), root, []);
    assert.is(code, 2);
  },
);

const oldNodes: readonly (readonly [string, (() => string[]) | undefined])[] = [
  ['a simulated old Node', isWindows ? undefined : simulatedOldNode],
  ['a real old Node', isWindows || oldNode === undefined ? undefined : () => [oldNode]],
];
for (const killed of ['npm', 'its shell'] as const) {
  test.needs(!isWindows, 'there is no shell between npm and a program')(
    `ends the program when ${killed} is gone`,
    async () => {
      const root = await plant({ 'dist/program/main.js': sayAndWait });
      assert.is(await runBelowNpm([process.execPath], root, killed), 'ready\nSIGTERM\n');
    },
  );
}

test.needs(!isWindows, 'there is no shell between npm and a program')(
  'a program in the background outlives npm',
  async () => {
    const root = await plant({
      'dist/program/main.js': `export async function main() {
        process.stdout.write('ready\\n');
        setTimeout(() => process.stdout.write('still here\\n'), 1500);
      }`,
    });
    const out = await runBelowNpm([process.execPath], root, 'npm', { STAGEDOOR_BACKGROUND: '1' });
    assert.is(out, 'ready\nstill here\n');
  },
);

test.needs(!isWindows, 'there are no such signals on Windows')(
  'SIGUSR1 opens no inspector, which would run code for every program of the same user',
  async () => {
    const root = await plant({ 'dist/program/main.js': sayAndWait });
    const onReady = (child: ChildProcess): void => {
      child.kill('SIGUSR1');
      setTimeout(() => child.kill(), 200);
    };
    const { code, out, err } = await run([process.execPath], root, [], { onReady });
    assert.equal({ code, out, err }, { code: 0, out: 'ready\nSIGTERM\n', err: '' });
  },
);

for (const [kind, command] of oldNodes) {
  const needs = test.needs(
    command,
    isWindows ? 'a script cannot stand in for node.exe' : 'no Node before 22.18 on PATH',
  );
  const start = () => command?.() ?? [];

  needs(`${kind} starts the program with the Node that npm installed`, async () => {
    const root = await plant({ 'src/cli/main.ts': sayArguments });
    await bring(root, writeStandIn);
    const { code, out } = await run(start(), root, ['a', 'b c']);
    assert.equal({ code, out }, { code: 7, out: `src ${process.version} a b c\n` });
  });

  needs(`${kind} ends the program when it is killed itself`, async () => {
    const root = await brought(sayAndWait);
    const { out } = await run(start(), root, [], { onReady: (child) => child.kill('SIGKILL') });
    assert.is(out, 'ready\nSIGTERM\n');
  });

  needs(`${kind} finds a Node that npm installed in a parent folder`, async () => {
    const root = await plant({ 'dist/program/main.js': sayArguments }, 'node_modules/stagedoor');
    await bring(dirname(dirname(root)), writeStandIn);
    const { code, out } = await run(start(), root, []);
    assert.equal({ code, out }, { code: 7, out: `dist ${process.version}\n` });
  });

  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT'] as const) {
    needs(`${kind} passes ${signal} on and waits for the program to end`, async () => {
      const root = await brought(waitForSignal);
      const { code, out } = await run(start(), root, [], { onReady: (child) => child.kill(signal) });
      assert.equal({ code, out }, { code: 5, out: `ready\nheard ${signal}\n` });
    });
  }

  for (const killed of ['npm', 'its shell'] as const) {
    needs(`${kind} ends the program when ${killed} is gone`, async () => {
      const root = await brought(sayAndWait);
      assert.is(await runBelowNpm(start(), root, killed), 'ready\nSIGTERM\n');
    });
  }

  needs(`${kind} reports in one line when the installed Node does not start`, async () => {
    const root = await brought(sayArguments, (file) => writeFile(file, 'not a program'));
    const { code, err } = await run(start(), root, []);
    assert.is(code, 2);
    assert.match(err, /^stagedoor could not start [^\n]+\n$/);
  });
}

test.run();

/** Writes a tree with copies of the bin files, and the given program files, each with its folder in place of WHERE. */
async function plant(files: Readonly<Record<string, string>>, below = '.'): Promise<string> {
  const root = resolve(folder, randomUUID(), below);
  await mkdir(join(root, 'bin'), { recursive: true });
  for (const file of binFiles) await copyFile(join(bin, file), join(root, 'bin', file));
  await writeFile(join(root, 'package.json'), '{ "type": "module" }');
  for (const [name, body] of Object.entries(files)) {
    await mkdir(dirname(join(root, name)), { recursive: true });
    await writeFile(join(root, name), body.replace('WHERE', JSON.stringify(name.split('/')[0])));
  }
  return root;
}

/** A tree with this program, and with a file where npm puts the Node that it installs. */
async function brought(program: string, put = writeStandIn): Promise<string> {
  const root = await plant({ 'dist/program/main.js': program });
  await bring(root, put);
  return root;
}

/** Puts a file where npm puts the Node that it installs. */
async function bring(root: string, put: (file: string) => Promise<void>): Promise<void> {
  const name = `node-${isWindows ? 'win' : process.platform}-${process.arch}`;
  const place = join(root, 'node_modules', name, 'bin');
  await mkdir(place, { recursive: true });
  await put(join(place, isWindows ? 'node.exe' : 'node'));
}

/** A script that starts the present Node under another path. */
async function writeStandIn(file: string): Promise<void> {
  await writeFile(file, `#!/bin/sh\nexec '${process.execPath}' "$@"\n`);
  await chmod(file, 0o755);
}

function simulatedOldNode(): string[] {
  return [process.execPath, '--require', join(folder, 'old.cjs')];
}

interface Outcome {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs bin/stagedoor.mjs, or another `entry` of bin. Calls `onReady` at the first output of the program. */
async function run(
  [node = '', ...flags]: readonly string[],
  root: string,
  args: readonly string[],
  {
    entry = 'stagedoor.mjs',
    onReady,
  }: { entry?: string | undefined; onReady?: (child: ChildProcess) => void } = {},
): Promise<Outcome> {
  const child = spawn(node, [...flags, join(root, 'bin', entry), ...args]);
  if (onReady) child.stdout.once('data', () => onReady(child));
  const [[code], out, err] = await Promise.all([
    once(child, 'close'),
    text(child.stdout),
    text(child.stderr),
  ]);
  return { code, out, err };
}

/**
 * Runs a stand-in for npm, which starts bin/stagedoor.mjs through a shell, and kills the stand-in or that shell when the program
 * is ready. Resolves to the output of the program, once no process holds it any more.
 */
async function runBelowNpm(
  command: readonly string[],
  root: string,
  killed: 'npm' | 'its shell',
  env: NodeJS.ProcessEnv = {},
): Promise<string> {
  const line = [...command, join(root, 'bin/stagedoor.mjs')].map((word) => `'${word}'`).join(' ');
  // The second command prevents the shell from replacing itself by the first.
  const script = `require('child_process').spawn('sh', ['-c', ${JSON.stringify(`${line}; exit $?`)}], { stdio: 'inherit' })
    .on('spawn', function () { console.error(this.pid); });`;
  const npm = spawn(process.execPath, ['-e', script], {
    env: { ...process.env, npm_execpath: 'npm-cli.js', ...env },
  });
  const shell = once(npm.stderr, 'data').then(([pid]) => Number(pid));
  npm.stdout.once('data', async () =>
    process.kill(killed === 'npm' ? (npm.pid ?? 0) : await shell, 'SIGKILL'),
  );
  return await text(npm.stdout);
}

/** A Node before 22.18 on PATH that did not come with this repository. */
function findOldNode(): string | undefined {
  const candidates = (process.env.PATH ?? '')
    .split(delimiter)
    .filter((entry) => entry && !entry.includes('node_modules'))
    .map((entry) => join(entry, isWindows ? 'node.exe' : 'node'));
  return candidates.find((candidate) => {
    const { stdout } = spawnSync(candidate, ['--version'], { encoding: 'utf8' });
    const [major = 0, minor = 0] = (stdout ?? '').replace('v', '').split('.').map(Number);
    return major > 0 && (major < 22 || (major === 22 && minor < 18));
  });
}
