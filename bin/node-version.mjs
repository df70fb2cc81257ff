// Checks whether the running Node is recent enough, finds the Node that npm installed, and hands over to it.
// Shared by stagedoor.mjs and with-node.mjs. Plain JavaScript that Node 12 can parse, with imports of Node's
// modules only, so that an old Node can print the required version.

import { spawn } from 'child_process';
import { existsSync, readFileSync, realpathSync } from 'fs';
import { constants } from 'os';
import { dirname, join, sep } from 'path';
import { fileURLToPath } from 'url';

const here = dirname(fileURLToPath(import.meta.url));
const isWindows = process.platform === 'win32';
/** Set for the Node that gets control, so that it knows the process at the other end of its channel. */
const MARK = 'STAGEDOOR_FRONT_DOOR';
/** Set for a background gateway; see src/cli/background/daemon-files.ts. */
const DAEMON_MARK = 'STAGEDOOR_BACKGROUND';
/** Interval of the checks that the parent still runs, in ms. */
const PARENT_LOOK_MS = 500;

/**
 * Calls `run` in a recent enough Node: in this one, or by starting `script` again, with the same arguments,
 * in the Node that npm installed. When there is none, it prints that and leaves exit code 2.
 */
export function withRecentNode(script, run) {
  if (isRecentEnough(process.versions.node)) {
    followParent();
    followNpm(stopSelf);
    return run();
  }
  const brought = findBroughtNode();
  if (brought) return handOver(brought, script);
  if (isBareClone()) {
    return giveUp(
      `stagedoor lacks its dependencies: run npm ci (Node 22.18 or later is needed, this is ${process.version}; ` +
        'on Linux and Windows npm ci brings one)',
    );
  }
  // The package "node" of npm has the program of Node.
  const words = ['npx -y node@24', script].concat(process.argv.slice(2)).map(quoted).join(' ');
  giveUp(
    `stagedoor needs Node 22.18 or later (this is ${process.version}); install it, ` +
      (isInstalled() ? '' : 'or on Linux and Windows run npm ci again with optional dependencies, ') +
      `or type: ${words}`,
  );
}

function quoted(word, index) {
  return index === 0 || /^[\w@%+=:,./\\-]+$/.test(word) ? word : `'${word}'`;
}

/** Imports a module. When its packages are not installed, it prints one line instead of a stack. */
export async function load(url) {
  try {
    return await import(url);
  } catch (error) {
    if (error.code !== 'ERR_MODULE_NOT_FOUND' || !/^Cannot find package/.test(error.message)) throw error;
    giveUp(`stagedoor lacks its dependencies (${error.message.split(' imported')[0]}): run npm ci`);
  }
}

/** Prints one line to standard error and leaves exit code 2. */
export function giveUp(line) {
  process.stderr.write(`${line}\n`);
  process.exitCode = 2;
}

/** An installed package is below node_modules, a clone is not. */
export function isInstalled() {
  return here.split(sep).indexOf('node_modules') !== -1;
}

/** 22.18 is the first Node that runs TypeScript without a flag, and it meets the requirements of MikroORM 7. */
function isRecentEnough(version) {
  const [major, minor] = version.split('.').map(Number);
  return major > 22 || (major === 22 && minor >= 18);
}

/** True for a clone without installed packages. */
function isBareClone() {
  const root = dirname(here);
  return !isInstalled() && existsSync(join(root, 'src')) && !existsSync(join(root, 'node_modules'));
}

/** The Node that `npm ci` installs in a clone (tools/node), wherever the package manager put it above this file. */
function findBroughtNode() {
  const name = `node-${isWindows ? 'win' : process.platform}-${process.arch}`;
  for (let folder = here; ; folder = dirname(folder)) {
    const file = join(folder, 'node_modules', name, 'bin', isWindows ? 'node.exe' : 'node');
    // If the installed Node itself is the one that is too old, starting it again would never end.
    if (existsSync(file) && realpathSync(file) !== realpathSync(process.execPath)) return file;
    if (folder === dirname(folder)) return undefined;
  }
}

/** Time in which a child that got Ctrl-C from the terminal has most probably ended, in ms. */
const TERMINAL_MS = 100;

/** Runs the same command with another Node and ends with its exit code or signal. */
function handOver(node, script) {
  // The channel carries no messages: its disconnect tells the other side that this process has ended.
  const child = spawn(node, [script].concat(process.argv.slice(2)), {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: Object.assign({}, process.env, { [MARK]: '1' }),
  });
  // On Windows the console signals both processes, and `kill` would end the child abruptly; it is enough that
  // this process ends last. Elsewhere a terminal also signals both: a child that ends by Ctrl-C gets no
  // second signal, which could change its exit code; a child that continues treats both as one.
  const signals = isWindows ? ['SIGINT', 'SIGHUP', 'SIGBREAK'] : ['SIGINT', 'SIGHUP', 'SIGTERM'];
  const pass = (signal) => isWindows || child.kill(signal);
  followNpm(() => pass('SIGTERM'));
  const passLater = (signal) => setTimeout(pass, TERMINAL_MS, signal).unref();
  for (const signal of signals) process.on(signal, signal === 'SIGINT' ? passLater : pass);

  child.on('error', (error) => giveUp(`stagedoor could not start ${node}: ${error.message}`));
  child.on('exit', (code, signal) => {
    for (const name of signals) process.removeAllListeners(name);
    process.exitCode = signal ? 128 + constants.signals[signal] : code;
    // A process that waits for this one sees the same signal. Process 1 of a container survives it, hence the code.
    if (signal && !isWindows) process.kill(process.pid, signal);
  });
}

/**
 * Ends in order, as after SIGTERM, when the process that handed over has ended: a signal that killed it was
 * meant for the program, and nothing else would stop this process.
 */
function followParent() {
  const isHandedOver = process.env[MARK] === '1';
  delete process.env[MARK];
  if (!isHandedOver || !process.channel) return;
  process.on('disconnect', stopSelf);
  // The listener must not keep a program alive that has nothing left to do.
  process.channel.unref();
}

/**
 * Calls `stop` once when npm, which started this program, has ended: npm passes a SIGTERM to its shell, which
 * ends without passing it on. Not for a background gateway, which outlives the process that started it.
 */
function followNpm(stop) {
  const { npm_execpath: npm, [DAEMON_MARK]: daemon } = process.env;
  if (!npm || daemon !== undefined || isWindows) return;
  const before = npmAbove();
  const timer = setInterval(() => {
    if (npmAbove() === before) return;
    clearInterval(timer);
    stop();
  }, PARENT_LOOK_MS);
  timer.unref();
}

/** The parent of npm's shell, where the system shows it, else the parent. */
function npmAbove() {
  try {
    // "pid (name) state parent ..."
    const [, name, above] = /\((.*)\) \S (\d+) /.exec(readFileSync(`/proc/${process.ppid}/stat`, 'latin1'));
    return /^(sh|dash|bash)$/.test(name) ? above : String(process.ppid);
  } catch (_) {
    return String(process.ppid); // not Linux
  }
}

/** Ends this process as SIGTERM does. */
function stopSelf() {
  if (!process.emit('SIGTERM', 'SIGTERM')) process.exit(128 + constants.signals.SIGTERM);
}
