// Reports each call that lasts longer than a second, once. Most calls are shorter, so one timer serves all of them and a
// short call costs one entry in a map. The call itself decides what to do when it is slow.

import { type Linked, LinkedSet } from './call-map.ts';
import { TaskScheduler } from './task-scheduler.ts';

/** `lasts` is called after TICKS ticks: after LASTS_MS at the earliest, and one tick later at the latest. */
const LASTS_MS = 1_000;
const TICKS = 5;
const TICK_MS = LASTS_MS / TICKS;

/** A call that may be slow. */
export interface Slow extends Linked {
  /** The tick at which it began. Of SlowWatch only. */
  tick?: number | undefined;
  /** Called when it lasts longer than LASTS_MS; it may have ended in the same turn. */
  lasts(): void;
}

export class SlowWatch {
  readonly #scheduler: TaskScheduler;
  readonly #began = new LinkedSet<Slow>();
  #tick = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `scheduler`: spreads the reports of calls that become slow together. */
  constructor(scheduler = new TaskScheduler()) {
    this.#scheduler = scheduler;
  }

  /** How many are watched. */
  get size(): number {
    return this.#began.size;
  }

  add(one: Slow): void {
    one.tick = this.#tick;
    this.#began.add(one);
    this.#timer ??= setInterval(this.#look, TICK_MS).unref();
  }

  /** It has ended. Nothing happens when it is not watched. */
  delete(one: Slow): void {
    this.#began.delete(one);
  }

  /** Forgets all watched calls and reports none of them. */
  close(): void {
    this.#began.clear();
    this.#rest();
  }

  readonly #look = (): void => {
    this.#tick += 1;
    for (let oldest = this.#began.first; oldest !== undefined; oldest = this.#began.first) {
      const one = oldest;
      if (this.#tick - (one.tick ?? 0) < TICKS) return;
      this.#began.delete(one);
      this.#scheduler.run(() => one.lasts());
    }
    this.#rest();
  };

  #rest(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
