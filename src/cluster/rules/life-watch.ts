// The watch over the life of another member: whether its row changes, whether it answers pings, and when that means that the life
// is to be ended. All times are those of this node; no clocks are compared. Source: ADR 146.

import type { LifeEnd } from '../../domain/nodes/life.ts';
import type { LifeRow } from './rows.ts';
import { EXPIRY_MS, MAX_READ_GAP_MS } from './times.ts';

/** The fewest reads without a change. */
const MIN_READS = 4;
/** Time without an answer to pings, in ms, after which a member is silent. */
const SILENT_MS = 3_000;
/** An answer to a ping that takes longer, in ms, is slow. */
const SLOW_PING_MS = 500;
/** The time in which all answers of a member have to be slow to make it slow, in ms. */
const SLOW_LIFE_MS = 5_000;
/** Time between the two refused connections, in ms. */
export const REFUSED_AGAIN_MS = 200;
/**
 * A life that follows one of the same process that was ended for its refused connections is not ended for them in
 * its first time, in ms.
 */
const SPARED_MS = 600_000;

export interface LifeWatch {
  readonly row: LifeRow;
  readonly firstSeenMs: number;
  /** Reads without a change, and the time of the first of them. No read: the watch begins with the next one. */
  readonly reads: number;
  readonly unchangedSinceMs: number;
  readonly lastReadMs: number;
  /** The time of the last answer to a ping. */
  readonly answeredAtMs: number;
  /** The time of the first slow answer since the last fast one. */
  readonly slowSinceMs: number | undefined;
  /** The time of the first refused connection since the last accepted one; `isRefused`: a second one followed. */
  readonly refusedAtMs: number | undefined;
  readonly isRefused: boolean;
}

export type Standing = 'live' | 'slow' | 'silent' | 'ended';

/** The standing of a life. Only a `live` one gets new sessions, programs, chunks of limits and optional forwards. */
export function standingOf(
  { row, answeredAtMs, slowSinceMs }: LifeWatch,
  atMs: number,
  process?: SeenProcess,
): Standing {
  if (row.end !== undefined) return 'ended';
  if (process === 'running') return 'live'; // it gets no pings
  if (atMs - answeredAtMs >= SILENT_MS) return 'silent';
  return slowSinceMs !== undefined && atMs - slowSinceMs >= SLOW_LIFE_MS ? 'slow' : 'live';
}

/** The state of another process as the supervisor of this one sees it; the supervisor alone judges its life. Source: ADR 174. */
export type SeenProcess = 'running' | 'gone';

/** The processes by life, after a report of the supervisor. */
export function seenProcesses(
  {
    watches,
    supervised,
  }: {
    readonly watches: ReadonlyMap<string, LifeWatch>;
    readonly supervised: ReadonlyMap<string, SeenProcess>;
  },
  { running, gone }: { readonly running: readonly string[]; readonly gone?: string | undefined },
): ReadonlyMap<string, SeenProcess> {
  const seen = new Map([...supervised].filter(([life, process]) => process === 'gone' && watches.has(life)));
  for (const life of running) seen.set(life, 'running');
  if (gone !== undefined) seen.set(gone, 'gone');
  return seen;
}

/** A successful read of the row. */
export function watchAfterRead(watch: LifeWatch | undefined, row: LifeRow, atMs: number): LifeWatch {
  const begun = {
    row,
    firstSeenMs: watch?.firstSeenMs ?? atMs,
    reads: 1,
    unchangedSinceMs: atMs,
    lastReadMs: atMs,
    answeredAtMs: watch?.answeredAtMs ?? atMs,
    slowSinceMs: watch?.slowSinceMs,
    refusedAtMs: watch?.refusedAtMs,
    isRefused: watch?.isRefused ?? false,
  };
  if (watch === undefined || watch.reads === 0 || watch.row.counter !== row.counter) return begun;
  if (atMs - watch.lastReadMs > MAX_READ_GAP_MS) return begun;
  return { ...begun, reads: watch.reads + 1, unchangedSinceMs: watch.unchangedSinceMs };
}

/** The database of this node is away: time that passed says nothing about others. */
export function watchAgain(watch: LifeWatch): LifeWatch {
  return watch.reads === 0 ? watch : { ...watch, reads: 0 };
}

/** This node slept: it could not hear answers either. */
export function hearAgain(watch: LifeWatch, atMs: number): LifeWatch {
  return {
    ...watchAgain(watch),
    answeredAtMs: atMs,
    slowSinceMs: undefined,
    refusedAtMs: undefined,
    isRefused: false,
  };
}

/** The member answered a ping that was sent at `sentAtMs`. */
export function hearAnswer(watch: LifeWatch, sentAtMs: number, atMs: number): LifeWatch {
  const slowSinceMs = atMs - sentAtMs > SLOW_PING_MS ? (watch.slowSinceMs ?? atMs) : undefined;
  return { ...watch, answeredAtMs: atMs, slowSinceMs, refusedAtMs: undefined, isRefused: false };
}

/** The member refused or reset a connection. */
export function hearRefusal(watch: LifeWatch, atMs: number): LifeWatch {
  if (watch.refusedAtMs === undefined) return { ...watch, refusedAtMs: atMs };
  return { ...watch, isRefused: atMs - watch.refusedAtMs >= REFUSED_AGAIN_MS };
}

/**
 * Forgets the refusals when another member reached the life, or the attempt to end it hit nothing: they count from the beginning.
 */
export function forgetRefusals(watch: LifeWatch): LifeWatch {
  return { ...watch, refusedAtMs: undefined, isRefused: false };
}

/** True for a member that may be ended for refused connections, if a third member confirms them. */
export function isRefusing({ row, firstSeenMs, isRefused }: LifeWatch, atMs: number): boolean {
  const isSpared = row.followsRefusal && atMs - firstSeenMs < SPARED_MS;
  return row.end === undefined && isRefused && !isSpared;
}

/**
 * The end that a read just showed to be due; undefined while there is none. `ownLives`: the lives of this process that the member
 * needs, if it sees them. `unseenMs`: see LongTimes. `process`: its state as its supervisor sees it; undefined for one of another
 * supervisor, or without one.
 */
export function dueEnd(
  watch: LifeWatch,
  ownLives: readonly string[],
  unseenMs: number,
  process?: SeenProcess,
): LifeEnd | undefined {
  const { row, reads, lastReadMs, unchangedSinceMs } = watch;
  if (row.end?.frees === 'all') return undefined;
  if (process !== undefined && row.end === undefined)
    return process === 'gone' ? { cause: 'restarted', frees: 'sessions' } : undefined;
  const unchangedMs = lastReadMs - unchangedSinceMs;
  if (reads < MIN_READS || unchangedMs < EXPIRY_MS) return undefined;
  // The member needs the opinion of each life that it sees, and these give none: its lease has ended. So has the lease of a
  // process that is gone.
  const isSeen = process === 'gone' || row.sees.some((life) => ownLives.includes(life));
  const frees = isSeen || unchangedMs >= unseenMs ? 'all' : 'sessions';
  if (row.end !== undefined && frees === 'sessions') return undefined;
  return { cause: row.end?.cause ?? 'expired', frees };
}
