// A control group with a memory limit for one program. Over the limit the kernel kills the program, as in a container.
// Needs Linux, control groups version 1 or 2, and root.

import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const root = '/sys/fs/cgroup';
const isVersion2 = existsSync(join(root, 'cgroup.controllers'));
const parent = isVersion2 ? root : join(root, 'memory');
const FILES = isVersion2
  ? { limit: 'memory.max', peak: 'memory.peak' }
  : { limit: 'memory.limit_in_bytes', peak: 'memory.max_usage_in_bytes' };

let made = 0;

export class MemoryLimit {
  readonly #folder: string;

  /** Throws when the machine or the user does not allow it; see `canLimitMemory`. */
  constructor(bytes: number) {
    made += 1;
    this.#folder = join(parent, `stagedoor-spec-${process.pid}-${made}`);
    mkdirSync(this.#folder);
    try {
      writeFileSync(join(this.#folder, FILES.limit), String(bytes));
    } catch (thrown) {
      rmdirSync(this.#folder);
      throw thrown;
    }
  }

  /** The file that a process writes its id into to enter the group. */
  get processes(): string {
    return join(this.#folder, 'cgroup.procs');
  }

  /** The peak memory use of the group, in bytes, page cache included. */
  get peakBytes(): number {
    return Number(readFileSync(join(this.#folder, FILES.peak), 'utf8'));
  }

  /** Removes the group when its processes have ended; fails after 10 s. */
  async remove(): Promise<void> {
    for (let attempt = 0; ; attempt += 1) {
      try {
        rmdirSync(this.#folder);
        return;
      } catch (thrown) {
        if (attempt === 200) throw thrown; // a process is still in it
        await sleep(50);
      }
    }
  }
}

/** Whether control groups can be created on this machine. */
export const canLimitMemory = await canMakeOne();

async function canMakeOne(): Promise<boolean> {
  try {
    await new MemoryLimit(64 * 1024 * 1024).remove();
    return true;
  } catch {
    return false; // no control groups, or not root
  }
}
