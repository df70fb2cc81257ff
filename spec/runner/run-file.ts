// Runs one spec file in a process of its own and returns one result, whatever happens.
// It does not choose files, limit how many run at once, judge the end (watch-child.ts) or print.

import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { killGroup, startsOwnGroup } from './processes.ts';
import type { FileLimits, FileResult } from './result.ts';
import { watchChild } from './watch-child.ts';

const childModule = fileURLToPath(new URL('child.ts', import.meta.url));
const outputCharacters = 64 * 1024;
/** How long to wait for the last output and messages once the process is gone: a grandchild may hold the pipe open. */
const drainMs = 3_000;

/** Runs one file. Never rejects: a process that cannot be started is a failed file. `onStart` hands out the process. */
export async function runFile(
  file: string,
  limits: FileLimits,
  onStart: (child: ChildProcess) => void = () => {},
): Promise<FileResult> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, [...process.execArgv, childModule, file, String(limits.graceMs)], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    detached: startsOwnGroup,
    windowsHide: true,
  });
  const watch = watchChild(child, limits);
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
  onStart(child);

  let output = '';
  const keep = (chunk: string): void => {
    output = (output + chunk).slice(-outputCharacters);
  };
  child.stdout?.setEncoding('utf8').on('data', keep);
  child.stderr?.setEncoding('utf8').on('data', keep);

  const badEnd = await watch.ended;
  // Also after a good end: whatever the file started must not outlive it.
  killGroup(child);
  await settledWithin(closed, drainMs);
  child.stdout?.destroy();
  child.stderr?.destroy();
  return { ...watch.judge(badEnd), output, durationMs: performance.now() - startedAt };
}

async function settledWithin(promise: Promise<void>, limitMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, limitMs);
  });
  await Promise.race([promise, limit]);
  clearTimeout(timer);
}
