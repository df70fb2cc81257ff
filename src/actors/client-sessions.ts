// The sessions of legacy clients of one gateway: bounded in number, parked when they rest, ended when nobody used them for
// long. One timer for all. Who a session belongs to is compared by whoever looks it up.

import type { ClientProfile } from '../domain/client.ts';
import { shuttingDown } from '../domain/errors.ts';
import type { Ending } from '../domain/events.ts';
import { LIMITS } from '../domain/limits.ts';
import { sessionLimit, sessionLost, sessionShareLimit } from '../domain/session-errors.ts';
import { ClientSession, type SessionKeeper } from './client-session.ts';
import { endedFact, movedFact, openedFact } from './client-session-facts.ts';
import type { SessionParts } from './client-session-parts.ts';
import { Pinning } from './client-session-pin.ts';
import { ClientProfiles } from './client-session-profiles.ts';
import { OwnerShares } from './owner-shares.ts';

export interface ClientSessionsOptions extends SessionParts {
  /** Default LIMITS.sessions. */
  readonly maxSessions?: number;
  /** Default LIMITS.sessionIdleMs. */
  readonly idleMs?: number;
  /** Part of them that one owner may have, above 0 and up to 1. Default LIMITS.ownerShare. */
  readonly share?: number;
}

/** Times of use are exact to so many ms: whoever is used all the time need not be moved at each message. */
const GRAIN_MS = 1_000;
/** Sessions that are parked or ended in one go, and the wait until the next go when there are more. */
const MOST_AT_ONCE = 500;
const NEXT_GO_MS = 20;
const NEVER = Number.POSITIVE_INFINITY;

export class ClientSessions implements SessionKeeper {
  readonly parts: SessionParts;
  readonly pinning: Pinning;
  readonly #maxSessions: number;
  readonly #shares: OwnerShares;
  readonly #idleMs: number;
  readonly #parkMs: number;
  readonly #profiles = new ClientProfiles();
  readonly #opening = new Set<ClientSession>();
  /** By id, those that were not used for longest first. */
  readonly #awake = new Map<string, ClientSession>();
  readonly #parked = new Map<string, ClientSession>();
  readonly #closings = new Set<Promise<void>>();
  #disarm: (() => void) | undefined;
  #ringsAtMs = NEVER;
  #emptied: (() => void) | undefined;
  #isClosing = false;

  constructor({
    maxSessions = LIMITS.sessions,
    idleMs = LIMITS.sessionIdleMs,
    share,
    ...parts
  }: ClientSessionsOptions) {
    this.parts = parts;
    this.pinning = new Pinning(parts);
    this.#maxSessions = maxSessions;
    this.#shares = new OwnerShares(maxSessions, share);
    this.#idleMs = idleMs;
    this.#parkMs = Math.min(LIMITS.sessionParkMs, idleMs);
  }

  /** How many there are, those that are being opened included. */
  get size(): number {
    return this.#opening.size + this.#awake.size + this.#parked.size;
  }
  /** How many there may be. */
  get max(): number {
    return this.#maxSessions;
  }
  /** How many of them have calls under way. */
  get calling(): number {
    return this.#all().filter(({ calls }) => calls > 0).length;
  }
  /** How many of them are parked. */
  get parked(): number {
    return this.#parked.size;
  }

  /**
   * Opens a session for a client: an instance is chosen by the template's strategy, and stays. When it cannot be opened
   * there, the next one is tried, at most `maxRetries` times. Aborting calls it off, and ends what was opened for it.
   * Rejects with SESSION_LIMIT (all are taken, or the owner's share is), SHUTTING_DOWN, TEMPLATE_NOT_FOUND,
   * NO_HEALTHY_INSTANCE, BACKEND_UNAVAILABLE, BACKEND_TIMEOUT, QUEUE_FULL; SESSION_NOT_FOUND when it was called off.
   */
  async open(
    template: string,
    ownerId: string,
    profile: ClientProfile,
    signal?: AbortSignal,
  ): Promise<ClientSession> {
    if (this.#isClosing || !this.parts.isAccepting()) throw shuttingDown();
    if (signal?.aborted) throw sessionLost(CALLED_OFF);
    this.#makeRoom(ownerId);
    const shared = this.#profiles.take(profile);
    const session = new ClientSession(this, { template, ownerId, profile: shared });
    this.#opening.add(session);
    this.#shares.take(ownerId);
    const callOff = () => this.#end(session, CALLED_OFF);
    signal?.addEventListener('abort', callOff);
    try {
      const opening = session.open();
      if (opening !== undefined) await opening;
    } catch (thrown) {
      // One that could not even begin to open is unknown to itself; else it has told its end already.
      if (this.#opening.has(session)) this.ended(session);
      throw this.#isClosing ? shuttingDown() : thrown;
    } finally {
      signal?.removeEventListener('abort', callOff);
    }
    // It may have been ended while it was opened.
    if (!this.#opening.delete(session)) throw this.#isClosing ? shuttingDown() : sessionLost(CALLED_OFF);
    session.usedAtMs = this.parts.now();
    this.#awake.set(session.id, session);
    this.#arm();
    session.toldAt = session.instance;
    if (session.toldAt !== undefined) this.parts.emit(openedFact(session, session.toldAt));
    return session;
  }

  /** Looking it up is not using it. */
  find(id: string): ClientSession | undefined {
    return this.#awake.get(id) ?? this.#parked.get(id);
  }

  /** Ends one for good; nothing happens when there is none. */
  async close(id: string): Promise<void> {
    await this.find(id)?.close();
  }

  /** Ends all sessions of an owner, those that are being opened included. Resolves when nothing is left of them. */
  async endOf(ownerId: string): Promise<void> {
    const theirs = this.#all().filter((session) => session.ownerId === ownerId);
    await Promise.all(theirs.map((session) => this.#end(session, 'its owner may not use it any more')));
  }

  /** Refuses new ones, lets calls under way finish within the grace, and ends all. Resolves when nothing is left. */
  async closeAll(graceMs: number): Promise<void> {
    this.#isClosing = true;
    this.#disarm?.();
    for (const session of this.#all()) {
      session.dismiss(shuttingDown()); // no next round is taken
      if (session.calls === 0) this.#end(session, SHUT_DOWN);
    }
    if (this.size > 0) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#emptied = resolve;
      const disarm = this.parts.alarm(graceMs, resolve);
      await promise;
      disarm();
    }
    for (const session of this.#all()) this.#end(session, SHUT_DOWN);
    await Promise.all(this.#closings);
  }

  // --- what its sessions tell it ------------------------------------------------------------------------------------

  used(session: ClientSession): void {
    const { id } = session;
    if (this.#isClosing && session.calls === 0) this.#end(session, SHUT_DOWN);
    const now = this.parts.now();
    if (session.isParked) {
      session.isParked = false;
      this.#parked.delete(id);
    } else if (now - session.usedAtMs < GRAIN_MS || !this.#awake.delete(id)) return;
    session.usedAtMs = now;
    this.#awake.set(id, session);
    this.#arm();
  }

  pinned(session: ClientSession): void {
    const { toldAt, instance } = session;
    if (toldAt === undefined || instance === undefined || instance === toldAt) return;
    session.toldAt = instance;
    this.parts.emit(movedFact(session, toldAt, instance));
  }

  ended(session: ClientSession, ending?: Ending): void {
    const { id, toldAt } = session;
    this.#profiles.release(session.profile);
    this.#shares.giveBack(session.ownerId);
    this.#opening.delete(session);
    this.#awake.delete(id);
    this.#parked.delete(id);
    if (toldAt !== undefined && ending !== undefined) {
      this.parts.emit(endedFact(session, toldAt, ending));
    }
    if (this.size === 0) this.#emptied?.();
  }

  // -----------------------------------------------------------------------------------------------------------------

  #all(): ClientSession[] {
    return [...this.#opening, ...this.#awake.values(), ...this.#parked.values()];
  }

  #end(session: ClientSession, reason: string): Promise<void> {
    const closing = session.close(reason);
    this.#closings.add(closing);
    void closing.then(() => this.#closings.delete(closing));
    return closing;
  }

  /** Those whose time is over go first; the others are never put out for a newcomer. */
  #makeRoom(ownerId: string): void {
    if (this.size < this.#maxSessions && !this.#shares.isFull(ownerId)) return;
    this.#park(NEVER);
    this.#expire(NEVER);
    if (this.#shares.isFull(ownerId)) throw sessionShareLimit(this.#shares.share);
    if (this.size >= this.#maxSessions) throw sessionLimit(this.#maxSessions);
  }

  /** Rings when the first of them may be due; a timer that rings sooner stays. */
  #arm(): void {
    if (this.#isClosing) return;
    const parksAtMs = (first(this.#awake)?.usedAtMs ?? NEVER) + this.#parkMs;
    const expiresAtMs = (first(this.#parked)?.usedAtMs ?? NEVER) + this.#idleMs;
    const now = this.parts.now();
    const dueAtMs = Math.max(Math.min(parksAtMs, expiresAtMs), now + GRAIN_MS);
    if (dueAtMs >= this.#ringsAtMs) return;
    this.#ringAt(dueAtMs, now);
  }

  #ringAt(atMs: number, now: number): void {
    this.#disarm?.();
    this.#ringsAtMs = atMs;
    this.#disarm = this.parts.alarm(atMs - now, () => this.#sweep());
  }

  #sweep(): void {
    this.#disarm = undefined;
    this.#ringsAtMs = NEVER;
    const now = this.parts.now();
    const isDone = this.#park(MOST_AT_ONCE) && this.#expire(MOST_AT_ONCE);
    if (isDone) this.#arm();
    else this.#ringAt(now + NEXT_GO_MS, now);
  }

  /** Parks those that rest, at most so many. False when there may be more. Who is busy counts as used now. */
  #park(most: number): boolean {
    const now = this.parts.now();
    let left = most;
    for (const [id, session] of this.#awake) {
      if (now - session.usedAtMs < this.#parkMs) return true;
      if (left === 0) return false;
      left -= 1;
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

  /** Ends those that nobody used for too long, at most so many. False when there may be more. */
  #expire(most: number): boolean {
    const now = this.parts.now();
    let left = most;
    for (const session of this.#parked.values()) {
      if (now - session.usedAtMs < this.#idleMs) return true;
      if (left === 0) return false;
      left -= 1;
      this.#end(session, 'nobody used it for too long');
    }
    return true;
  }
}

const CALLED_OFF = 'its client went away';
const SHUT_DOWN = 'the gateway shuts down';

function first(sessions: ReadonlyMap<string, ClientSession>): ClientSession | undefined {
  for (const session of sessions.values()) return session;
  return undefined;
}
