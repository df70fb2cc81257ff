// The attempts of one call that are under way: the newest one, and those before it, which are silent and continue.

import type { GatewayError } from '../../domain/errors/errors.ts';
import type { Attempt } from './attempt.ts';

const NONE = Object.freeze<Attempt[]>([]);
/** Silent attempts of one call beside which one more may start. */
const MAX_SILENT = 2;

export class Attempts {
  newest: Attempt | undefined;
  /** The oldest is first. */
  #silent: readonly Attempt[] = NONE;

  /** The first of several silent ones. */
  get first(): Attempt | undefined {
    return this.#silent[0] ?? this.newest;
  }

  get isFull(): boolean {
    return this.#silent.length >= MAX_SILENT;
  }

  isSilent(attempt: Attempt): boolean {
    return this.#silent.includes(attempt);
  }

  /** Set before it starts: an attempt that fails synchronously is followed by the next one in there. */
  add(attempt: Attempt): void {
    if (this.newest !== undefined) this.#silent = [...this.#silent, this.newest];
    this.newest = attempt;
  }

  remove(attempt: Attempt): void {
    const others = this.#others(attempt);
    this.newest = others.at(-1);
    this.#silent = others.slice(0, -1);
  }

  /** Takes out and returns all but this one, which answers. */
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
