// Spreads over turns of the event loop what comes due in thousands at the same moment, deadlines and ends above all, so that
// whatever else there is to do waits for a few of them and not for all. What is done, and whether it still has to be, is its
// owner's business.

import { LIMITS } from './limits.ts';

export interface TaskSchedulerOptions {
  /** What is done in one turn. Default LIMITS.paceTasks. */
  readonly perTurn?: number;
  /** Nothing more is begun in a turn in which so many ms have gone by. Default LIMITS.paceMs. */
  readonly turnMs?: number;
  /** Runs something in the next turn, and whatever follows from it before the next such thing. Default setImmediate. */
  readonly nextTurn?: (run: () => void) => void;
  /** Monotonic clock in ms. */
  readonly now?: () => number;
}

type Task = () => void;

/** The real one: a program's specs may simulate it for a while, and what was arranged then never comes. */
const inNextTurn = setImmediate;

/** One for all of a gateway: what is spread is then bounded in all. Tasks do not throw. */
export class TaskScheduler {
  readonly #perTurn: number;
  readonly #turnMs: number;
  readonly #nextTurn: (run: () => void) => void;
  readonly #now: () => number;
  /** In the order of coming. */
  readonly #waiting = new Set<Task>();
  /** What may still be begun in this turn, and until when; undefined before the first. */
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

  /** How much waits. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Does it at once; in a later turn when enough was done in this one, or others wait. Bound: to be handed to a timer. */
  readonly run = (task: Task): void => {
    if (this.#mayGo()) task();
    else this.#wait(task);
  };

  /** A task that waits is not to be done any more. Nothing happens when it does not wait. */
  forget(task: Task): void {
    this.#waiting.delete(task);
  }

  /** Resolves when it is the caller's turn; undefined when it is now. */
  turn(): Promise<void> | undefined {
    return this.#mayGo() ? undefined : new Promise((resolve) => this.#wait(resolve));
  }

  /**
   * Visits them in their order, and resolves when all were visited and what the visits returned has settled. Rejects with
   * what a visit throws, which ends the walk, or rejects with. Several walks, and single tasks, take turns.
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
        if (outcome instanceof Promise) outcomes.push(heard(outcome));
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
    // Each by itself: what follows from one as a promise comes before the next one, which it may make needless.
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
function heard(outcome: Promise<unknown>): Promise<unknown> {
  outcome.catch(() => undefined);
  return outcome;
}
