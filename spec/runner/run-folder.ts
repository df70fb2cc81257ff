// The scratch folder that all spec files of one run share. What they start together (private database servers) lives
// in it, watches the process that owns the run, and is gone when that one ends, however it ends.

import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface RunFolder {
  readonly path: string;
  /** The process with whose end the run is over. */
  readonly ownerPid: number;
}

const pathVariable = 'STAGEDOOR_RUN_FOLDER';
const pidVariable = 'STAGEDOOR_RUN_PID';
/** Deleted by the owner when the run is over: keepers need not wait for its death. */
const openMark = 'open';
/** In the folder of a keeper while there is a server to stop. */
export const keepingMark = 'keeping';
const stopWithinMs = 10_000;

/** The run's folder: that of the runner above, else one of this process. */
export function currentRunFolder(environment: Readonly<Record<string, string | undefined>>): RunFolder {
  const { [pathVariable]: path, [pidVariable]: ownerPid } = environment;
  if (path && ownerPid) return { path, ownerPid: Number(ownerPid) };
  const own = openRunFolder();
  Object.assign(process.env, variablesOf(own));
  // Keepers that still have something to stop remove their part themselves.
  process.once('exit', () => {
    if (!isKeeping(own)) rmSync(own.path, { recursive: true, force: true });
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

/** Ends the run: waits until everything kept for it has stopped, at most 10 s, and removes the folder. */
export async function closeRunFolder(run: RunFolder): Promise<void> {
  rmSync(join(run.path, openMark), { force: true });
  const giveUpAtMs = performance.now() + stopWithinMs;
  while (isKeeping(run) && performance.now() < giveUpAtMs) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  rmSync(run.path, { recursive: true, force: true, maxRetries: 5 });
}

function isKeeping({ path }: RunFolder): boolean {
  return existsSync(path) && readdirSync(path).some((name) => existsSync(join(path, name, keepingMark)));
}
