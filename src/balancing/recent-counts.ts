// Two counters over the last ten seconds, in a ring of one slot per second: cheap, and old counts expire by themselves.

const SECONDS = 10;

export class RecentCounts {
  readonly #first = new Array<number>(SECONDS).fill(0);
  readonly #second = new Array<number>(SECONDS).fill(0);
  #atSecond = 0;

  /** All times are ms of one monotonic clock. */
  addFirst(nowMs: number): void {
    const slot = this.#slot(nowMs);
    this.#first[slot] = (this.#first[slot] ?? 0) + 1;
  }

  addSecond(nowMs: number): void {
    const slot = this.#slot(nowMs);
    this.#second[slot] = (this.#second[slot] ?? 0) + 1;
  }

  sums(nowMs: number): readonly [first: number, second: number] {
    this.#slot(nowMs);
    return [sum(this.#first), sum(this.#second)];
  }

  clear(): void {
    this.#first.fill(0);
    this.#second.fill(0);
  }

  #slot(nowMs: number): number {
    const second = Math.floor(nowMs / 1000);
    const passed = Math.min(second - this.#atSecond, SECONDS);
    for (let step = 1; step <= passed; step += 1) {
      const slot = (this.#atSecond + step) % SECONDS;
      this.#first[slot] = 0;
      this.#second[slot] = 0;
    }
    this.#atSecond = second;
    return second % SECONDS;
  }
}

function sum(counts: readonly number[]): number {
  let total = 0;
  for (const count of counts) total += count;
  return total;
}
