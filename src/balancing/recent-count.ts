// A counter of events in the last ten seconds, with one slot per second. Adding allocates nothing, since every call
// adds.

/** Slots of a second each. */
const SLOTS = 10;

/** Counts the events of the last ten seconds. */
export class RecentCount {
  /** The counts by second, modulo SLOTS. */
  readonly #counts = new Uint32Array(SLOTS);
  /** The newest second with a slot; the other slots are at most SLOTS - 1 older. */
  #newest = -SLOTS;

  /** Counts one event. All times are ms of one monotonic clock. */
  add(nowMs: number): void {
    this.#advanceTo(nowMs);
    const slot = this.#newest % SLOTS;
    this.#counts[slot] = (this.#counts[slot] ?? 0) + 1;
  }

  sum(nowMs: number): number {
    this.#advanceTo(nowMs);
    return this.#counts.reduce((sum, count) => sum + count, 0);
  }

  clear(): void {
    this.#counts.fill(0);
  }

  #advanceTo(nowMs: number): void {
    const second = Math.floor(nowMs / 1000);
    if (second === this.#newest) return;
    if (second - this.#newest >= SLOTS) this.#counts.fill(0);
    else for (let past = this.#newest + 1; past <= second; past += 1) this.#counts[past % SLOTS] = 0;
    this.#newest = second;
  }
}
