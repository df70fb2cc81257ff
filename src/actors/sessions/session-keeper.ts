// Keeps a row for each session of a client, so that another life can recover it. Three writes are awaited as long as the database
// answers: the row of a new session, its deletion, and the mark `unsafe`. All others are written behind. Writes are grouped, and
// there is none per call. Source: ADR 143, 294. How a session is read again: session-recovery.ts.

import { LIMITS } from '../../domain/limits.ts';
import { RELEASED, type SessionDecision } from '../../domain/nodes/life.ts';
import { gatewayOf, type NodeLife } from '../../domain/nodes/nodes.ts';
import { FIRST_GENERATION, type StorableSession } from '../../domain/sessions/session-value.ts';
import { type Clock, settlesWithin, wallAt } from '../../domain/time/clock.ts';
import { MAX_SESSION_ROWS, type SessionStore, type StoredSession } from '../../persistence/store.ts';
import { type RowWriter, SessionRow } from './session-row.ts';

/** Longest wait of a client for a write, in ms. A later write is counted, and made all the same. */
const WAIT_MS = 5_000;
/** The wait of a client, in ms, after a write that failed or took longer than a client waits. */
const AWAY_WAIT_MS = 250;
/** Shortest time from one group of awaited writes to the next, in ms. */
const GROUP_MS = 2;
/** Wait of a write that no client waits for, in ms: changes of one session within this time are one write. */
const BEHIND_MS = 50;
/** Wait after a failure, in ms. */
const RETRY_MS = 1_000;
/** Most sessions with changes that are not written yet. Changes of others are dropped. */
const MAX_PENDING = 25_000;
/** Longest wait for the last writes when the gateway stops, in ms. */
const LAST_MS = 2_000;
/** From the start of a life to the first deletion of old rows, in ms: the start is busy enough. */
const FIRST_TRIM_MS = 10_000;

interface KeeperOptions {
  readonly store: SessionStore;
  readonly node: string;
  readonly life: string;
  readonly clock: Clock;
  readonly idleMs?: number | undefined;
  /** Most sessions of a life. */
  readonly maxSessions?: number | undefined;
  /** Default: the sessions of earlier lives of this node, and of workers that it had, are recovered here. */
  readonly decideSession?: DecideSession | undefined;
  readonly successorOf?: SuccessorOf | undefined;
  readonly mayStore?: MayStore | undefined;
}

/**
 * The life that serves a stored session: this one, which has it or may claim it; another life; or none. Rejects
 * with DATABASE_UNAVAILABLE.
 */
export type DecideSession = (row: StoredSession) => Promise<SessionDecision>;

/**
 * The life that recovers the session with this key in the place of this node, which is drained; undefined when no
 * other node takes sessions. `key`: see rowKeyOf.
 */
export type SuccessorOf = (key: string) => string | undefined;

/**
 * Whether another node may store sessions of this life later: it goes on, or may come back after a freeze.
 * Undefined: none does. Rejects with DATABASE_UNAVAILABLE.
 */
export type MayStore = (life: string) => Promise<boolean> | undefined;

/** Since the start of the gateway. */
export interface KeeperCounts {
  /** Awaited writes that took longer than their client waited. */
  late: number;
  /** Sessions that were not stored, because they were too large or too many changes waited. */
  dropped: number;
  /** Sessions of lives that are over, recovered here. */
  recovered: number;
  /**
   * Attempts to claim a session of a life that is over, or that released it. `lost`: another life was first, or
   * its holder changed it meanwhile.
   */
  readonly claims: { won: number; lost: number };
  /** Writes that found that another life has the session. */
  fenced: number;
}

/** Writes the rows of the sessions of one life. */
export class SessionKeeper implements RowWriter {
  readonly store: SessionStore;
  /** This node and its present life. */
  ownLife: NodeLife;
  readonly decideSession: DecideSession;
  readonly successorOf: SuccessorOf;
  readonly mayStore: MayStore;
  readonly counts: KeeperCounts = {
    late: 0,
    dropped: 0,
    recovered: 0,
    fenced: 0,
    claims: { won: 0, lost: 0 },
  };
  readonly clock: Clock;
  readonly #idleMs: number;
  readonly #maxSessions: number;
  readonly #pending = new Set<SessionRow>();
  /** The last write failed, or a client did not wait for it any longer. */
  #isStoreAway = false;
  /** The next write. */
  #next: { readonly atMs: number; readonly cancel: () => void } | undefined;
  /** False after a failure. */
  #writing: Promise<boolean> | undefined;
  #startedAtMs = Number.NEGATIVE_INFINITY;
  #stopTrimming: (() => void) | undefined;
  /** Keys of rows that any node may claim; undefined without other nodes. */
  readonly #released: string[] | undefined;
  #releasing: Promise<void> | undefined;
  #hasReleased = false;
  /** Each ends the wait of one client for a write. */
  readonly #waits = new Set<(isWritten: boolean) => void>();
  #isClosed = false;

  constructor(options: KeeperOptions) {
    const { store, node, life, clock, idleMs, maxSessions, decideSession } = options;
    this.store = store;
    this.successorOf = options.successorOf ?? (() => undefined);
    this.mayStore = options.mayStore ?? (() => undefined);
    this.decideSession =
      decideSession ?? (async (row) => ({ do: gatewayOf(row.node) === node ? 'claim' : 'end' }));
    this.ownLife = { node, life };
    this.#released = decideSession && [];
    this.clock = clock;
    this.#idleMs = idleMs ?? LIMITS.sessionIdleMs;
    this.#maxSessions = maxSessions ?? LIMITS.sessions;
  }

  /**
   * Bounds the rows of earlier lives, a moment later: those of the latest life all fit, and what is not recovered
   * within the idle time of a session from now on is deleted.
   */
  begin(): void {
    const { background } = this.clock;
    const stops = [
      background.alarm(FIRST_TRIM_MS, () => void this.#trim(2 * this.#maxSessions)),
      background.every(this.#idleMs, () => void this.#trim(0)),
    ];
    this.#stopTrimming = () => {
      for (const stop of stops) stop();
    };
  }

  /** The former life was ended by other nodes: its rows may be theirs by now, and are not changed any more. */
  beginLife(life: string): void {
    this.ownLife = { ...this.ownLife, life };
    this.#hasReleased = false;
    if (this.#stopTrimming === undefined) return;
    this.#stopTrimming();
    this.begin(); // they stay for one idle time from now on
  }

  /** Other lives may have sessions whose ids begin with this life. */
  get hasReleased(): boolean {
    return this.#hasReleased;
  }

  /** Resolves when the rows that are being released are, or cannot be. */
  get released(): Promise<void> | undefined {
    return this.#releasing;
  }

  /** A row for this session. `stored`: the row has its present value already. */
  keep(session: StorableSession, stored = false): SessionRow {
    return new SessionRow(this, session, stored);
  }

  /** The last changes are written, 2 s at most. No client waits for a write after it. */
  async close(): Promise<void> {
    this.#stopTrimming?.();
    this.#stopTrimming = undefined;
    await settlesWithin(
      this.#writeAll().then(() => this.#releasing),
      LAST_MS,
      this.clock,
    );
    this.#next?.cancel();
    this.#pending.clear();
    this.#isClosed = true;
    for (const endWait of this.#waits) endWait(false);
  }

  // --- for its sessions ------------------------------------------------------------------------------------

  /** `isAwaited`: a client waits for the write. */
  add(row: SessionRow, isAwaited: boolean): void {
    if (!this.#pending.has(row) && this.#pending.size >= MAX_PENDING) {
      this.counts.dropped += 1;
      row.settle();
      return;
    }
    this.#pending.add(row);
    this.#schedule(isAwaited);
  }

  /** A session of this node, which stops or is drained, has ended here: any node may claim its row at once. */
  release(key: string): void {
    if (this.#released === undefined) return;
    this.#hasReleased = true;
    this.#released.push(key);
    this.#releasing ??= this.#releaseAll().finally(() => {
      this.#releasing = undefined;
    });
  }

  async within(written: Promise<boolean>): Promise<boolean> {
    const waitMs = this.#isStoreAway ? AWAY_WAIT_MS : WAIT_MS;
    const { promise: ended, resolve: endWait } = Promise.withResolvers<boolean>();
    if (this.#isClosed) endWait(false);
    this.#waits.add(endWait);
    const first = Promise.race([written, ended]);
    const isWritten = (await settlesWithin(first, waitMs, this.clock)) && (await first);
    this.#waits.delete(endWait);
    if (isWritten) return true;
    this.#isStoreAway = true;
    this.counts.late += 1;
    return false;
  }

  // ---------------------------------------------------------------------------------------------------------

  #schedule(isAwaited: boolean): void {
    if (this.#writing !== undefined) return; // it schedules the next one
    const now = this.clock.now();
    const atMs = isAwaited ? Math.max(now, this.#startedAtMs + GROUP_MS) : now + BEHIND_MS;
    if (this.#next !== undefined && this.#next.atMs <= atMs) return;
    this.#next?.cancel();
    if (atMs <= now) this.#begin();
    else this.#beginIn(atMs - now);
  }

  #begin(): void {
    this.#next?.cancel();
    this.#next = undefined;
    if (this.#writing !== undefined || this.#pending.size === 0) return;
    this.#startedAtMs = this.clock.now();
    this.#writing = this.#writeGroup().then((isDone) => {
      this.#writing = undefined;
      if (this.#pending.size === 0) return isDone;
      if (isDone) this.#schedule([...this.#pending].some((row) => row.isAwaited));
      else this.#beginIn(RETRY_MS);
      return isDone;
    });
  }

  #beginIn(waitMs: number): void {
    const { now, background } = this.clock;
    this.#next = { atMs: now() + waitMs, cancel: background.alarm(waitMs, () => this.#begin()) };
  }

  /** Ends at the first failure. */
  async #writeAll(): Promise<void> {
    while (this.#writing !== undefined || this.#pending.size > 0) {
      this.#begin();
      if ((await this.#writing) === false) return;
    }
  }

  /** False after a failure: the group is written again later. */
  async #writeGroup(): Promise<boolean> {
    const group = [...this.#pending].slice(0, MAX_SESSION_ROWS);
    for (const row of group) this.#pending.delete(row);
    const usedAt = new Date(wallAt(this.clock, this.clock.now())).toISOString();
    try {
      const writes = group.map((row) => ({ row, key: row.key, ...row.next() }));
      const inserts = writes.flatMap(({ key, insert: value }) =>
        value === undefined ? [] : { key, ...this.ownLife, generation: FIRST_GENERATION, value, usedAt },
      );
      const updates = writes.flatMap(({ key, update: value }) =>
        value === undefined ? [] : { key, value, usedAt },
      );
      const deletes = writes.flatMap(({ key, isDeleted }) => (isDeleted ? key : []));
      const { store } = this;
      const { life } = this.ownLife;
      if (inserts.length > 0) await store.insert(inserts);
      const holders = updates.length > 0 ? await store.update(life, updates) : undefined;
      if (deletes.length > 0) await store.delete(life, deletes);
      for (const { row, key, update, written } of writes) {
        if (update === undefined || holders?.get(key) === life) row.wrote(written);
        else if (holders?.has(key)) {
          this.counts.fenced += 1;
          row.takenOver();
        } else {
          row.wrote(undefined); // its row was deleted
          this.#pending.add(row);
        }
      }
      this.#isStoreAway = false;
      return true;
    } catch {
      // The database is away, or refuses.
      this.#isStoreAway = true;
      for (const row of group) this.#pending.add(row);
      for (const row of this.#pending) row.settle(false);
      return false;
    }
  }

  /** What the sessions have changed is written before. Ends at the first failure: the end of this life frees the rows, too. */
  async #releaseAll(): Promise<void> {
    const { node, life } = this.ownLife;
    const keys = this.#released ?? [];
    try {
      while (keys.length > 0) {
        await this.#writeAll();
        const rows = await this.store.read(keys.splice(0, MAX_SESSION_ROWS));
        const own = rows.filter((row) => row.life === life);
        if (own.length > 0) await this.store.claim(own, { node, life: RELEASED });
      }
    } catch {
      keys.length = 0; // the database is away
    }
  }

  async #trim(keep: number): Promise<void> {
    try {
      while ((await this.store.trim(this.ownLife, keep)) === MAX_SESSION_ROWS);
    } catch {
      // The database is away: the next time.
    }
  }
}
