// Starts the processes of the benchmark, and ends them with this process, unless that is killed.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

export interface StartOptions {
  readonly environment?: Readonly<Record<string, string>>;
  readonly workingFolder?: string;
  /** Words before the command, that start it elsewhere. */
  readonly under?: readonly string[];
  /** Longest wait for the announcement, in ms. Default 20 000. */
  readonly timeoutMs?: number;
}

/** A running process that announced itself. */
export interface Started {
  readonly pid: number;
  /** The announcement, as matched by the requested pattern. */
  readonly announced: RegExpExecArray;
  /** From just before the start of the process to the announcement. */
  readonly startedMs: number;
  /** Its last output. */
  output(): string;
  /** SIGKILL; resolves when the process has ended. */
  kill(): Promise<void>;
  /** SIGTERM, and SIGKILL after that time in ms (default 5 000). */
  stop(withinMs?: number): Promise<void>;
}

/** Printed by backends and baselines: `listening <port> …`. */
export const listening = /^listening ([\d ]+)$/m;

/** Enough for the line with 1,000 ports. */
const outputBytes = 20_000;
const stopWithinMs = 5_000;

/** Runs Node with these parameters until its output (stdout or stderr) matches. Throws with that output if it ends first. */
export async function startNode(
  parameters: readonly string[],
  pattern: RegExp,
  { environment = {}, workingFolder, under = [], timeoutMs = 20_000 }: StartOptions = {},
): Promise<Started> {
  const startMs = performance.now();
  const [command = '', ...words] = [...under, process.execPath, ...parameters];
  const child = spawn(command, words, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...environment },
    cwd: workingFolder,
  });
  const kill = (): boolean => child.kill('SIGKILL');
  process.on('exit', kill);
  child.on('exit', () => process.off('exit', kill));
  try {
    const output = { text: '' };
    const announced = await announcement(child, pattern, timeoutMs, output);
    const startedMs = performance.now() - startMs;
    // `spawn` succeeded, or there would be no announcement.
    const pid = child.pid ?? 0;
    const stopChild = (withinMs?: number): Promise<void> => stop(child, withinMs);
    const killChild = async (): Promise<void> => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, 'exit');
      kill();
      await gone;
    };
    return { pid, announced, startedMs, output: () => output.text, kill: killChild, stop: stopChild };
  } catch (error) {
    kill();
    throw error;
  }
}

/** Runs Node until it ends and returns its standard output. Throws when it fails. */
export async function runNode(parameters: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, [...parameters], { stdio: ['ignore', 'pipe', 'inherit'] });
  let printed = '';
  child.stdout.on('data', (chunk: Buffer) => {
    printed += chunk.toString();
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`node ${parameters[0]} ended with ${code}`);
  return printed;
}

function announcement(
  child: ChildProcess,
  pattern: RegExp,
  timeoutMs: number,
  output: { text: string },
): Promise<RegExpExecArray> {
  return new Promise((resolve, reject) => {
    const fail = (reason: string): void =>
      reject(new Error(`${reason}; it said: ${output.text.trim() || 'nothing'}`));
    let isAnnounced = false;
    const timer = setTimeout(() => fail(`no announcement within ${timeoutMs} ms`), timeoutMs);
    for (const stream of [child.stdout, child.stderr]) {
      // Reads on after the announcement: a verbose process would block on a full pipe.
      stream?.on('data', (chunk: Buffer) => {
        output.text = (output.text + chunk.toString()).slice(-outputBytes);
        if (isAnnounced) return;
        const match = pattern.exec(output.text);
        if (match === null) return;
        isAnnounced = true;
        clearTimeout(timer);
        resolve(match);
      });
    }
    child.on('error', (error) => fail(error.message));
    child.on('close', (code) => {
      clearTimeout(timer);
      fail(`the process ended with ${code}`);
    });
  });
}

async function stop(child: ChildProcess, withinMs = stopWithinMs): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), withinMs);
  await gone;
  clearTimeout(timer);
}
