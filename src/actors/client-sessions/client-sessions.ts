// The sessions of legacy clients of one gateway: bounded in number, and all that may happen to many of them at once. Which of
// them rest, and end because nobody used them, is client-sessions-resting.ts. Who a session belongs to is compared by whoever
// looks it up.

import type { ClientProfile } from '../../domain/client.ts';
import { shuttingDown } from '../../domain/errors.ts';
import type { Ending } from '../../domain/events.ts';
import { LIMITS } from '../../domain/limits.ts';
import { sessionLimit, sessionLost, sessionShareLimit } from '../../domain/session-errors.ts';
import { OwnerShares } from '../instances/owner-shares.ts';
import { Binder } from './binder.ts';
import { ClientSession, type SessionSupervisor } from './client-session.ts';
import { endedEvent, movedEvent, openedEvent } from './client-session-events.ts';
import { ClientProfiles } from './client-session-profiles.ts';
import type { SessionDeps } from './client-session-types.ts';
import { RestingSessions } from './client-sessions-resting.ts';

export interface ClientSessionsOptions extends SessionDeps {
  /** Default LIMITS.sessions. */
  readonly maxSessions?: number;
  /** Default LIMITS.sessionIdleMs. */
  readonly idleMs?: number;
  /** Of them, and of nothing else. Default: each owner has LIMITS.ownerShare. */
  readonly shares?: OwnerShares;
}

export class ClientSessions implements SessionSupervisor {
  readonly deps: SessionDeps;
  readonly binder: Binder;
  readonly #maxSessions: number;
  readonly #shares: OwnerShares;
  readonly #profiles = new ClientProfiles();
  readonly #opening = new Set<ClientSession>();
  /** Those that are open. */
  readonly #resting: RestingSessions<ClientSession>;
  readonly #closings = new Set<Promise<void>>();
  #emptied: (() => void) | undefined;
  #isClosing = false;

  constructor({
    maxSessions = LIMITS.sessions,
    idleMs = LIMITS.sessionIdleMs,
    shares = new OwnerShares(maxSessions),
    ...parts
  }: ClientSessionsOptions) {
    this.deps = parts;
    this.binder = new Binder(parts);
    this.#maxSessions = maxSessions;
    this.#shares = shares;
    const { now, alarm } = parts;
    const end = (session: ClientSession) => void this.#end(session, 'nobody used it for too long');
    this.#resting = new RestingSessions({ idleMs, now, alarm, end });
  }

  /** How many there are, those that are being opened included. */
  get size(): number {
    return this.#opening.size + this.#resting.size;
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
    return this.#resting.parked;
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
    if (this.#isClosing || !this.deps.isAccepting()) throw shuttingDown();
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
    this.#resting.add(session);
    session.toldAt = session.instance;
    if (session.toldAt !== undefined) this.deps.emit(openedEvent(session, session.toldAt));
    return session;
  }

  /** Looking it up is not using it. */
  find(id: string): ClientSession | undefined {
    return this.#resting.find(id);
  }

  /** Ends one for good; nothing happens when there is none. */
  async close(id: string): Promise<void> {
    await this.find(id)?.close();
  }

  /** Ends all sessions of an owner, those that are being opened included. Resolves when nothing is left of them. */
  async endOf(ownerId: string): Promise<void> {
    const theirs = this.#all().filter((session) => session.ownerId === ownerId);
    await this.deps.scheduler.each(theirs, (session) =>
      this.#end(session, 'its owner may not use it any more'),
    );
  }

  /** Refuses new ones, lets calls under way finish within the grace, and ends all. Resolves when nothing is left. */
  async closeAll(graceMs: number): Promise<void> {
    const { scheduler, alarm } = this.deps;
    this.#isClosing = true;
    this.#resting.stop();
    const { promise: ready, resolve } = Promise.withResolvers<void>();
    this.#emptied = resolve;
    const disarm = alarm(graceMs, resolve);
    const refusal = shuttingDown();
    await scheduler.each(this.#all(), (session) => {
      session.dismiss(refusal); // no next round is taken
      if (session.calls === 0) void this.#end(session, SHUT_DOWN);
    });
    if (this.size > 0) await ready;
    disarm();
    await scheduler.each(this.#all(), (session) => this.#end(session, SHUT_DOWN));
    await Promise.all(this.#closings);
  }

  // --- what its sessions tell it ------------------------------------------------------------------------------------

  used(session: ClientSession): void {
    if (this.#isClosing && session.calls === 0) this.#end(session, SHUT_DOWN);
    this.#resting.used(session);
  }

  bound(session: ClientSession): void {
    const { toldAt, instance } = session;
    if (toldAt === undefined || instance === undefined || instance === toldAt) return;
    session.toldAt = instance;
    this.deps.emit(movedEvent(session, toldAt, instance));
  }

  ended(session: ClientSession, ending?: Ending): void {
    const { toldAt } = session;
    this.#profiles.release(session.profile);
    this.#shares.giveBack(session.ownerId);
    this.#opening.delete(session);
    this.#resting.delete(session);
    if (toldAt !== undefined && ending !== undefined) {
      this.deps.emit(endedEvent(session, toldAt, ending));
    }
    if (this.size === 0) this.#emptied?.();
  }

  // -----------------------------------------------------------------------------------------------------------------

  #all(): ClientSession[] {
    return [...this.#opening, ...this.#resting.all()];
  }

  #end(session: ClientSession, reason: string): Promise<void> {
    const closing = session.close(reason);
    this.#closings.add(closing);
    void closing.then(() => this.#closings.delete(closing));
    return closing;
  }

  /** Those whose time is over go first; the others are never put out for a newcomer. */
  #makeRoom(ownerId: string): void {
    const isFull = this.size >= this.#maxSessions;
    if (!isFull && !this.#shares.isFull(ownerId)) return;
    this.#resting.makeRoom(isFull ? undefined : ownerId);
    if (!this.#shares.isAll && this.#shares.isFull(ownerId)) throw sessionShareLimit(this.#shares.share);
    if (this.size >= this.#maxSessions) throw sessionLimit(this.#maxSessions);
  }
}

const CALLED_OFF = 'its client went away';
const SHUT_DOWN = 'the gateway shuts down';
