// Releases the sessions of a node that is drained, so that other nodes recover them: spread over some seconds,
// each of them while it has no call. Nothing is released while no other node takes sessions. Source: ADR 166.

import type { SessionRecord } from '../../domain/sessions/session-table.ts';
import type { Clock } from '../../domain/time/clock.ts';

/** Time over which sessions without calls are released, in ms: their clients open streams again, elsewhere. */
const SPREAD_MS = 5_000;
/** Time from one part of them to the next, in ms. */
const PART_MS = 100;

interface SessionDrainDeps {
  readonly clock: Pick<Clock, 'background'>;
  /** Another node takes sessions. */
  readonly hasOthers: () => boolean;
  readonly release: (session: SessionRecord) => void;
}

/** The release of the sessions of a node that is drained; one object for each drain. */
export class SessionDrain {
  readonly #deps: SessionDrainDeps;
  /** Sessions whose turn is still to come. */
  readonly #waiting: Set<SessionRecord>;
  /** Sessions that are released once they have no call. */
  readonly #due = new Set<SessionRecord>();
  readonly #perPart: number;
  readonly #stop: () => void;

  constructor(sessions: readonly SessionRecord[], deps: SessionDrainDeps) {
    this.#deps = deps;
    this.#waiting = new Set(sessions);
    this.#perPart = Math.ceil((sessions.length * PART_MS) / SPREAD_MS) || 1;
    this.#stop = deps.clock.background.every(PART_MS, () => this.#releasePart());
  }

  /** A session that was opened, or recovered, meanwhile. */
  add(session: SessionRecord): void {
    this.#waiting.add(session);
  }

  /** A message of its client came, or a call of it has ended. */
  used(session: SessionRecord): void {
    if (this.#due.has(session)) queueMicrotask(() => this.#releaseDue(session)); // its next call is counted by then
  }

  ended(session: SessionRecord): void {
    this.#waiting.delete(session);
    this.#due.delete(session);
  }

  close(): void {
    this.#stop();
    this.#waiting.clear();
    this.#due.clear();
  }

  #releasePart(): void {
    if (this.#waiting.size === 0 || !this.#deps.hasOthers()) return;
    for (const session of [...this.#waiting].slice(0, this.#perPart)) {
      this.#waiting.delete(session);
      this.#due.add(session);
      this.#releaseDue(session);
    }
  }

  #releaseDue(session: SessionRecord): void {
    if (session.calls > 0 || session.isRecoverable !== true || !this.#due.delete(session)) return;
    if (this.#deps.hasOthers()) this.#deps.release(session);
    else this.#waiting.add(session);
  }
}
