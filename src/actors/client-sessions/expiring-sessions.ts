// Parks the open sessions of legacy clients after a short time without use, and ends them after a long one. One timer for all.
// client-sessions.ts has the table of sessions, and ends a session.

import type { SessionRecord } from '../../domain/client.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { SessionDeps } from './client-session-types.ts';

/** Shortest time between two sweeps, in ms. */
const GRAIN_MS = 1_000;

type ExpiringSessionsDeps = Pick<SessionDeps, 'now' | 'alarm' | 'scheduler'>;

export class ExpiringSessions {
  readonly #deps: ExpiringSessionsDeps;
  readonly #idleMs: number;
  readonly #parkMs: number;
  readonly #sessions: ReadonlyMap<string, SessionRecord>;
  readonly #end: (session: SessionRecord) => void;
  /** Set while there are sessions. */
  #disarm: (() => void) | undefined;
  #isStopped = false;

  /** `sessions`: the table, by id. `end` ends a session after `idleMs` without use, and deletes it there. */
  constructor(
    deps: ExpiringSessionsDeps,
    idleMs: number,
    sessions: ReadonlyMap<string, SessionRecord>,
    end: (session: SessionRecord) => void,
  ) {
    this.#deps = deps;
    this.#idleMs = idleMs;
    this.#parkMs = Math.min(LIMITS.sessionParkMs, idleMs);
    this.#sessions = sessions;
    this.#end = end;
  }

  used(session: SessionRecord): void {
    session.usedAtMs = this.#deps.now();
    session.isParked = false;
    if (this.#disarm === undefined) this.#sweepIn(this.#parkMs);
  }

  /** From now on no session is parked or ended. */
  stop(): void {
    this.#isStopped = true;
    this.#disarm?.();
  }

  /** After `#parkMs` at most: no session that is used meanwhile is due sooner. */
  #sweepIn(waitMs: number): void {
    if (!this.#isStopped) this.#disarm = this.#deps.alarm(waitMs, () => void this.#sweep());
  }

  async #sweep(): Promise<void> {
    const { now, scheduler } = this.#deps;
    const due = [...this.#sessions.values()].filter((session) => this.#dueAtMs(session) <= now());
    await scheduler.each(due, (session) => this.#visit(session));
    this.#disarm = undefined;
    if (this.#sessions.size === 0) return;
    let nextMs = now() + this.#parkMs;
    for (const session of this.#sessions.values()) nextMs = Math.min(nextMs, this.#dueAtMs(session));
    this.#sweepIn(Math.max(GRAIN_MS, nextMs - now()));
  }

  /** Parks or ends a session that is still due. A busy session counts as used now. */
  #visit(session: SessionRecord): void {
    const now = this.#deps.now();
    if (this.#isStopped || !this.#sessions.has(session.id) || this.#dueAtMs(session) > now) return;
    if (session.isParked) this.#end(session);
    else if (session.park()) session.isParked = true;
    else session.usedAtMs = now;
  }

  #dueAtMs({ usedAtMs, isParked }: SessionRecord): number {
    return usedAtMs + (isParked ? this.#idleMs : this.#parkMs);
  }
}
