// Deletes the sessions of a backend, so many at a time: when thousands end at once, the backend is not to get thousands of
// connections for it, and no caller waits for long. http-session.ts does one deletion.

import { LIMITS } from '../../domain/limits.ts';
import type { TaskScheduler } from '../../domain/task-scheduler.ts';

/** Deletes under way at the same time. */
const AT_ONCE = 64;

/** A session that can be ended on the backend. Never rejects, waits briefly. */
export interface DeletedSession {
  end(): Promise<void>;
}

/** The session deletes to one backend. Those that waited too long give up at the task scheduler; `now` gives ms. */
export class SessionDeletes {
  readonly #scheduler: TaskScheduler;
  readonly #now: () => number;
  readonly #waiting = new Set<() => void>();
  #underWay = 0;

  constructor(scheduler: TaskScheduler, now: () => number = () => performance.now()) {
    this.#scheduler = scheduler;
    this.#now = now;
  }

  /** Resolves when the backend was notified, or when that would have to wait too long. Never rejects. */
  async say(session: DeletedSession): Promise<void> {
    const giveUpAt = this.#now() + LIMITS.courtesyMs;
    if (this.#underWay < AT_ONCE) this.#underWay += 1;
    else await new Promise<void>((resolve) => this.#waiting.add(resolve));
    if (this.#now() < giveUpAt) await session.end();
    this.#passOn();
  }

  /** The next delete gets the place. */
  #passOn(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#underWay -= 1;
      return;
    }
    this.#waiting.delete(next);
    this.#scheduler.run(next);
  }
}
