// Two counters over the last ten seconds, in one slot per second.

const SECONDS = 10;

interface Slot {
  readonly atSecond: number;
  first: number;
  second: number;
}

export class RecentCounts {
  /** Oldest first; none for a second in which nothing was counted. */
  #slots: readonly Slot[] = [];

  /** All times are ms of one monotonic clock. */
  addFirst(nowMs: number): void {
    this.#slot(nowMs).first += 1;
  }

  addSecond(nowMs: number): void {
    this.#slot(nowMs).second += 1;
  }

  sums(nowMs: number): readonly [first: number, second: number] {
    const sums: [number, number] = [0, 0];
    for (const { atSecond, first, second } of this.#slots) {
      if (atSecond <= Math.floor(nowMs / 1000) - SECONDS) continue;
      sums[0] += first;
      sums[1] += second;
    }
    return sums;
  }

  clear(): void {
    this.#slots = [];
  }

  #slot(nowMs: number): Slot {
    const atSecond = Math.floor(nowMs / 1000);
    const last = this.#slots.at(-1);
    if (last?.atSecond === atSecond) return last;
    const slot = { atSecond, first: 0, second: 0 };
    this.#slots = [...this.#slots.slice(1 - SECONDS), slot];
    return slot;
  }
}
