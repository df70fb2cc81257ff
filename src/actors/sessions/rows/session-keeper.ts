// Stores a row for each session of a client, so that another life can recover the session. Clients wait for three kinds
// of writes, as long as the database answers: the row of a new session, its deletion, and the mark `unsafe`. All other
// changes are written later. Writes are grouped, and there is none per call. Source: ADR 143. session-recovery.ts
// reads the rows.

import { hasCode } from '../../../domain/errors/errors.ts';
import { RELEASED } from '../../../domain/nodes/life.ts';
import type { NodeLife } from '../../../domain/nodes/nodes.ts';
import type { SessionHolders } from '../../../domain/sessions/session-holder.ts';
import { FIRST_GENERATION } from '../../../domain/sessions/session-value.ts';
import { type Clock, settlesWithin, wallAt } from '../../../domain/time/clock.ts';
import { MAX_SESSION_ROWS, type SessionStore } from '../../../persistence/store.ts';
import type { RowWriter, StoredRow } from './stored-row.ts';

/**
 * The longest wait of a client for a write, in ms. A write that takes longer is counted as late, and completed all
 * the same.
 */
const WAIT_MS = 5_000;
/** The longest wait of a client after a write that failed or was late, in ms. */
const AWAY_WAIT_MS = 250;
/** The shortest time between two groups of awaited writes, in ms. */
const GROUP_MS = 2;
/** Delay of a write that no client waits for, in ms: changes of one session within this time become one write. */
const BEHIND_MS = 50;
/** Wait before writes are tried again after a failure, in ms. */
const RETRY_MS = 1_000;
/** The most sessions with unwritten changes. Changes of further sessions are dropped. */
const MAX_PENDING = 25_000;
/** The longest wait for the last writes of a life, in ms. */
const LAST_MS = 2_000;
/** The rows that the database refuses, each alone, after which the last writes end. */
const MAX_REFUSED = 2;
/** Time from the start of a life to the first deletion of old rows, in ms: the start itself is busy enough. */
const FIRST_TRIM_MS = 10_000;

/**
 * How the write of a group ended: `split`: the database refuses it, and gets half of it next; `refused`: a row alone; `away`: it
 * did not answer.
 */
type GroupEnd = 'written' | 'split' | 'refused' | 'away';

interface SessionKeeperOptions {
  readonly store: SessionStore;
  readonly node: string;
  readonly life: string;
  readonly clock: Clock;
  readonly idleMs: number;
  /** The most sessions of a life. */
  readonly maxSessions: number;
  readonly holders?: SessionHolders | undefined;
}

/** Counts since the start of the gateway. */
export interface KeeperCounts {
  /** Awaited writes that took longer than their client waited. */
  late: number;
  /** Sessions that were not stored, because they were too large or too many changes waited. */
  dropped: number;
  /** Sessions of lives that are over, recovered on this node. */
  recovered: number;
  /**
   * Attempts to claim a session from a life that is over or has released it. `lost`: another life was first, or the
   * holder changed the row before the claim.
   */
  readonly claims: { won: number; lost: number };
  /** Writes that failed because another life holds the session. */
  heldElsewhere: number;
}

/** Writes the rows of the sessions of one life. */
export class SessionKeeper implements RowWriter {
  readonly store: SessionStore;
  /** The id of this node, and its present life. */
  ownLife: NodeLife;
  /** True when this life has released sessions: other lives may hold sessions whose ids begin with this life. */
  hasReleased = false;
  readonly holders: SessionHolders;
  readonly counts: KeeperCounts = {
    late: 0,
    dropped: 0,
    recovered: 0,
    heldElsewhere: 0,
    claims: { won: 0, lost: 0 },
  };
  readonly clock: Clock;
  readonly #idleMs: number;
  readonly #maxSessions: number;
  readonly #pending = new Set<StoredRow>();
  /** The most rows of the next group: half after a refusal, so that a row that the database refuses is soon alone. */
  #groupRows = MAX_SESSION_ROWS;
  /** True after a write that failed, or that a client did not wait for any longer. */
  #isStoreAway = false;
  /** The time of the next write, and its cancellation. */
  #next: { readonly atMs: number; readonly cancel: () => void } | undefined;
  /** The write under way. */
  #writing: Promise<GroupEnd> | undefined;
  #startedAtMs = Number.NEGATIVE_INFINITY;
  #stopTrimming: (() => void) | undefined;
  /** Keys of rows to be released, which any node may claim then; undefined without other nodes. */
  readonly #keysToRelease: string[] | undefined;
  #releasing: Promise<void> | undefined;
  /** Functions that end the wait of one client for a write. */
  readonly #waits = new Set<(isWritten: boolean) => void>();
  #isClosed = false;

  constructor(options: SessionKeeperOptions) {
    const { store, node, life, clock, idleMs, maxSessions, holders = {} } = options;
    this.store = store;
    this.holders = holders;
    this.ownLife = { node, life };
    this.#keysToRelease = holders.decideSession && [];
    this.clock = clock;
    this.#idleMs = idleMs;
    this.#maxSessions = maxSessions;
  }

  /**
   * Schedules the deletion of old rows: first down to twice the number of sessions of a life, so that all rows of the
   * latest life stay; then, after each idle time, all rows that were not recovered in that time.
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

  /**
   * Begins a new life, after other nodes have ended the former one. Rows of the former life are not changed any more,
   * since other nodes may hold them.
   */
  beginLife(life: string): void {
    this.ownLife = { ...this.ownLife, life };
    this.hasReleased = false;
    if (this.#stopTrimming === undefined) return;
    this.#stopTrimming();
    this.begin(); // they stay for one idle time from now on
  }

  /** Resolves when the rows that are being released are released, or cannot be; undefined when none are. */
  get untilReleased(): Promise<void> | undefined {
    return this.#releasing;
  }

  /** Writes all changes, and releases the rows that are to be released, waiting 2 s at most. */
  async finish(): Promise<void> {
    await settlesWithin(
      this.#writeAll().then(() => this.#releasing),
      LAST_MS,
      this.clock,
    );
  }

  /** Writes the last changes: see `finish`. From then on no client waits for a write. */
  async close(): Promise<void> {
    this.#stopTrimming?.();
    this.#stopTrimming = undefined;
    await this.finish();
    this.#next?.cancel();
    this.#pending.clear();
    this.#isClosed = true;
    for (const endWait of this.#waits) endWait(false);
  }

  // --- for its sessions ------------------------------------------------------------------------------------

  add(row: StoredRow): void {
    if (!this.#pending.has(row) && this.#pending.size >= MAX_PENDING) {
      this.counts.dropped += 1;
      row.settle(false);
      return;
    }
    this.#pending.add(row);
    this.#schedule(row.isAwaited);
  }

  /**
   * Releases the row of a session that has ended here, because the node stops or is drained: any node may claim it at
   * once.
   */
  release(key: string): void {
    if (this.#keysToRelease === undefined) return;
    this.hasReleased = true;
    this.#keysToRelease.push(key);
    this.#releasing ??= this.#releaseAll();
  }

  async waitForWrite(written: Promise<boolean>): Promise<boolean> {
    const waitMs = this.#isStoreAway ? AWAY_WAIT_MS : WAIT_MS;
    const { promise: ended, resolve: endWait } = Promise.withResolvers<boolean>();
    if (this.#isClosed) endWait(false);
    this.#waits.add(endWait);
    const first = Promise.race([written, ended]);
    const isInTime = await settlesWithin(first, waitMs, this.clock);
    this.#waits.delete(endWait);
    if (isInTime && (await first)) return true;
    if (!isInTime) this.#isStoreAway = true;
    if (this.#isStoreAway) this.counts.late += 1;
    return false;
  }

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
    this.#writing = this.#writeGroup().then((end) => {
      this.#writing = undefined;
      if (this.#pending.size === 0) return end;
      if (end === 'refused' || end === 'away') this.#beginIn(RETRY_MS);
      else this.#schedule(end === 'split' || [...this.#pending].some((row) => row.isAwaited));
      return end;
    });
  }

  #beginIn(waitMs: number): void {
    const { now, background } = this.clock;
    this.#next = { atMs: now() + waitMs, cancel: background.alarm(waitMs, () => this.#begin()) };
  }

  /** Writes all changes, as far as the database takes them. */
  async #writeAll(): Promise<void> {
    for (let refused = 0; this.#writing !== undefined || this.#pending.size > 0; ) {
      this.#begin();
      const end = await this.#writing;
      if (end === 'refused') refused += 1;
      if (end === 'away' || refused === MAX_REFUSED) return;
    }
  }

  /** Writes one group, or keeps it to be written again. */
  async #writeGroup(): Promise<GroupEnd> {
    const group = [...this.#pending].slice(0, this.#groupRows);
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
          this.counts.heldElsewhere += 1;
          row.takenOver();
        } else {
          row.wrote(undefined); // its row was deleted
          this.#pending.add(row);
        }
      }
      this.#isStoreAway = false;
      this.#groupRows = Math.min(2 * this.#groupRows, MAX_SESSION_ROWS);
      return 'written';
    } catch (thrown) {
      for (const row of group) this.#pending.add(row); // after all others
      const isAway = hasCode(thrown, 'DATABASE_UNAVAILABLE');
      if (!isAway) this.#groupRows = Math.ceil(group.length / 2);
      if (!isAway && group.length > 1) return 'split';
      this.#isStoreAway = true;
      for (const row of this.#pending) row.settle(false);
      return isAway ? 'away' : 'refused';
    }
  }

  /**
   * Releases rows, after their last changes are written. Rows with a change that cannot be written stay, with those that wait
   * behind it, and so do all while the database is away: this life goes on with their sessions, and its end frees the rows.
   */
  async #releaseAll(): Promise<void> {
    const { node, life } = this.ownLife;
    const keys = this.#keysToRelease ?? [];
    try {
      while (keys.length > 0) {
        await this.#writeAll();
        const unwritten = new Set(Array.from(this.#pending, ({ key }) => key));
        const written = keys.splice(0, MAX_SESSION_ROWS).filter((key) => !unwritten.has(key));
        const rows = await this.store.read(written);
        const own = rows.filter((row) => row.life === life);
        if (own.length > 0) await this.store.claim(own, { node, life: RELEASED });
      }
    } catch {
      keys.length = 0; // the database is away
    }
    this.#releasing = undefined; // in the same turn as the check for more keys
  }

  async #trim(keep: number): Promise<void> {
    try {
      while ((await this.store.trim(this.ownLife, keep)) === MAX_SESSION_ROWS);
    } catch {
      // The database is away: the next time.
    }
  }
}
