// Lets a few expensive jobs run at a time and a bounded number wait in order; the next one is refused.
// It knows nothing about passwords: that is passwords.ts.

/** Jobs run in the order in which they came. */
export class HashQueue {
  readonly #atOnce: number;
  readonly #waitingAtMost: number;
  readonly #refusal: () => Error;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  /** `refusal` makes the error of a job that finds the line full. */
  constructor(bounds: { atOnce: number; waitingAtMost: number; refusal: () => Error }) {
    this.#atOnce = bounds.atOnce;
    this.#waitingAtMost = bounds.waitingAtMost;
    this.#refusal = bounds.refusal;
  }

  /** Runs the job when its turn comes; rejects at once when the line is full. */
  async run<T>(job: () => Promise<T>): Promise<T> {
    if (this.#running < this.#atOnce) this.#running += 1;
    else if (this.#waiting.length < this.#waitingAtMost)
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else throw this.#refusal();
    try {
      return await job();
    } finally {
      // The place passes to the next in line, so nobody can slip in between.
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }
}
