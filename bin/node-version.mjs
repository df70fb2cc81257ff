// Which Node runs this: says whether it is recent enough, finds the one that npm brought, and hands over to it.
// Shared by stagedoor.mjs and with-node.mjs. Plain JavaScript that Node 12 can parse, with imports of Node's own modules
// only, so that an old Node gets as far as the sentence that says what is needed.

import { spawn } from 'child_process';
import { existsSync, readFileSync, realpathSync } from 'fs';
import { constants } from 'os';
import { dirname, join, sep } from 'path';
import { fileURLToPath } from 'url';

const here = dirname(fileURLToPath(import.meta.url));
const isWindows = process.platform === 'win32';
/** Set for the Node that was handed over to, so that it knows who is at the other end of its channel. */
const MARK = 'STAGEDOOR_FRONT_DOOR';
/** Set for a gateway in the background; see src/cli/background/daemon-files.ts. */
const DAEMON_MARK = 'STAGEDOOR_BACKGROUND';
/** How often it is seen whether the parent is still there, in ms. */
const PARENT_LOOK_MS = 500;

/**
 * Calls `run` in a recent enough Node: here when this is one, else by starting `script` again, with the same arguments,
 * in the Node that npm brought. When there is none it says so and leaves exit code 2.
 */
export function withRecentNode(script, run) {
  if (isRecentEnough(process.versions.node)) {
    followFrontDoor();
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
  giveUp(
    `stagedoor needs Node 22.18 or later (this is ${process.version}); install it` +
      (isInstalled()
        ? ''
        : ', or on Linux and Windows run npm ci again with optional dependencies, which bring one'),
  );
}

/** Imports a module; one line instead of a stack when the packages it needs are not installed. */
export async function load(url) {
  try {
    return await import(url);
  } catch (error) {
    if (error.code !== 'ERR_MODULE_NOT_FOUND' || !/^Cannot find package/.test(error.message)) throw error;
    giveUp(`stagedoor lacks its dependencies (${error.message.split(' imported')[0]}): run npm ci`);
  }
}

/** Says one line on standard error and leaves exit code 2. */
export function giveUp(line) {
  process.stderr.write(`${line}\n`);
  process.exitCode = 2;
}

/** An installed package stands below node_modules, a clone does not. */
export function isInstalled() {
  return here.split(sep).indexOf('node_modules') !== -1;
}

/** 22.18 is the first Node that runs TypeScript without a flag, and has all that MikroORM 7 asks for. */
function isRecentEnough(version) {
  const [major, minor] = version.split('.').map(Number);
  return major > 22 || (major === 22 && minor >= 18);
}

/** A clone in which nothing was installed yet. */
function isBareClone() {
  const root = dirname(here);
  return !isInstalled() && existsSync(join(root, 'src')) && !existsSync(join(root, 'node_modules'));
}

/** The Node that `npm ci` brings to a clone (tools/node), wherever the package manager has put it above this file. */
function findBroughtNode() {
  const name = `node-${isWindows ? 'win' : process.platform}-${process.arch}`;
  for (let folder = here; ; folder = dirname(folder)) {
    const file = join(folder, 'node_modules', name, 'bin', isWindows ? 'node.exe' : 'node');
    // If the Node that is too old is the brought one itself, starting it again would go on for ever.
    if (existsSync(file) && realpathSync(file) !== realpathSync(process.execPath)) return file;
    if (folder === dirname(folder)) return undefined;
  }
}

/** Time in which a child that the terminal told of Ctrl-C has most probably ended, in ms. */
const TERMINAL_MS = 100;

/** Runs the same command with another Node and ends as it ends. */
function handOver(node, script) {
  // Nothing is said on the channel: that it breaks tells the other side that this process is gone.
  const child = spawn(node, [script].concat(process.argv.slice(2)), {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: Object.assign({}, process.env, { [MARK]: '1' }),
  });
  // On Windows the console tells both processes, and `kill` would end the child without a word; there it is enough not
  // to die first. Elsewhere a terminal tells both, too: a child that Ctrl-C ends is not told again while it exits, when a signal
  // would change its exit code; one that goes on takes both as one.
  const signals = isWindows ? ['SIGINT', 'SIGHUP', 'SIGBREAK'] : ['SIGINT', 'SIGHUP', 'SIGTERM'];
  const pass = (signal) => isWindows || child.kill(signal);
  followNpm(() => pass('SIGTERM'));
  const passLater = (signal) => setTimeout(pass, TERMINAL_MS, signal).unref();
  for (const signal of signals) process.on(signal, signal === 'SIGINT' ? passLater : pass);

  child.on('error', (error) => giveUp(`stagedoor could not start ${node}: ${error.message}`));
  child.on('exit', (code, signal) => {
    for (const name of signals) process.removeAllListeners(name);
    process.exitCode = signal ? 128 + constants.signals[signal] : code;
    // Whoever waits for this process sees the same signal. As process 1 of a container it survives that: hence the code.
    if (signal && !isWindows) process.kill(process.pid, signal);
  });
}

/**
 * Ends in order, as after SIGTERM, when the process that handed over is gone: whoever killed it meant the program, and
 * nobody else would ever stop this one.
 */
function followFrontDoor() {
  const isHandedOver = process.env[MARK] === '1';
  delete process.env[MARK];
  if (!isHandedOver || !process.channel) return;
  process.on('disconnect', stopSelf);
  // Listening must not keep a program alive that has nothing left to do.
  process.channel.unref();
}

/**
 * Calls `stop` once when npm, which started this program, is gone: npm passes a SIGTERM to its shell, which dies of it without
 * telling its child. Not for a gateway in the background, which outlives what started it.
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

/** The process above the shell of npm, where the system tells it, else the parent. */
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
