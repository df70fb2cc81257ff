// Work that is done one after the other: changes of the registry, operations of a database, subscriptions to one resource, writes
// of a buffer.

/** Runs one operation at a time, in the order of the calls. */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve();

  /** Runs `work` when all earlier work has ended, with or without an error. */
  take<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => {
      // The caller of the work gets the error; the next work only waits for its end.
    });
    return turn;
  }
}
