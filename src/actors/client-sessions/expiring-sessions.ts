// The open sessions of legacy clients: parked after a short time without use, ended after a long one. One timer for all of them.
// client-sessions.ts ends a session.

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
  readonly #end: (session: SessionRecord) => void;
  readonly #byId = new Map<string, SessionRecord>();
  /** Set while there are sessions. */
  #disarm: (() => void) | undefined;
  #isStopped = false;

  /** `end` ends a session after `idleMs` without use, and deletes it here. */
  constructor(deps: ExpiringSessionsDeps, idleMs: number, end: (session: SessionRecord) => void) {
    this.#deps = deps;
    this.#idleMs = idleMs;
    this.#parkMs = Math.min(LIMITS.sessionParkMs, idleMs);
    this.#end = end;
  }

  get size(): number {
    return this.#byId.size;
  }

  all(): SessionRecord[] {
    return [...this.#byId.values()];
  }

  /** A lookup is not a use. */
  find(id: string): SessionRecord | undefined {
    return this.#byId.get(id);
  }

  add(session: SessionRecord): void {
    session.openedAtMs = this.#deps.now();
    this.#byId.set(session.id, session);
    this.used(session);
  }

  used(session: SessionRecord): void {
    session.usedAtMs = this.#deps.now();
    session.isParked = false;
    if (this.#disarm === undefined) this.#sweepIn(this.#parkMs);
  }

  delete({ id }: SessionRecord): void {
    this.#byId.delete(id);
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
    const due = this.all().filter((session) => this.#dueAtMs(session) <= now());
    await scheduler.each(due, (session) => this.#visit(session));
    this.#disarm = undefined;
    if (this.size === 0) return;
    let nextMs = now() + this.#parkMs;
    for (const session of this.#byId.values()) nextMs = Math.min(nextMs, this.#dueAtMs(session));
    this.#sweepIn(Math.max(GRAIN_MS, nextMs - now()));
  }

  /** Parks or ends a session that is still due. A busy session counts as used now. */
  #visit(session: SessionRecord): void {
    const now = this.#deps.now();
    if (this.#isStopped || !this.#byId.has(session.id) || this.#dueAtMs(session) > now) return;
    if (session.isParked) this.#end(session);
    else if (session.park()) session.isParked = true;
    else session.usedAtMs = now;
  }

  #dueAtMs({ usedAtMs, isParked }: SessionRecord): number {
    return usedAtMs + (isParked ? this.#idleMs : this.#parkMs);
  }
}
