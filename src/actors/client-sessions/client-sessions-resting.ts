// The open sessions of legacy clients in the order of their last use: parked when they rest, ended after a long time without
// use. One timer for all; how a session ends is client-sessions.ts's.

import type { ClientProfile } from '../../domain/client.ts';
import type { GatewayError } from '../../domain/errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { SessionDeps } from './client-session-types.ts';

/**
 * A session in the table: a ClientSession, or one with all templates at once (TableSession of protocol/ports.ts). `openedAtMs`,
 * `usedAtMs` and `isParked` are written here.
 */
export interface SessionRecord {
  readonly id: string;
  readonly ownerId: string;
  readonly profile: ClientProfile;
  /** Of a session with all templates: ids of its sessions with single templates, which are in the table, too. */
  readonly parts: readonly string[];
  /** A stream of its client is open. */
  readonly isListened: boolean;
  /** Calls under way. */
  readonly calls: number;
  /** In ms of `now`, as `usedAtMs`. */
  openedAtMs: number;
  usedAtMs: number;
  isParked: boolean;
  /** Gives up what it does not need while it rests. False while it is busy. */
  park(): boolean;
  /** Ends the calls that wait between two rounds. */
  dismiss(error: GatewayError): void;
  /** Ends it for good. Resolves when nothing is left of it. `reason` is a clause. */
  close(reason?: string): Promise<void>;
}

export interface RestingOptions extends Pick<SessionDeps, 'now' | 'alarm'> {
  /** A session without use for so long is ended. */
  readonly idleMs: number;
  /** Ends one, which deletes it here at once. */
  readonly end: (session: SessionRecord) => void;
}

/** Resolution of times of use, in ms: a session in constant use is not moved at each message. */
const GRAIN_MS = 1_000;
/** Sessions that are parked, and those that are ended, in one go, and the wait until the next go when there are more. */
const PARKED_AT_ONCE = 500;
const ENDED_AT_ONCE = LIMITS.paceTasks;
const NEXT_GO_MS = 20;
const NEVER = Number.POSITIVE_INFINITY;

export class RestingSessions {
  readonly #options: RestingOptions;
  readonly #parkMs: number;
  /** By id, the least recently used first. */
  readonly #awake = new Map<string, SessionRecord>();
  readonly #parked = new Map<string, SessionRecord>();
  #disarm: (() => void) | undefined;
  #ringsAtMs = NEVER;
  #isStopped = false;

  constructor(options: RestingOptions) {
    this.#options = options;
    this.#parkMs = Math.min(LIMITS.sessionParkMs, options.idleMs);
  }

  get size(): number {
    return this.#awake.size + this.#parked.size;
  }
  /** How many of them are parked. */
  get parked(): number {
    return this.#parked.size;
  }

  all(): SessionRecord[] {
    return [...this.#awake.values(), ...this.#parked.values()];
  }

  /** A lookup is not a use. */
  find(id: string): SessionRecord | undefined {
    return this.#awake.get(id) ?? this.#parked.get(id);
  }

  /** One that was opened now. */
  add(session: SessionRecord): void {
    session.openedAtMs = this.#options.now();
    session.usedAtMs = session.openedAtMs;
    this.#awake.set(session.id, session);
    this.#arm();
  }

  used(session: SessionRecord): void {
    const now = this.#options.now();
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

  /** Ends some of the sessions that expired and that `isMeant` accepts. */
  makeRoom(isMeant: (session: SessionRecord) => boolean): void {
    this.#park(NEVER);
    this.#expire(ENDED_AT_ONCE, isMeant);
  }

  /** From now on none is parked or ended. */
  stop(): void {
    this.#isStopped = true;
    this.#disarm?.();
  }

  /** Sets the timer for the first session that may be due; a timer that fires sooner stays. */
  #arm(): void {
    if (this.#isStopped) return;
    const parksAtMs = (first(this.#awake)?.usedAtMs ?? NEVER) + this.#parkMs;
    const expiresAtMs = (first(this.#parked)?.usedAtMs ?? NEVER) + this.#options.idleMs;
    const now = this.#options.now();
    const dueAtMs = Math.max(Math.min(parksAtMs, expiresAtMs), now + GRAIN_MS);
    if (dueAtMs >= this.#ringsAtMs) return;
    this.#ringAt(dueAtMs, now);
  }

  #ringAt(atMs: number, now: number): void {
    this.#disarm?.();
    this.#ringsAtMs = atMs;
    this.#disarm = this.#options.alarm(atMs - now, () => this.#sweep());
  }

  #sweep(): void {
    this.#disarm = undefined;
    this.#ringsAtMs = NEVER;
    const now = this.#options.now();
    const isDone = this.#park(PARKED_AT_ONCE) && this.#expire(ENDED_AT_ONCE);
    if (isDone) this.#arm();
    else this.#ringAt(now + NEXT_GO_MS, now);
  }

  /** Parks those that rest, at most so many. False when there may be more. A busy session counts as used now. */
  #park(most: number): boolean {
    const now = this.#options.now();
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

  /** Ends sessions that expired, at most `most` of those that `isMeant` accepts. False when there may be more. */
  #expire(most: number, isMeant: (session: SessionRecord) => boolean = () => true): boolean {
    const { now, idleMs, end } = this.#options;
    let left = most;
    for (const session of this.#parked.values()) {
      if (now() - session.usedAtMs < idleMs) return true;
      if (!isMeant(session)) continue;
      if (left === 0) return false;
      left -= 1;
      end(session);
    }
    return true;
  }
}

function first(sessions: ReadonlyMap<string, SessionRecord>): SessionRecord | undefined {
  for (const session of sessions.values()) return session;
  return undefined;
}
