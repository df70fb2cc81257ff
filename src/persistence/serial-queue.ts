// Lets one piece of work happen after the other, in the order of asking.

/** A line for one. */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve();

  /** Runs `work` when everybody before has finished, well or not. */
  take<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => {
      // Whoever asked for it hears of it; the next one only waits for its end.
    });
    return turn;
  }
}
