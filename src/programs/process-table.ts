// The process table of the machine, for the ends of programs: no event reports that a group of processes is empty, and to
// look for the members of one group takes as long as to look for those of all.

import { readdirSync } from 'node:fs';
import { sleep, systemClock } from '../domain/time/clock.ts';
import { SerialQueue } from '../domain/time/serial-queue.ts';
import { eachInGroups } from '../domain/time/task-groups.ts';
import { killGroup, runningGroupOf } from './process-group.ts';

/** The wait before each read, in ms, in which others ask, too: the programs of a gateway end together. */
const PAUSE_MS = 20;

/** Knows which groups of processes run. One read of the table serves all who asked before it began. */
export class ProcessTable {
  readonly #reads = new SerialQueue();
  /** The read that has not begun. */
  #next: Promise<ReadonlySet<number> | undefined> | undefined;

  /**
   * Resolves with true when a member of the group runs. On Linux zombies do not count: process 1 must reap an orphan, and in a
   * container that may be a program that never does. POSIX only.
   */
  async isRunning(leader: number): Promise<boolean> {
    // One read misses a process that starts another one and ends meanwhile.
    return (await this.#isSeen(leader)) || (await this.#isSeen(leader)) || (await this.#isSeen(leader));
  }

  async #isSeen(leader: number): Promise<boolean> {
    if (!killGroup(leader, 0)) return false;
    if (process.platform !== 'linux') return true;
    this.#next ??= this.#reads.take(async () => {
      await sleep(systemClock, PAUSE_MS);
      this.#next = undefined;
      return runningGroups();
    });
    return (await this.#next)?.has(leader) ?? true; // without /proc only the result of the signal is known
  }
}

/** The leaders of all groups with a running member, read in several turns of the event loop; undefined without /proc. */
async function runningGroups(): Promise<ReadonlySet<number> | undefined> {
  const groups = new Set<number>();
  try {
    await eachInGroups(readdirSync('/proc'), (name) => {
      const leader = runningGroupOf(name);
      if (leader !== undefined) groups.add(leader);
    });
    return groups;
  } catch {
    return undefined;
  }
}
