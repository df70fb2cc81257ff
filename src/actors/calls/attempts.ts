// The attempts of one call that are under way: the newest one, and earlier ones that continue although no message came
// from them. The failure of one of them goes this way:
//
//   Attempt.error ──► Call.failed ──► handleFailure ─┬─ 1. Call.#continue: the next attempt begins, or the caller has the error
//                                                    └─ 2. Attempt.end: the instance is free, and the event of the attempt says
//                                                          whether it was the last one of the call
//
// If the next attempt fails while it begins, that is handled after 2.

import type { GatewayError } from '../../domain/errors/errors.ts';
import type { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import type { Attempt } from './attempt.ts';

const NONE = Object.freeze<Attempt[]>([]);
/** The most silent attempts of one call; one more attempt may run beside them. */
const MAX_SILENT = 2;

/** The attempts of one call: none before it begins, and none after its end. */
export class Attempts {
  newest: Attempt | undefined;
  /** The attempts before the newest one, oldest first. Each was silent for too long, so that a later one was started. */
  #silent: readonly Attempt[] = NONE;
  /** The failures to handle after the present one; undefined while none is handled. */
  #failures: (() => void)[] | undefined;

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

  /**
   * Removes the failed attempt, lets the call go on by `goOn`, and ends the attempt: after what is handled already, and in a
   * later turn of the event loop when thousands fail together.
   */
  handleFailure(failed: Attempt, scheduler: TaskScheduler, goOn: () => void): void {
    const handle = (): void => {
      if (failed.hasEnded) return; // with its call, or because another attempt has begun to answer
      const failures: (() => void)[] = [];
      this.#failures = failures;
      try {
        this.remove(failed);
        goOn();
      } finally {
        failed.end();
        this.#failures = undefined;
        for (const next of failures) scheduler.run(next);
      }
    };
    if (this.#failures === undefined) scheduler.run(handle);
    else this.#failures.push(handle);
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
