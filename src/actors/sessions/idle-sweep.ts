// The idle time of sessions: a session becomes idle after a short time without use, and ends after a long one. One timer
// serves all sessions of a gateway.

import type { McpSession } from '../../domain/sessions/mcp-session.ts';
import type { Timing } from '../../domain/time/task-scheduler.ts';

/** A session is idle, without an actor, after this time without use. */
export const UNUSED_MS = 60_000;

/** The shortest time between two sweeps, in ms. */
const GRAIN_MS = 1_000;

/** Looks at all open sessions when the first one may be due. */
export class IdleSweep {
  readonly #timing: Timing;
  readonly #open: ReadonlyMap<string, McpSession>;
  readonly #end: (session: McpSession) => void;
  readonly #idleMs: number;
  readonly #unusedMs: number;
  /** Cancels the next sweep; set while there are sessions. */
  #disarm: (() => void) | undefined;
  #isStopped = false;

  /**
   * `idleMs`: the time without use after which a session ends. `open`: the open sessions by id. `end`: ends one that was idle for
   * too long.
   */
  constructor(
    idleMs: number,
    timing: Timing,
    open: ReadonlyMap<string, McpSession>,
    end: (session: McpSession) => void,
  ) {
    this.#timing = timing;
    this.#open = open;
    this.#end = end;
    this.#idleMs = idleMs;
    this.#unusedMs = Math.min(UNUSED_MS, idleMs);
  }

  used({ activity }: McpSession): void {
    activity.usedAtMs = Math.round(this.#timing.clock.now());
    activity.isIdle = false;
    if (this.#disarm === undefined) this.#sweepIn(this.#unusedMs);
  }

  stop(): void {
    this.#isStopped = true;
    this.#disarm?.();
  }

  /** Schedules a sweep; `waitMs` is at most `#unusedMs`, since no session that is used meanwhile is due sooner. */
  #sweepIn(waitMs: number): void {
    if (!this.#isStopped) this.#disarm = this.#timing.clock.alarm(waitMs, () => void this.#sweep());
  }

  async #sweep(): Promise<void> {
    const { scheduler, clock } = this.#timing;
    const open = this.#open;
    const due = [...open.values()].filter((session) => this.#dueAtMs(session) <= clock.now());
    try {
      await scheduler.each(due, (session) => this.#visit(session));
    } finally {
      this.#disarm = undefined;
      if (open.size > 0) this.#sweepNext();
    }
  }

  #sweepNext(): void {
    const { clock } = this.#timing;
    const open = this.#open;
    let nextMs = clock.now() + this.#unusedMs;
    for (const session of open.values()) nextMs = Math.min(nextMs, this.#dueAtMs(session));
    this.#sweepIn(Math.max(GRAIN_MS, nextMs - clock.now()));
  }

  /** Makes a session that is still due idle, or ends it. A session that is busy counts as used now. */
  #visit(session: McpSession): void {
    const { clock } = this.#timing;
    if (this.#isStopped || !this.#open.has(session.id) || this.#dueAtMs(session) > clock.now()) return;
    const { activity } = session;
    if (activity.isIdle) this.#end(session);
    else if (session.setIdle()) activity.isIdle = true;
    else activity.usedAtMs = Math.round(clock.now());
  }

  #dueAtMs({ activity: { usedAtMs, isIdle } }: McpSession): number {
    return usedAtMs + (isIdle ? this.#idleMs : this.#unusedMs);
  }
}
