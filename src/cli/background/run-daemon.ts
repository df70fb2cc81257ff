// The detached process of `gateway start --background`. Until the gateway is ready, what it says goes to the process that
// started it and from there to the terminal; from then on to the log. Its standard output and error are the log file, so
// that whatever Node itself says at a crash is in it, too.

import { rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../../config.ts';
import { lockFile } from '../../persistence/file-lock.ts';
import { CommandFailure, UsageError } from '../failures.ts';
import { createLog } from '../log.ts';
import { runGateway } from '../run-gateway.ts';
import type { Terminal } from '../terminal.ts';
import {
  DAEMON_MARK,
  type DaemonFiles,
  type DaemonMessage,
  daemonFiles,
  writeDaemon,
} from './daemon-files.ts';
import { rotatingLog } from './rotating-log.ts';

/** How often the lock is tried, and the pause in between in ms: a command that looks at it holds it for a moment. */
const LOCK_TRIES = 10;
const LOCK_PAUSE_MS = 100;

/** Runs the gateway until a signal stops it; resolves with its exit code. */
export async function runDaemon(config: Config, terminal: Terminal): Promise<number> {
  const { [DAEMON_MARK]: width = '' } = process.env;
  const columns = width === '' ? undefined : Number(width);
  delete process.env[DAEMON_MARK];
  const files = await daemonFiles(config, terminal);
  const log = createLog(config.logLevel, false, rotatingLog(files.log));
  const tell = (message: DaemonMessage, instead: () => void): void => {
    if (process.connected) process.send?.(message);
    else instead();
  };
  const afar: Terminal = {
    ...terminal,
    columns,
    canAsk: false,
    paint: (_colour, text) => text,
    print: (text) => tell({ kind: 'print', text }, () => log.info(text)),
    complain: (text) => tell({ kind: 'complain', text }, () => log.warn(text)),
    note: (text) => tell({ kind: 'complain', text }, () => log.info(text)),
  };
  const lock = await lockOf(files);
  try {
    return await runGateway(config, {
      isDemo: false,
      terminal: afar,
      log,
      onReady: ({ urls: [url = ''] }) => {
        writeDaemon(files, {
          pid: process.pid,
          url,
          words: process.argv.slice(2),
          folder: terminal.folder,
          graceMs: config.graceMs,
        });
        tell({ kind: 'ready', url }, () => {});
        if (process.connected) process.disconnect();
      },
    });
  } catch (error) {
    const isUsage = error instanceof UsageError;
    if (isUsage || error instanceof CommandFailure)
      tell({ kind: 'failed', text: error.message, isUsage }, () => {});
    throw error;
  } finally {
    rmSync(files.pid, { force: true });
    await lock.release();
    if (process.connected) process.disconnect();
  }
}

async function lockOf({ lock: path, folder }: DaemonFiles): Promise<{ release(): Promise<void> }> {
  for (let tries = 0; tries < LOCK_TRIES; tries += 1) {
    const lock = await lockFile(path);
    if (lock !== undefined) return lock;
    await sleep(LOCK_PAUSE_MS);
  }
  throw new CommandFailure(`another gateway in the background has the state folder ${folder}`);
}
