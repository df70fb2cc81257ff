// The scratch folder that all spec files of one run share. What they start together (private database servers) lives
// in it, watches the process that owns the run, and is gone when that one ends, however it ends.

import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isRunning } from '../helpers/is-running.ts';

export interface RunFolder {
  readonly path: string;
  /** The process with whose end the run is over. */
  readonly ownerPid: number;
}

const pathVariable = 'STAGEDOOR_RUN_FOLDER';
const pidVariable = 'STAGEDOOR_RUN_PID';
/** Deleted by the owner when the run is over: supervisors need not wait for its death. */
const openMark = 'open';
/** In the folder of a supervisor, with its process id, while there is a server to stop or files of it to remove. */
export const keepingMark = 'keeping';
const stopWithinMs = 30_000;

/** The run's folder: that of the runner above, else one of this process. */
export function currentRunFolder(environment: Readonly<Record<string, string | undefined>>): RunFolder {
  const { [pathVariable]: path, [pidVariable]: ownerPid } = environment;
  if (path && ownerPid) return { path, ownerPid: Number(ownerPid) };
  const own = openRunFolder();
  Object.assign(process.env, variablesOf(own));
  // Supervisors that still have something to stop remove their part themselves.
  process.once('exit', () => {
    if (isKeeping(own.path)) return;
    try {
      rmSync(own.path, { recursive: true, force: true });
    } catch {
      // A supervisor has come to life meanwhile: no run is left that it serves.
    }
  });
  return own;
}

/** Makes a folder whose owner is this process. Others may enter it, since servers do not run as root. */
export function openRunFolder(): RunFolder {
  const path = mkdtempSync(join(tmpdir(), 'stagedoor-run-'));
  chmodSync(path, 0o711);
  writeFileSync(join(path, openMark), '');
  return { path, ownerPid: process.pid };
}

/** What tells processes below about the run. */
export function variablesOf({ path, ownerPid }: RunFolder): Record<string, string> {
  return { [pathVariable]: path, [pidVariable]: String(ownerPid) };
}

/** Whether the run goes on, as far as its owner has said; a dead owner has said nothing. */
export function isOpen(path: string): boolean {
  return existsSync(join(path, openMark));
}

/** Ends the run: waits until everything kept for it has stopped, at most 30 s, and removes the folder. */
export async function closeRunFolder({ path }: RunFolder): Promise<void> {
  rmSync(join(path, openMark), { force: true });
  const giveUpAtMs = performance.now() + stopWithinMs;
  while (isKeeping(path) && performance.now() < giveUpAtMs) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await removeFolder(path);
}

/**
 * Removes a folder of which somebody else may be removing a part, or in which a killed server's children still write.
 * Not `rmSync`: when something vanishes under it, it stops half-way and says nothing; its retries do not wait.
 */
export function removeFolder(path: string): Promise<void> {
  return rm(path, { recursive: true, force: true, maxRetries: 10 });
}

/** Whether a supervisor that still lives has something to stop. */
export function isKeeping(path: string): boolean {
  return namesIn(path).some((name) => {
    const supervisor = supervisorIn(join(path, name, keepingMark));
    // The mark is there a moment before the number in it.
    return supervisor === '' || (supervisor !== undefined && isRunning(Number(supervisor)));
  });
}

function namesIn(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch {
    return []; // it is gone
  }
}

function supervisorIn(mark: string): string | undefined {
  try {
    return readFileSync(mark, 'utf8');
  } catch {
    return undefined; // none keeps anything here
  }
}
