// Releases the sessions of a node that is being drained, so that other nodes can recover them: spread over some seconds,
// each session at a time when it has no call. Nothing is released while no other node takes sessions. Source: ADR 159.

import type { McpSession } from '../../domain/sessions/mcp-session.ts';
import type { Clock } from '../../domain/time/clock.ts';

/** Time over which the release is spread, in ms: the clients of released sessions open streams at other nodes. */
const SPREAD_MS = 5_000;
/** Interval between two groups of released sessions, in ms. */
const PART_MS = 100;

/** The release of the sessions in one drain of a node. */
export class SessionDrain {
  readonly #hasSuccessor: (session: McpSession) => boolean;
  readonly #release: (session: McpSession) => void;
  /** Sessions that have not had their turn yet. */
  readonly #waiting: Set<McpSession>;
  /** Sessions that had their turn, and are released once they have no call. */
  readonly #due = new Set<McpSession>();
  readonly #perPart: number;
  readonly #stop: () => void;

  /** `hasSuccessor`: true when another node takes the session. */
  constructor(
    sessions: readonly McpSession[],
    clock: Clock,
    hasSuccessor: (session: McpSession) => boolean,
    release: (session: McpSession) => void,
  ) {
    this.#hasSuccessor = hasSuccessor;
    this.#release = release;
    this.#waiting = new Set(sessions);
    this.#perPart = Math.ceil((sessions.length * PART_MS) / SPREAD_MS) || 1;
    this.#stop = clock.background.every(PART_MS, () => this.#releasePart());
  }

  /** Adds a session that was opened or recovered after the drain began. */
  add(session: McpSession): void {
    this.#waiting.add(session);
  }

  /** Reports a message of the session's client, or the end of a call: a session that is due may be released now. */
  used(session: McpSession): void {
    if (this.#due.has(session)) queueMicrotask(() => this.#releaseDue(session)); // its next call is counted by then
  }

  ended(session: McpSession): void {
    this.#waiting.delete(session);
    this.#due.delete(session);
  }

  close(): void {
    this.#stop();
    this.#waiting.clear();
    this.#due.clear();
  }

  #releasePart(): void {
    const [first] = this.#waiting;
    if (first === undefined || !this.#hasSuccessor(first)) return;
    for (const session of [...this.#waiting].slice(0, this.#perPart)) {
      this.#waiting.delete(session);
      this.#due.add(session);
      this.#releaseDue(session);
    }
  }

  #releaseDue(session: McpSession): void {
    if (session.callCount > 0 || !session.isRecoverable || !this.#due.delete(session)) return;
    if (this.#hasSuccessor(session)) this.#release(session);
    else this.#waiting.add(session);
  }
}
