// The times that depend on each other: how long a lease lasts, and when a row has expired. Source: ADR 146.

/** Interval of heartbeats, in ms. */
export const HEARTBEAT_MS = 3_000;
/** A lease ends this long after the sending of the last confirmed heartbeat, in ms. */
export const LEASE_MS = 7_000;
/**
 * A row without a change for this time, in ms, is expired. Longer than a lease by the time that SIGKILL and late
 * timers take.
 */
export const EXPIRY_MS = 10_000;
/** Interval of reads, in ms: well below the longest gap of a watch, because ticks and answers are late on a busy machine. */
export const READ_MS = 2_000;
/** The longest wait for an answer of the store, in ms: two of them fit into a lease. */
export const STORE_ANSWER_MS = 1_500;
/** Time in which all members read the rows, in ms. */
export const KNOWN_MS = READ_MS + 1_000;
/** Two reads that are further apart, in ms, do not belong to one watch: this node slept, or its database was away. */
export const MAX_READ_GAP_MS = 2 * READ_MS;
/** A machine that was suspended for longer, in ms, kills its programs: a lease does not count that time. */
export const SUSPENDED_MS = 2_000;

/** The two long times, which simulations shorten. */
export interface LongTimes {
  /**
   * The longest time after the last confirmed heartbeat for which the opinion of the others keeps a lease, in ms. A member that
   * joins meanwhile on the other side of a partition is not asked; it waits for longer (`unseenMs`).
   */
  readonly keptMs: number;
  /**
   * The time of EXPIRY_MS for the programs of a member that has not seen the present life of this node: they may run by the
   * opinion of others for `keptMs`.
   */
  readonly unseenMs: number;
}

export const LONG_TIMES: LongTimes = { keptMs: 300_000, unseenMs: 300_000 + EXPIRY_MS };
