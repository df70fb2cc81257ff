// Who was served last by a backend that several callers share. What it says of no call in particular may be about one that
// has ended, so it is told to a caller only while nobody else called for a while.

/** For so long after somebody else began to call, it may still be about what came before. */
const MIXED_MS = 60_000;

export class LoneCaller {
  readonly #now: () => number;
  #caller: string | undefined;
  #mixedUntilMs = Number.NEGATIVE_INFINITY;

  /** `now` is a monotonic clock in ms. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** True when whoever calls now is the only one who did for a while. */
  get isAlone(): boolean {
    return this.#now() >= this.#mixedUntilMs;
  }

  /** A call begins. Nobody in particular, such as a probe, counts as no other caller. */
  note(caller: string | undefined): void {
    if (caller === undefined || caller === this.#caller) return;
    if (this.#caller !== undefined) this.#mixedUntilMs = this.#now() + MIXED_MS;
    this.#caller = caller;
  }
}
