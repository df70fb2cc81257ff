// Reads of the same thing that overlap: the newest counts, because an earlier one may be answered later.

export class Newest {
  #round = 0;

  /** Begins a read, or ends those before. The function is true until the next one begins. */
  begin(): () => boolean {
    this.#round += 1;
    const mine = this.#round;
    return () => mine === this.#round;
  }
}
