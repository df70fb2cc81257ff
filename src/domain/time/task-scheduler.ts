// Spreads thousands of tasks that are due at the same time, such as deadlines, over several turns of the event
// loop, so that other work does not wait for all of them.

import { type Linked, LinkedSet } from '../memory/linked-set.ts';
import { type Clock, systemClock } from './clock.ts';

/** The most tasks that are due at the same time and run in one turn of the event loop. */
export const TASKS_PER_TURN = 25;
/** The longest time of such a turn. */
const TURN_MS = 10;

export interface TaskSchedulerOptions {
  /** Tasks in one turn, or a function of the number of waiting tasks. Default: TASKS_PER_TURN. */
  readonly perTurn?: number | ((waiting: number) => number);
  /** Time in ms after which no other task begins in a turn. Default: TURN_MS. */
  readonly turnMs?: number;
  /** Runs a function in the next turn, and its promise callbacks before the next function. Default setImmediate. */
  readonly nextTurn?: (run: () => void) => void;
  /** Monotonic clock in ms. */
  readonly now?: () => number;
}

/** What an object needs that waits, and has many tasks when its waits end. */
export interface Timing {
  readonly clock: Clock;
  /** Spreads tasks that are due together over turns of the event loop. */
  readonly scheduler: TaskScheduler;
}

type Task = () => void;

/** Node's setImmediate: a spec may simulate the global, and drop what was scheduled meanwhile. */
const inNextTurn = setImmediate;

/** A turn is long when it takes this many times the longest time of its tasks. */
const LONG_TURNS = 3;
const MAX_SLOWNESS = 4;
/** Work that others bring without end gets one of this many parts of the time, after a burst of this many ms. */
const PARTS_OF_TIME = 2;
const BURST_MS = 5;

/**
 * The work on one piece of what a server sends, in ms, after which the next piece waits, at least for the next turn of the event
 * loop: a server that sends without end would delay all other calls by seconds.
 */
export const MUCH_WORK_MS = 5;

/**
 * One scheduler serves a gateway, so that the bound holds for all tasks together; the checks after a revocation have
 * their own, because they must not wait behind the others. Tasks must not throw.
 */
export class TaskScheduler {
  readonly #perTurn: (waiting: number) => number;
  readonly #turnMs: number;
  readonly #nextTurn: (run: () => void) => void;
  readonly #now: () => number;
  /** The time at which the work that was noted has had its part of the time. */
  #restsUntilMs = Number.NEGATIVE_INFINITY;
  /** Factor on the cost of an item that costs more than one task: 1, up to 4 after long turns. */
  slowness = 1;
  /** Begin of the turn under way, while tasks run or wait. */
  #beganAtMs = 0;
  /** The tasks that wait, in order of arrival. */
  readonly #waiting = new LinkedSet<Linked & { readonly task: Task }>();
  /** Tasks that may still begin in this turn, and until when; undefined before the first task. */
  #left: number;
  #untilMs: number | undefined;
  #isTurning = false;

  constructor(options: TaskSchedulerOptions = {}) {
    const { perTurn = TASKS_PER_TURN, turnMs = TURN_MS } = options;
    const { nextTurn = inNextTurn, now = systemClock.now } = options;
    this.#perTurn = typeof perTurn === 'number' ? () => perTurn : perTurn;
    this.#turnMs = turnMs;
    this.#nextTurn = nextTurn;
    this.#now = now;
    this.#left = this.#perTurn(0);
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Runs the task now, or in a later turn when this one is used up or others wait. Bound: a timer can call it. */
  readonly run = (task: Task): void => {
    if (this.#mayRunNow()) task();
    else this.#wait(task);
  };

  /** Resolves when the caller may continue; undefined when it may continue at once. `cost`: as how many tasks that counts. */
  turn(cost = 1): Promise<void> | undefined {
    if (this.#mayRunNow()) {
      this.#countMore(cost);
      return undefined;
    }
    return new Promise((resolve) => {
      this.#wait(() => {
        this.#countMore(cost);
        resolve();
      });
    });
  }

  /**
   * Notes work of `tookMs` that others may bring without end, such as a server that floods its answer. Returns how long the one
   * that brought it has to rest, in ms; 0: not at all. Those that rest go on one after the other. Source: ADR 397.
   */
  readonly restAfter = (tookMs: number): number => {
    const nowMs = this.#now();
    const fromMs = Math.max(this.#restsUntilMs, nowMs - PARTS_OF_TIME * BURST_MS);
    this.#restsUntilMs = fromMs + PARTS_OF_TIME * tookMs;
    return Math.max(0, this.#restsUntilMs - nowMs);
  };

  /**
   * Visits the items in order, and resolves when all visits have returned and their promises have resolved.
   * Throws the first error of a visit; an error that is thrown ends the iteration. Iterations and single
   * tasks alternate. `costOf`: as how many tasks of the turn an item counts, once it was visited; default 1.
   */
  each<T>(
    items: Iterable<T>,
    visit: (item: T) => unknown,
    costOf: (item: T) => number = () => 1,
  ): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const rest = items[Symbol.iterator]();
    const outcomes: Promise<unknown>[] = [];
    const step = (): void => {
      try {
        let cost: number;
        do {
          const next = rest.next();
          if (next.done === true) {
            resolve(Promise.all(outcomes).then(() => undefined));
            return;
          }
          const outcome = visit(next.value);
          if (outcome instanceof Promise) {
            outcome.catch(() => undefined); // it is awaited at the end; an unhandled rejection would end the process before
            outcomes.push(outcome);
          }
          cost = costOf(next.value);
        } while (this.#mayRunNow(cost));
        this.#wait(step);
      } catch (thrown) {
        rest.return?.();
        reject(thrown);
      }
    };
    this.run(step);
    return promise;
  }

  /** `cost`: of the task that has just run; one of it was counted when it began. */
  #mayRunNow(cost = 1): boolean {
    this.#countMore(cost);
    if (this.#waiting.size > 0 || !this.#hasRoom()) return false;
    this.#left -= 1;
    this.#scheduleTurn();
    return true;
  }

  /** One task was counted, which costs as much as this many. */
  #countMore(cost: number): void {
    this.#left -= (cost - 1) * this.slowness;
  }

  /** True for the first task of each turn. */
  #hasRoom(): boolean {
    if (this.#untilMs === undefined) {
      const nowMs = this.#now();
      if (!this.#isTurning) this.#beganAtMs = nowMs;
      this.#untilMs = nowMs + this.#turnMs;
      return true;
    }
    return this.#left > 0 && this.#now() < this.#untilMs;
  }

  #wait(task: Task): void {
    this.#waiting.add({ task });
    this.#scheduleTurn();
  }

  #scheduleTurn(): void {
    if (this.#isTurning) return;
    this.#isTurning = true;
    this.#nextTurn(this.#turn);
  }

  readonly #turn = (): void => {
    this.#isTurning = false;
    this.#noteTurn();
    const { size } = this.#waiting;
    this.#left = this.#perTurn(size);
    this.#untilMs = undefined;
    if (size === 0) return;
    // One `nextTurn` per task: the promise callbacks of a task run before the next task, which they may cancel.
    for (let count = Math.min(size, this.#left); count > 0; count -= 1) this.#nextTurn(this.#next);
    this.#scheduleTurn();
  };

  /**
   * Adapts to the machine and to its collections of garbage: what costs more than a task is paid in later turns,
   * which were too long.
   */
  #noteTurn(): void {
    const nowMs = this.#now();
    const isLong = nowMs - this.#beganAtMs > LONG_TURNS * this.#turnMs;
    this.slowness = isLong ? Math.min(this.slowness * 2, MAX_SLOWNESS) : Math.max(this.slowness * 0.9, 1);
    this.#beganAtMs = nowMs;
  }

  readonly #next = (): void => {
    const { first } = this.#waiting;
    if (first === undefined || !this.#hasRoom()) return;
    this.#left -= 1;
    this.#waiting.delete(first);
    first.task();
  };
}
