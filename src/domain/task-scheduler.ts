// Spreads thousands of tasks that come due at the same time, mostly deadlines and ends, over turns of the event loop, so
// that other work waits for a few of them and not for all. The owner of a task decides what it does and whether it is
// still needed.

import { LIMITS } from './limits.ts';

export interface TaskSchedulerOptions {
  /** Tasks in one turn. Default LIMITS.paceTasks. */
  readonly perTurn?: number;
  /** Time in ms after which a turn begins no further task. Default LIMITS.paceMs. */
  readonly turnMs?: number;
  /** Runs something in the next turn, and whatever follows from it before the next such thing. Default setImmediate. */
  readonly nextTurn?: (run: () => void) => void;
  /** Monotonic clock in ms. */
  readonly now?: () => number;
}

type Task = () => void;

/** The real one: a program's specs may simulate it for a while, and what was arranged then never comes. */
const inNextTurn = setImmediate;

/** One scheduler serves a whole gateway, so that the bound holds for all tasks together. Tasks do not throw. */
export class TaskScheduler {
  readonly #perTurn: number;
  readonly #turnMs: number;
  readonly #nextTurn: (run: () => void) => void;
  readonly #now: () => number;
  /** In the order of coming. */
  readonly #waiting = new Set<Task>();
  /** Tasks that may still begin in this turn, and until when; undefined before the first. */
  #left: number;
  #untilMs: number | undefined;
  #isTurning = false;

  constructor(options: TaskSchedulerOptions = {}) {
    const { perTurn = LIMITS.paceTasks, turnMs = LIMITS.paceMs } = options;
    const { nextTurn = inNextTurn, now = () => performance.now() } = options;
    this.#perTurn = perTurn;
    this.#turnMs = turnMs;
    this.#nextTurn = nextTurn;
    this.#now = now;
    this.#left = perTurn;
  }

  /** Number of waiting tasks. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Does it at once; in a later turn when enough was done in this one, or others wait. Bound: to be handed to a timer. */
  readonly run = (task: Task): void => {
    if (this.#mayGo()) task();
    else this.#wait(task);
  };

  /** Removes a waiting task. Does nothing when the task does not wait. */
  forget(task: Task): void {
    this.#waiting.delete(task);
  }

  /** Resolves when it is the caller's turn; undefined when it is now. */
  turn(): Promise<void> | undefined {
    return this.#mayGo() ? undefined : new Promise((resolve) => this.#wait(resolve));
  }

  /**
   * Visits the items in order, and resolves when all visits have returned and their promises have settled. Rejects with the
   * error that a visit throws, which ends the walk, or rejects with. Several walks, and single tasks, take turns.
   */
  each<T>(items: Iterable<T>, visit: (item: T) => unknown): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const rest = items[Symbol.iterator]();
    const outcomes: Promise<unknown>[] = [];
    const step = (): void => {
      try {
        const next = rest.next();
        if (next.done === true) {
          resolve(Promise.all(outcomes).then(() => undefined));
          return;
        }
        const outcome = visit(next.value);
        if (outcome instanceof Promise) outcomes.push(handled(outcome));
        this.run(step);
      } catch (thrown) {
        reject(thrown);
      }
    };
    this.run(step);
    return promise;
  }

  #mayGo(): boolean {
    if (this.#waiting.size > 0 || !this.#hasRoom()) return false;
    this.#left -= 1;
    this.#turnLater();
    return true;
  }

  /** There is always room for one. */
  #hasRoom(): boolean {
    if (this.#untilMs === undefined) {
      this.#untilMs = this.#now() + this.#turnMs;
      return true;
    }
    return this.#left > 0 && this.#now() < this.#untilMs;
  }

  #wait(task: Task): void {
    this.#waiting.add(task);
    this.#turnLater();
  }

  #turnLater(): void {
    if (this.#isTurning) return;
    this.#isTurning = true;
    this.#nextTurn(this.#turn);
  }

  readonly #turn = (): void => {
    this.#isTurning = false;
    this.#left = this.#perTurn;
    this.#untilMs = undefined;
    if (this.#waiting.size === 0) return;
    // One `nextTurn` per task: the promise callbacks of a task run before the next task, which they may make needless.
    for (let one = 0; one < this.#perTurn; one += 1) this.#nextTurn(this.#next);
    this.#turnLater();
  };

  readonly #next = (): void => {
    const [task] = this.#waiting;
    if (task === undefined || !this.#hasRoom()) return;
    this.#left -= 1;
    this.#waiting.delete(task);
    task();
  };
}

/** Marks the promise as handled: it is awaited only at the end, and an unhandled rejection ends the process before. */
function handled(outcome: Promise<unknown>): Promise<unknown> {
  outcome.catch(() => undefined);
  return outcome;
}
