// Sessions that no instance owns: bounded in number, ended when nobody used them for long. One timer for all.

import { shuttingDown } from '../domain/errors.ts';
import { sessionLimit, sessionShareLimit } from '../domain/session-errors.ts';
import type { Session } from './ports.ts';

/** How much each owner holds, and whether that is all one may hold: `share`. */
export interface Shares {
  readonly share: number;
  isFull(ownerId: string): boolean;
  take(ownerId: string): void;
  giveBack(ownerId: string): void;
}

/** Bounds, and the time they are measured in. */
export interface ShelfOptions {
  readonly maxSessions: number;
  readonly idleMs: number;
  /** Of these sessions alone. Default: one owner may have all of them. */
  readonly shares?: Shares | undefined;
  /** Monotonic clock in ms. */
  readonly now: () => number;
  /** Rings once after so many ms, unless the returned function was called before. */
  readonly alarm: (waitMs: number, ring: () => void) => () => void;
}

/** A session that tells whether somebody is using it right now. */
export interface Shelved extends Session {
  readonly isHeld: boolean;
  /** Resolves when no call is under way. */
  drained(): Promise<void>;
}

/** Owns the sessions that are put there. */
export class SessionShelf<S extends Shelved> {
  readonly #options: ShelfOptions;
  /** Longest unused first. */
  readonly #sessions = new Map<string, { readonly session: S; usedAtMs: number }>();
  #disarm: (() => void) | undefined;
  #isClosing = false;

  constructor(options: ShelfOptions) {
    this.#options = options;
  }

  /** SESSION_LIMIT when there is no room, or its owner has his share of it, SHUTTING_DOWN once it closes. */
  put(session: S): void {
    if (this.#isClosing) throw shuttingDown();
    const { maxSessions, shares, now } = this.#options;
    const { ownerId } = session;
    this.#expire();
    if (shares?.isFull(ownerId)) throw sessionShareLimit(shares.share);
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
    await Promise.all(
      this.#all().map((session) => (session.ownerId === ownerId ? session.close() : undefined)),
    );
  }

  /** Refuses new ones, lets calls under way finish within the grace, and ends all. Resolves when nothing is left. */
  async close(graceMs: number): Promise<void> {
    this.#isClosing = true;
    this.#disarm?.();
    const { promise: graceOver, resolve } = Promise.withResolvers<void>();
    const disarm = this.#options.alarm(graceMs, resolve);
    const end = async (session: S): Promise<void> => {
      await Promise.race([session.drained(), graceOver]);
      await session.close();
    };
    await Promise.all(this.#all().map(end));
    disarm();
  }

  #all(): S[] {
    return [...this.#sessions.values()].map(({ session }) => session);
  }

  #expire(): void {
    const { idleMs, now } = this.#options;
    for (const found of this.#sessions.values()) {
      if (found.session.isHeld) found.usedAtMs = now();
      else if (now() - found.usedAtMs >= idleMs) void found.session.close();
    }
  }

  #arm(): void {
    this.#disarm ??= this.#options.alarm(this.#options.idleMs, () => {
      this.#disarm = undefined;
      this.#expire();
      if (this.#sessions.size > 0) this.#arm();
    });
  }
}
