// One process of specs (worker.ts) as the runner sees it: runs a file in it, enforces the time limits, and judges how it
// ended. A process that ends before it sent `finished` has failed with any exit code. It does not choose files or print.

import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { FinishedMessage, RunRequest, WorkerMessage } from './messages.ts';
import { killGroup, startsOwnGroup } from './processes.ts';
import type { FileLimits, FileResult } from './result.ts';

const workerModule = fileURLToPath(new URL('worker.ts', import.meta.url));
const outputCharacters = 64 * 1024;
/** How long to wait for the last output once the process is gone: a grandchild may hold the pipe open. */
const drainMs = 3_000;

export class SpecProcess {
  readonly #child: ChildProcess;
  readonly #ended: Promise<string | undefined>;
  readonly #closed: Promise<unknown>;
  #output = '';
  #isUsable = true;
  /** The faults of the running file, or those after the last one. */
  #faults: string[] = [];
  #onMessage: (message: WorkerMessage) => void = () => {};

  constructor() {
    this.#child = spawn(process.execPath, [...process.execArgv, workerModule], {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      detached: startsOwnGroup,
      windowsHide: true,
    });
    this.#child.on('message', (message: WorkerMessage) => this.#onMessage(message));
    this.#ended = new Promise((resolve) => {
      this.#child.on('error', (error) => {
        if (this.#child.pid === undefined) resolve(`could not be started: ${error.message}`);
      });
      this.#child.on('exit', (code, signal) => resolve(describeEnd(code, signal)));
    });
    // Not the event `close` of the process, which does not come after a disconnect.
    const outputs = [this.#child.stdout, this.#child.stderr];
    this.#closed = Promise.all(
      outputs.map((output) => new Promise((resolve) => output?.once('close', resolve) ?? resolve(undefined))),
    );
    const keep = (chunk: string): void => {
      this.#output = (this.#output + chunk).slice(-outputCharacters);
    };
    this.#child.stdout?.setEncoding('utf8').on('data', keep);
    this.#child.stderr?.setEncoding('utf8').on('data', keep);
  }

  /** Whether another file may run in it: no test failed, and nothing was left open. */
  get isUsable(): boolean {
    return this.#isUsable;
  }

  /** Runs one file. Never rejects: a process that cannot be started counts as a failed file. */
  async run(file: string, { timeoutMs, graceMs }: FileLimits, isAlone = false): Promise<FileResult> {
    const startedAt = performance.now();
    this.#output = '';
    let finished: FinishedMessage | undefined;
    let current: string | undefined;
    let passedSoFar = 0;
    const faults = this.#faults;

    const kill = (fault: string): void => {
      faults.push(fault);
      killGroup(this.#child);
    };
    const timeout = setTimeout(() => {
      const during = current ? `in "${current}"` : 'before its first test';
      kill(`timed out after ${timeoutMs / 1000} s ${finished ? 'after its last test' : during}`);
    }, timeoutMs);

    const isIdle = new Promise<boolean>((resolve) => {
      this.#onMessage = (message) => {
        switch (message.kind) {
          case 'progress':
            current = message.state === 'started' ? `${message.suite} > ${message.name}` : undefined;
            if (message.state === 'passed') passedSoFar += 1;
            return;
          case 'uncaught':
            this.#faults.push(message.text);
            return;
          case 'finished':
            finished = message;
            return;
          case 'lingering':
            kill(`left something open: ${message.resources.join(', ') || 'a pipe'}`);
            return;
          case 'idle':
            resolve(message.isReusable);
        }
      };
    });
    // The end of a process reports that it is gone.
    this.#child.send({ file, graceMs, isAlone } satisfies RunRequest, () => {});
    const end = await Promise.race([isIdle, this.#ended.then((badEnd) => ({ badEnd }))]);
    clearTimeout(timeout);
    const hasEnded = typeof end === 'object';
    if (hasEnded && faults.length === 0) {
      // A fault already explains the end: usually it is the reason why the process was killed.
      const when = finished ? 'although its tests had finished' : 'before its tests had finished';
      faults.push(`${end.badEnd ?? 'exited with 0'} ${when}${current ? `, in "${current}"` : ''}`);
    }
    const failed = (finished?.failed ?? 0) + faults.length;
    this.#faults = [];
    this.#isUsable = end === true && failed === 0;
    if (!this.#isUsable) await this.close();
    return {
      passed: finished?.passed ?? passedSoFar,
      failed,
      skipped: finished?.skipped ?? [],
      failures: [...(finished?.failures ?? []), ...faults],
      output: this.#output,
      durationMs: performance.now() - startedAt,
    };
  }

  /** Kills the process and everything that its files started. */
  kill(): void {
    this.#isUsable = false;
    killGroup(this.#child);
  }

  /** Lets the process end, which writes its coverage, then kills its group; waits for its last output. */
  async close(): Promise<void> {
    if (this.#isUsable && this.#child.connected) {
      this.#child.disconnect();
      await within(this.#ended, drainMs);
    }
    this.kill();
    await within(this.#closed, drainMs);
    this.#child.stdout?.destroy();
    this.#child.stderr?.destroy();
  }
}

/** Runs one file in a new process. */
export async function runFile(file: string, limits: FileLimits): Promise<FileResult> {
  const specProcess = new SpecProcess();
  const result = await specProcess.run(file, limits, true);
  await specProcess.close();
  return result;
}

async function within(promise: Promise<unknown>, limitMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, limitMs);
  });
  await Promise.race([promise, limit]);
  clearTimeout(timer);
}

function describeEnd(code: number | null, signal: NodeJS.Signals | null): string | undefined {
  if (signal) return `was ended by ${signal}`;
  return code ? `exited with ${code}` : undefined;
}
