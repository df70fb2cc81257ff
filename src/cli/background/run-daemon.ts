// The detached process of `gateway start --background`. Until the gateway is ready, its output goes through its
// parent process to the terminal. Its standard output and error are the log file, so that the log also has the
// output of Node itself at a crash.

import { copyFileSync, existsSync, fstatSync, ftruncateSync, renameSync, rmSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../../config/config.ts';
import { lockFile } from '../../persistence/file-lock.ts';
import { CommandFailure, UsageError } from '../failures.ts';
import { createLog } from '../foreground/log.ts';
import { runGateway } from '../foreground/run-gateway.ts';
import type { Terminal } from '../terminal.ts';
import { workerCount } from '../workers/worker-count.ts';
import {
  DAEMON_VARIABLE,
  type DaemonFiles,
  type DaemonMessage,
  daemonFiles,
  NODE_ID_VARIABLE,
  writeDaemon,
} from './daemon-files.ts';

/**
 * The number of attempts to get the lock, and the pause in between in ms: a command that checks the lock holds it for
 * a moment.
 */
const LOCK_TRIES = 10;
const LOCK_PAUSE_MS = 100;

export async function runDaemon(config: Config, terminal: Terminal): Promise<number> {
  const { [DAEMON_VARIABLE]: width = '' } = process.env;
  const columns = width === '' ? undefined : Number(width);
  delete process.env[DAEMON_VARIABLE];
  const files = await daemonFiles(config, terminal);
  const log = createLog(config.logLevel, false, rotatingLog(files.log));
  const send = (message: DaemonMessage): void => {
    // Without a callback, a parent that was killed a moment ago would be an uncaught error.
    if (process.connected) process.send?.(message, undefined, {}, () => {});
  };
  let isReady = false;
  // Until then the text may be the first password, which must not be in the log even if its reader is gone.
  const print = (text: string): void => (isReady ? log.info(text) : send({ kind: 'print', text }));
  let rotating: NodeJS.Timeout | undefined;
  let lock: Awaited<ReturnType<typeof takeLock>> | undefined;
  try {
    lock = await takeLock(files);
    rmSync(files.pid, { force: true }); // of one that was killed
    const options = {
      terminal: { ...terminal, columns, print },
      log,
      onReady: ({ urls: [url = ''] }: { readonly urls: readonly string[] }) => {
        writeDaemon(files, {
          pid: process.pid,
          url,
          words: process.argv.slice(2),
          folder: terminal.folder,
          nodeId: terminal.env[NODE_ID_VARIABLE] || undefined,
          graceMs: config.graceMs + config.shutdownDelayMs,
        });
        send({ kind: 'ready', url });
        isReady = true;
        if (process.connected) process.disconnect();
      },
    };
    const count = workerCount(config);
    if (count === 1) return await runGateway(config, { ...options, isDemo: false });
    rotating = setInterval(() => rotateLarge(files.log), ROTATION_MS).unref();
    const { runSupervisor } = await import('../workers/supervisor.ts');
    return await runSupervisor(config, { ...options, count });
  } catch (error) {
    const isUsage = error instanceof UsageError;
    if (isUsage || error instanceof CommandFailure) send({ kind: 'failed', text: error.message, isUsage });
    throw error;
  } finally {
    clearInterval(rotating);
    // Without the lock, the file is that of another gateway.
    if (lock !== undefined) rmSync(files.pid, { force: true });
    await lock?.release();
    if (process.connected) process.disconnect();
  }
}

async function takeLock({ lock: path, folder }: DaemonFiles): Promise<{ release(): Promise<void> }> {
  for (let tries = 0; tries < LOCK_TRIES; tries += 1) {
    const lock = await lockFile(path);
    if (lock !== undefined) return lock;
    await sleep(LOCK_PAUSE_MS);
  }
  throw new CommandFailure(`another gateway in the background uses the state folder ${folder}`);
}

const STANDARD_ERROR = 2;
/** The size at which the file is rotated, in bytes, and the number of old ones that are kept: `gateway.log.1` is the newest. */
const MAX_LOG_FILE_BYTES = 10 * 1024 * 1024;
const KEPT_FILES = 5;
/** The interval in ms of the checks of the size of a file that workers write, too. */
const ROTATION_MS = 1_000;

/** The `write` of a log sink. Throws the error of a write; a rotation that fails is skipped. */
export function rotatingLog(
  path: string,
  { descriptor = STANDARD_ERROR, largestBytes = MAX_LOG_FILE_BYTES } = {},
): (bytes: Uint8Array) => number {
  let size = fstatSync(descriptor).size;
  return (bytes) => {
    if (size > 0 && size + bytes.length > largestBytes) {
      rotate(path);
      ftruncateSync(descriptor);
      size = 0;
    }
    const written = writeSync(descriptor, bytes);
    size += written;
    return written;
  };
}

/** Rotates the file that is standard error when it is too large, whichever processes write it. */
function rotateLarge(path: string): void {
  if (fstatSync(STANDARD_ERROR).size <= MAX_LOG_FILE_BYTES) return;
  rotate(path);
  ftruncateSync(STANDARD_ERROR);
}

function rotate(path: string): void {
  try {
    for (let number = KEPT_FILES - 1; number >= 1; number -= 1)
      if (existsSync(`${path}.${number}`)) renameSync(`${path}.${number}`, `${path}.${number + 1}`);
    copyFileSync(path, `${path}.1`);
  } catch {
    // No space, or no right to write: the newest lines are worth more than the old ones.
  }
}
