// The attempts of one call that are under way: the newest one, and earlier ones that continue although no message came
// from them.

import type { GatewayError } from '../../domain/errors/errors.ts';
import type { Attempt } from './attempt.ts';

const NONE = Object.freeze<Attempt[]>([]);
/** The most silent attempts of one call; one more attempt may run beside them. */
const MAX_SILENT = 2;

/** The attempts of one call: none before it begins, and none after its end. */
export class Attempts {
  newest: Attempt | undefined;
  /** The attempts before the newest one, oldest first. Each was silent for too long, so that a later one was started. */
  #silent: readonly Attempt[] = NONE;

  /** The oldest attempt that is under way, if any. */
  get first(): Attempt | undefined {
    return this.#silent[0] ?? this.newest;
  }

  get isFull(): boolean {
    return this.#silent.length >= MAX_SILENT;
  }

  isSilent(attempt: Attempt): boolean {
    return this.#silent.includes(attempt);
  }

  /**
   * Makes the attempt the newest one. Called before the attempt starts: one that fails synchronously adds its
   * successor during its start.
   */
  add(attempt: Attempt): void {
    if (this.newest !== undefined) this.#silent = [...this.#silent, this.newest];
    this.newest = attempt;
  }

  remove(attempt: Attempt): void {
    const others = this.#others(attempt);
    this.newest = others.at(-1);
    this.#silent = others.slice(0, -1);
  }

  /** Removes and returns all attempts except `winner`, which has begun to answer. */
  keep(winner: Attempt): readonly Attempt[] {
    if (this.#silent.length === 0) return NONE;
    const others = this.#others(winner);
    this.newest = winner;
    this.#silent = NONE;
    return others;
  }

  end(overdue: GatewayError | undefined): void {
    for (const silent of this.#silent) silent.end(overdue);
    this.newest?.end(overdue);
  }

  #others(attempt: Attempt): readonly Attempt[] {
    if (this.newest === undefined || this.#silent.length === 0) return NONE;
    return [...this.#silent, this.newest].filter((each) => each !== attempt);
  }
}
