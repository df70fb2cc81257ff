// Sessions that no instance owns: bounded in number, ended when nobody used them for long. One timer for all.

import type { Clock } from '../../domain/clock.ts';
import { shuttingDown } from '../../domain/errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import { sessionLimit, sessionShareLimit } from '../../domain/session-errors.ts';
import type { TaskScheduler } from '../../domain/task-scheduler.ts';
import type { McpSession } from '../ports.ts';

/** How much each owner holds, and whether that is all one may hold: `share`. */
export interface Shares {
  readonly share: number;
  /** It is all there is. */
  readonly isAll: boolean;
  isFull(ownerId: string): boolean;
  take(ownerId: string): void;
  giveBack(ownerId: string): void;
}

/** Bounds, and the time they are measured in. */
export interface SessionTableOptions extends Clock {
  readonly maxSessions: number;
  readonly idleMs: number;
  /** Of these sessions alone. Default: one owner may have all of them. */
  readonly shares?: Shares | undefined;
  /** At which many end together. */
  readonly scheduler: TaskScheduler;
}

/** A session that tells whether somebody is using it right now. */
export interface TableSession extends McpSession {
  readonly isHeld: boolean;
  /** Resolves when no call is under way. */
  drained(): Promise<void>;
}

interface TableEntry<S> {
  readonly session: S;
  usedAtMs: number;
}

/** Owns the sessions that are put there. */
export class SessionTable<S extends TableSession> {
  readonly #options: SessionTableOptions;
  /** Longest unused first. */
  readonly #sessions = new Map<string, TableEntry<S>>();
  #disarm: (() => void) | undefined;
  #isClosing = false;

  constructor(options: SessionTableOptions) {
    this.#options = options;
  }

  /** SESSION_LIMIT when there is no room, or its owner has his share of it, SHUTTING_DOWN once it closes. */
  put(session: S): void {
    if (this.#isClosing) throw shuttingDown();
    const { maxSessions, shares, now } = this.#options;
    const { ownerId } = session;
    this.#makeRoom(ownerId);
    if (shares?.isAll === false && shares.isFull(ownerId)) throw sessionShareLimit(shares.share);
    if (this.#sessions.size >= maxSessions) throw sessionLimit(maxSessions);
    this.#sessions.set(session.id, { session, usedAtMs: now() });
    shares?.take(ownerId);
    session.ended$.subscribe(() => {
      if (this.#sessions.delete(session.id)) shares?.giveBack(ownerId);
    });
    this.#arm();
  }

  /** Finds a session, which is using it. */
  take(id: string): S | undefined {
    const found = this.#sessions.get(id);
    if (found === undefined) return undefined;
    this.#sessions.delete(id);
    this.#sessions.set(id, found);
    found.usedAtMs = this.#options.now();
    return found.session;
  }

  /** Ends all sessions of an owner. */
  async endOf(ownerId: string): Promise<void> {
    const theirs = this.#all().filter((session) => session.ownerId === ownerId);
    await this.#options.scheduler.each(theirs, (session) => session.close());
  }

  /** Refuses new ones, lets calls under way finish within the grace, and ends all. Resolves when nothing is left. */
  async close(graceMs: number): Promise<void> {
    this.#isClosing = true;
    this.#disarm?.();
    const { promise: graceOver, resolve } = Promise.withResolvers<void>();
    const disarm = this.#options.alarm(graceMs, resolve);
    const end = async (session: S): Promise<void> => {
      await Promise.race([session.drained(), graceOver]);
      await this.#options.scheduler.turn();
      await session.close();
    };
    await Promise.all(this.#all().map(end));
    disarm();
  }

  #all(): S[] {
    return [...this.#sessions.values()].map(({ session }) => session);
  }

  /** Ends some of those that are idle at once: the owner's first, since the others do not help where his share is full. */
  #makeRoom(ownerId: string): void {
    const idle = this.#idle();
    const theirs = idle.filter(({ session }) => session.ownerId === ownerId);
    const others = idle.filter(({ session }) => session.ownerId !== ownerId);
    for (const { session } of [...theirs, ...others].slice(0, LIMITS.paceTasks)) void session.close();
  }

  /** Ends all that are idle, but not who is used again before it is his turn. */
  #expire(): void {
    void this.#options.scheduler.each(this.#idle(), (kept) =>
      this.#isIdle(kept) ? kept.session.close() : undefined,
    );
  }

  #idle(): TableEntry<S>[] {
    return [...this.#sessions.values()].filter((kept) => this.#isIdle(kept));
  }

  /** Who is held counts as used now. */
  #isIdle(kept: TableEntry<S>): boolean {
    const { idleMs, now } = this.#options;
    if (kept.session.isHeld) kept.usedAtMs = now();
    return now() - kept.usedAtMs >= idleMs;
  }

  #arm(): void {
    this.#disarm ??= this.#options.alarm(this.#options.idleMs, () => {
      this.#disarm = undefined;
      this.#expire();
      if (this.#sessions.size > 0) this.#arm();
    });
  }
}
