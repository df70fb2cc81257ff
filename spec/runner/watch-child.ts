// Listens to one spec process, enforces its time limits, and judges how it ended. Silence is a verdict: a process that
// ends without having said `finished` has failed, whatever its exit code. It does not start the process or read output.

import type { ChildProcess } from 'node:child_process';
import type { ChildMessage, FinishedMessage } from './messages.ts';
import { killGroup } from './processes.ts';
import type { FileLimits, Verdict } from './result.ts';

/** How much later than the child's own alarm the runner looks, in case the child is too busy to speak. */
const busyMs = 2_000;

/** A child under watch. */
export interface Watch {
  /** Resolves when the process is gone, with how it ended when that was no good end. */
  readonly ended: Promise<string | undefined>;
  /** Gives up the limits and says what became of the tests. To be called when the last message has arrived. */
  judge(badEnd: string | undefined): Verdict;
}

/** Starts watching. Must be called in the same turn as the spawn, before the first message can arrive. */
export function watchChild(child: ChildProcess, { timeoutMs, graceMs }: FileLimits): Watch {
  let finished: FinishedMessage | undefined;
  let current: string | undefined;
  let passedSoFar = 0;
  let busy: NodeJS.Timeout | undefined;
  const faults: string[] = [];

  const kill = (fault: string): void => {
    faults.push(fault);
    killGroup(child);
  };
  const timeout = setTimeout(() => {
    const during = current ? `in "${current}"` : 'before its first test';
    kill(`timed out after ${timeoutMs / 1000} s ${finished ? 'after its last test' : during}`);
  }, timeoutMs);

  const listen = (message: ChildMessage): void => {
    switch (message.kind) {
      case 'progress':
        current = message.state === 'started' ? `${message.suite} > ${message.name}` : undefined;
        if (message.state === 'passed') passedSoFar += 1;
        return;
      case 'stray':
        faults.push(message.text);
        return;
      case 'lingering':
        kill(leftOpen(message.resources));
        return;
      case 'finished':
        finished = message;
        busy = setTimeout(() => kill(leftOpen(['a loop that never yields'])), graceMs + busyMs);
    }
  };
  child.on('message', (message) => listen(message as ChildMessage));

  const ended = new Promise<string | undefined>((resolve) => {
    child.on('error', (error) => {
      faults.push(`the process: ${error.message}`);
      if (child.pid === undefined) resolve(undefined);
    });
    child.on('exit', (code, signal) => resolve(describeEnd(code, signal)));
  });

  const judge = (badEnd: string | undefined): Verdict => {
    clearTimeout(timeout);
    clearTimeout(busy);
    // A fault already explains the end: mostly it is why the process was killed.
    if (faults.length === 0 && !finished) {
      faults.push(
        `${badEnd ?? 'exited with 0'} before its tests had finished${current ? `, in "${current}"` : ''}`,
      );
    } else if (faults.length === 0 && badEnd) {
      faults.push(`${badEnd} although its tests had finished`);
    }
    return {
      passed: finished?.passed ?? passedSoFar,
      failed: (finished?.failed ?? 0) + faults.length,
      skipped: finished?.skipped ?? [],
      failures: [...(finished?.failures ?? []), ...faults],
    };
  };
  return { ended, judge };
}

function describeEnd(code: number | null, signal: NodeJS.Signals | null): string | undefined {
  if (signal) return `was ended by ${signal}`;
  return code ? `exited with ${code}` : undefined;
}

function leftOpen(resources: readonly string[]): string {
  // The pipes are stdout, stderr and the IPC channel of every spec process: no news while there is something else.
  const telling = resources.filter((resource) => resource !== 'PipeWrap');
  return `left something open: ${(telling.length > 0 ? telling : resources).join(', ')}`;
}
