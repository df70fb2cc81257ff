// A counter over the last ten seconds, in one slot per second.

const SECONDS = 10;

interface Slot {
  readonly atSecond: number;
  count: number;
}

export class RecentCount {
  /** Oldest first; none for a second in which nothing was counted. */
  #slots: readonly Slot[] = [];

  /** All times are ms of one monotonic clock. */
  add(nowMs: number): void {
    const atSecond = Math.floor(nowMs / 1000);
    const last = this.#slots.at(-1);
    if (last?.atSecond === atSecond) last.count += 1;
    else this.#slots = [...this.#slots.slice(1 - SECONDS), { atSecond, count: 1 }];
  }

  sum(nowMs: number): number {
    const oldest = Math.floor(nowMs / 1000) - SECONDS;
    let sum = 0;
    for (const { atSecond, count } of this.#slots) if (atSecond > oldest) sum += count;
    return sum;
  }

  clear(): void {
    this.#slots = [];
  }
}
