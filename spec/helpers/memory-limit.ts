// A control group with a memory limit, for a program that is started inside it: over the limit the kernel kills the
// program, as it would in a container. Linux, version 1 or 2 of control groups, and the rights to make one (root).

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

  /** Throws where this machine or this user cannot do it; see `canLimitMemory`. */
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

  /** Most memory that was used in the group so far, in bytes; page cache counts. */
  get peakBytes(): number {
    return Number(readFileSync(join(this.#folder, FILES.peak), 'utf8'));
  }

  /** Removes the group once its processes have ended; fails after 10 s. */
  async remove(): Promise<void> {
    for (let attempt = 0; ; attempt += 1) {
      try {
        rmdirSync(this.#folder);
        return;
      } catch (thrown) {
        if (attempt === 200) throw thrown; // a process is left in it
        await sleep(50);
      }
    }
  }
}

/** Whether control groups can be made here. */
export const canLimitMemory = await canMakeOne();

async function canMakeOne(): Promise<boolean> {
  try {
    await new MemoryLimit(64 * 1024 * 1024).remove();
    return true;
  } catch {
    return false; // no control groups, or not root
  }
}
