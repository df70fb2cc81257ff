// The open sessions of legacy clients in the order of their last use: parked after a short time without use, ended after a long
// one. One timer for all of them. client-sessions.ts ends a session.

import type { SessionRecord } from '../../domain/client.ts';
import type { Clock } from '../../domain/clock.ts';
import { LIMITS } from '../../domain/limits.ts';

/** Resolution of times of use, in ms: a session in constant use is not moved at each message. */
const GRAIN_MS = 1_000;
/** Most sessions that one sweep parks, and ends, and the wait before the next sweep when there are more. */
const PARKED_PER_SWEEP = 500;
const ENDED_PER_SWEEP = LIMITS.tasksPerTurn;
const NEXT_SWEEP_MS = 20;
const NEVER = Number.POSITIVE_INFINITY;

export class ExpiringSessions {
  readonly #clock: Clock;
  readonly #idleMs: number;
  readonly #end: (session: SessionRecord) => void;
  readonly #parkMs: number;
  /** By id, the least recently used first. */
  readonly #awake = new Map<string, SessionRecord>();
  readonly #parked = new Map<string, SessionRecord>();
  #disarm: (() => void) | undefined;
  #sweepsAtMs = NEVER;
  #isStopped = false;

  /** `end` ends a session after `idleMs` without use, and deletes it here synchronously. */
  constructor(clock: Clock, idleMs: number, end: (session: SessionRecord) => void) {
    this.#clock = clock;
    this.#idleMs = idleMs;
    this.#end = end;
    this.#parkMs = Math.min(LIMITS.sessionParkMs, idleMs);
  }

  get size(): number {
    return this.#awake.size + this.#parked.size;
  }

  all(): SessionRecord[] {
    return [...this.#awake.values(), ...this.#parked.values()];
  }

  /** A lookup is not a use. */
  find(id: string): SessionRecord | undefined {
    return this.#awake.get(id) ?? this.#parked.get(id);
  }

  add(session: SessionRecord): void {
    session.openedAtMs = this.#clock.now();
    session.usedAtMs = session.openedAtMs;
    this.#awake.set(session.id, session);
    this.#arm();
  }

  used(session: SessionRecord): void {
    const now = this.#clock.now();
    const { id } = session;
    if (session.isParked) {
      session.isParked = false;
      this.#parked.delete(id);
    } else if (now - session.usedAtMs < GRAIN_MS || !this.#awake.delete(id)) return;
    session.usedAtMs = now;
    this.#awake.set(id, session);
    this.#arm();
  }

  delete({ id }: SessionRecord): void {
    this.#awake.delete(id);
    this.#parked.delete(id);
  }

  /** From now on no session is parked or ended. */
  stop(): void {
    this.#isStopped = true;
    this.#disarm?.();
  }

  /** Sets the timer for the first session that may be due, unless it fires sooner already. */
  #arm(): void {
    if (this.#isStopped) return;
    const parksAtMs = (first(this.#awake)?.usedAtMs ?? NEVER) + this.#parkMs;
    const expiresAtMs = (first(this.#parked)?.usedAtMs ?? NEVER) + this.#idleMs;
    const now = this.#clock.now();
    const dueAtMs = Math.max(Math.min(parksAtMs, expiresAtMs), now + GRAIN_MS);
    if (dueAtMs >= this.#sweepsAtMs) return;
    this.#sweepAt(dueAtMs, now);
  }

  #sweepAt(atMs: number, now: number): void {
    this.#disarm?.();
    this.#sweepsAtMs = atMs;
    this.#disarm = this.#clock.alarm(atMs - now, () => this.#sweep());
  }

  #sweep(): void {
    this.#disarm = undefined;
    this.#sweepsAtMs = NEVER;
    const now = this.#clock.now();
    const isDone = this.#park() && this.#expire();
    if (isDone) this.#arm();
    else this.#sweepAt(now + NEXT_SWEEP_MS, now);
  }

  /** Parks unused sessions, some at once. False when there may be more. A busy session counts as used now. */
  #park(): boolean {
    const now = this.#clock.now();
    let remaining = PARKED_PER_SWEEP;
    for (const [id, session] of this.#awake) {
      if (now - session.usedAtMs < this.#parkMs) return true;
      if (remaining === 0) return false;
      remaining -= 1;
      this.#awake.delete(id);
      if (session.park()) {
        session.isParked = true;
        this.#parked.set(id, session);
      } else {
        session.usedAtMs = now;
        this.#awake.set(id, session);
      }
    }
    return true;
  }

  /** Ends expired sessions, a few at once. False when there may be more. */
  #expire(): boolean {
    const now = this.#clock.now();
    let remaining: number = ENDED_PER_SWEEP;
    for (const session of this.#parked.values()) {
      if (now - session.usedAtMs < this.#idleMs) return true;
      if (remaining === 0) return false;
      remaining -= 1;
      this.#end(session);
    }
    return true;
  }
}

function first(sessions: ReadonlyMap<string, SessionRecord>): SessionRecord | undefined {
  for (const session of sessions.values()) return session;
  return undefined;
}
