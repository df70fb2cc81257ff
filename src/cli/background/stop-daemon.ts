// Ends a gateway that runs in the background, in order: as Ctrl-C would in the foreground.

import { setTimeout as sleep } from 'node:timers/promises';
import { ownCommand } from '../../domain/own-command.ts';
import { CommandFailure } from '../failures.ts';
import type { Terminal } from '../terminal.ts';
import { type Daemon, type DaemonFiles, runningDaemon } from './daemon-files.ts';

/** How often it is looked at, and after how long it is said what is waited for, in ms. */
const LOOK_MS = 50;
const QUIET_MS = 500;
/** What the end may take beyond the grace time of the calls, in ms; then a second signal ends it at once, which may take this long again. */
const LAST_MS = 10_000;

/** The daemon that runs there. Throws CommandFailure when there is none. */
export async function requireDaemon(files: DaemonFiles): Promise<Daemon> {
  const daemon = await runningDaemon(files);
  if (daemon !== undefined) return daemon;
  throw new CommandFailure(
    `no gateway runs in the background with the state folder ${files.folder}; ` +
      `start one with "${ownCommand('gateway start --background')}", or name its --state-dir, --database or --config`,
  );
}

/** Resolves when its process is gone. Throws CommandFailure when it cannot be ended. */
export async function stopDaemon({ pid, graceMs }: Daemon, terminal: Terminal): Promise<void> {
  if (!signal(pid, 'SIGTERM') || (await isGone(pid, QUIET_MS))) return;
  if (terminal.columns !== undefined) {
    terminal.note(`stopping process ${pid}: its calls in flight have ${graceMs / 1000} s`);
  }
  if (await terminal.busy('stopping', () => isGone(pid, graceMs + LAST_MS))) return;
  // A second signal ends it at once, its children first.
  signal(pid, 'SIGTERM');
  if (await isGone(pid, LAST_MS)) return;
  throw new CommandFailure(`process ${pid} does not end; "kill -9 ${pid}" ends it and leaves its children`);
}

async function isGone(pid: number, withinMs: number): Promise<boolean> {
  for (let waitedMs = 0; waitedMs < withinMs; waitedMs += LOOK_MS) {
    if (!signal(pid, 0)) return true;
    await sleep(LOOK_MS);
  }
  return !signal(pid, 0);
}

/** False when there is no such process. Throws CommandFailure for one of another user. */
function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, name);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ESRCH') return false;
    throw new CommandFailure(`process ${pid} belongs to another user and has to be ended by that user`, {
      cause: error,
    });
  }
}
