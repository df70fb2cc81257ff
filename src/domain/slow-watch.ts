// Reports once each call that takes longer than a second. Most calls are shorter, so one timer serves all of them, and a short call
// costs one entry in a set.

import { type Linked, LinkedSet } from './call-map.ts';
import { TaskScheduler } from './task-scheduler.ts';

/** `onSlow` is called after TICKS ticks: after SLOW_MS at the earliest, and one tick later at the latest. */
const SLOW_MS = 1_000;
const TICKS = 5;
const TICK_MS = SLOW_MS / TICKS;

export interface Slow extends Linked {
  /** The tick at which it began. Of SlowWatch only. */
  tick?: number | undefined;
  /** Called when the call takes longer than SLOW_MS; it may have ended in the same turn. */
  onSlow(): void;
}

export class SlowWatch {
  readonly #scheduler: TaskScheduler;
  readonly #watched = new LinkedSet<Slow>();
  #tick = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `scheduler`: spreads the reports of calls that become slow together. */
  constructor(scheduler = new TaskScheduler()) {
    this.#scheduler = scheduler;
  }

  get size(): number {
    return this.#watched.size;
  }

  add(call: Slow): void {
    call.tick = this.#tick;
    this.#watched.add(call);
    this.#timer ??= setInterval(this.#check, TICK_MS).unref();
  }

  delete(call: Slow): void {
    this.#watched.delete(call);
  }

  /** Forgets all watched calls and reports none of them. */
  close(): void {
    this.#watched.clear();
    this.#stopTimer();
  }

  readonly #check = (): void => {
    this.#tick += 1;
    for (let oldest = this.#watched.first; oldest !== undefined; oldest = this.#watched.first) {
      const call = oldest;
      if (this.#tick - (call.tick ?? 0) < TICKS) return;
      this.#watched.delete(call);
      this.#scheduler.run(() => call.onSlow());
    }
    this.#stopTimer();
  };

  #stopTimer(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
