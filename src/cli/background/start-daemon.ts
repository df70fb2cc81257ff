// Starts and stops a gateway in the background. A start runs the same command line as a detached process
// (run-daemon.ts) and waits until its gateway is ready.

import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, closeSync, constants, existsSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Config } from '../../config/config.ts';
import { makeFolders } from '../../config/make-folders.ts';
import { codeOf, fileFault, reasonOf } from '../../domain/errors/errors.ts';
import { PACKAGE_ROOT } from '../../domain/package-root.ts';
import { shellWord } from '../../domain/text.ts';
import { ownCommand } from '../../domain/version.ts';
import { describeDatabase } from '../../persistence/database-url.ts';
import { ownsGroup } from '../../programs/process-group.ts';
import { ProcessTable } from '../../programs/process-table.ts';
import type { CommandInput } from '../command.ts';
import { Cancelled, CommandFailure, UsageError, writeFailure } from '../failures.ts';
import { readSettings } from '../setting-options.ts';
import type { Terminal } from '../terminal.ts';
import {
  DAEMON_VARIABLE,
  type Daemon,
  type DaemonFiles,
  type DaemonMessage,
  daemonFiles,
  runningDaemon,
} from './daemon-files.ts';

const PROGRAM = fileURLToPath(new URL('bin/stagedoor.mjs', PACKAGE_ROOT));

/** The longest wait for the gateway to be ready, in ms. */
const READY_MS = 60_000;

/** Resolves with 0 when the gateway is ready. Throws CommandFailure when one runs there already, or when it cannot start. */
export async function startDaemon(
  config: Config,
  words: readonly string[],
  terminal: Terminal,
): Promise<number> {
  const files = await daemonFiles(config, terminal);
  const other = await runningDaemon(files);
  if (other !== undefined) {
    throw new CommandFailure(
      `a gateway already runs in the background: ${other.url}, process ${other.pid}; ` +
        `end it with "${stopCommand(config, files)}", or choose another --state-dir`,
    );
  }
  const child = spawnDaemon(openLog(files, config), words, terminal);
  let isInterrupted = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    isInterrupted ||= signal === 'SIGINT';
    child.kill('SIGTERM');
  };
  // A second one ends a start that hangs, as in the foreground.
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  try {
    const url = await terminal.busy('starting', () => untilReady(child, files, terminal));
    terminal.print(`running in the background: process ${child.pid}, log ${files.log}`);
    const { initialPasswordFileOf } = await import('../../server/storage.ts');
    const passwordFile = initialPasswordFileOf(config, { env: terminal.env, pid: child.pid });
    // Written by a start without a terminal, and deleted when the password is changed.
    if (existsSync(passwordFile)) terminal.print(`the password of the user "admin" is in ${passwordFile}`);
    terminal.print(`stop it with "${stopCommand(config, files)}"; its MCP clients use ${url}/mcp`);
    return 0;
  } catch (error) {
    throw isInterrupted ? new Cancelled() : error;
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  }
}

/** The command that stops this gateway: it names the state folder, unless the command looks in that of this folder anyway. */
function stopCommand(config: Config, { folder }: DaemonFiles): string {
  const isFound = config.stateFolder === undefined && folder === process.cwd();
  return ownCommand(`gateway stop${isFound ? '' : ` --state-dir ${shellWord(folder)}`}`);
}

/** Starts the detached process. `log`: the descriptor of its log. */
function spawnDaemon(log: number, words: readonly string[], terminal: Terminal): ChildProcess {
  try {
    return spawn(process.execPath, [...process.execArgv, PROGRAM, ...words], {
      cwd: terminal.folder,
      detached: true,
      env: { ...terminal.env, [DAEMON_VARIABLE]: String(terminal.columns ?? '') },
      stdio: ['ignore', log, log, 'ipc'],
      windowsHide: true,
    });
  } finally {
    closeSync(log);
  }
}

/** Makes the state folder, unless it is the folder of a database: a mistyped path must not create a folder. */
function openLog({ folder, log }: DaemonFiles, config: Config): number {
  const { file } = describeDatabase(config.databaseUrl, config.folder);
  const isOfDatabase = config.stateFolder === undefined && file !== undefined;
  try {
    if (!isOfDatabase) makeFolders(folder, 0o700);
    return openSync(log, 'a', 0o600);
  } catch (error) {
    throw new UsageError(`the state folder ${folder} cannot be used: ${reasonOf(error)}`, { cause: error });
  }
}

function untilReady(child: ChildProcess, { log }: DaemonFiles, terminal: Terminal): Promise<string> {
  return new Promise((resolve, reject) => {
    let failure: Error | undefined;
    // The second time it ends at once.
    const timer = setInterval(() => {
      failure = new CommandFailure(`the gateway was not ready within ${READY_MS / 1000} s; see ${log}`);
      child.kill('SIGTERM');
    }, READY_MS);
    child.on('error', (error) =>
      reject(new CommandFailure(`the gateway cannot be started: ${error.message}`)),
    );
    child.on('message', (message: DaemonMessage) => {
      if (message.kind === 'print') terminal.print(message.text);
      else if (message.kind === 'failed')
        failure ??= new (message.isUsage ? UsageError : CommandFailure)(message.text);
      else {
        clearInterval(timer);
        child.unref();
        resolve(message.url);
      }
    });
    // After the last message, which the exit may overtake.
    child.on('close', (code, signal) => {
      clearInterval(timer);
      reject(
        failure ??
          new CommandFailure(`the gateway exited at once (${signal ?? `exit code ${code}`}); see ${log}`),
      );
    });
  });
}

/** The interval in ms of the checks whether the process has ended. */
const CHECK_MS = 50;
/** The time to end beyond the grace time of the calls, in ms; the same again after a second signal, which ends it at once. */
const LAST_MS = 10_000;

/** The daemon that the options name. Throws CommandFailure when there is none. */
export async function requireDaemon(input: CommandInput, terminal: Terminal): Promise<Daemon> {
  const files = await daemonFiles(readSettings(input, terminal), terminal);
  const daemon = await runningDaemon(files);
  if (daemon !== undefined) return daemon;
  try {
    accessSync(files.pid, constants.R_OK);
  } catch (error) {
    if (codeOf(error) === 'EACCES')
      throw new CommandFailure(`${files.pid} cannot be read: ${fileFault(error)}`, { cause: error });
  }
  throw new CommandFailure(
    `no gateway runs in the background with the state folder ${files.folder}; ` +
      `start one with "${ownCommand('gateway start --background')}", or name its --state-dir, --database or --config`,
  );
}

/** The number of bytes that a start writes beside the database: its journal, the files of the daemon and their locks. */
const START_BYTES = 256 * 1024;

/** Throws CommandFailure when the disk of the state folder has no space for a start. */
export async function requireSpace(config: Config, terminal: Terminal): Promise<void> {
  const { folder } = await daemonFiles(config, terminal);
  const probe = join(folder, `gateway.${process.pid}.tmp`);
  try {
    writeFileSync(probe, Buffer.alloc(START_BYTES), { flag: 'wx', mode: 0o600, flush: true });
  } catch (error) {
    throw writeFailure(folder, error, '; the gateway keeps running');
  } finally {
    rmSync(probe, { force: true });
  }
}

/** Resolves when its process is gone. Throws CommandFailure when it cannot be ended. */
export async function stopDaemon({ pid, graceMs }: Daemon, terminal: Terminal): Promise<void> {
  if (!signal(pid, 'SIGTERM')) return;
  if (await terminal.busy(`stopping process ${pid}`, () => isGone(pid, graceMs + LAST_MS))) return;
  signal(pid, 'SIGTERM');
  if (await isGone(pid, LAST_MS)) return;
  throw new CommandFailure(`process ${pid} does not end; "kill -9 ${pid}" ends it`);
}

async function isGone(pid: number, withinMs: number): Promise<boolean> {
  // A zombie has ended: process 1 of a container may never reap it.
  const processes = new ProcessTable();
  const runs = () => (ownsGroup ? processes.isRunning(pid) : signal(pid, 0));
  for (let waitedMs = 0; await runs(); waitedMs += CHECK_MS) {
    if (waitedMs >= withinMs) return false;
    await sleep(CHECK_MS);
  }
  return true;
}

/** False when there is no such process. Throws CommandFailure for a process of another user. */
function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, name);
  } catch (error) {
    if (codeOf(error) === 'ESRCH') return false;
    throw new CommandFailure(`process ${pid} belongs to another user and has to be ended by that user`, {
      cause: error,
    });
  }
}
