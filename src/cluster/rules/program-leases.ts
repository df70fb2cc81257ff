// The rules about programs that any member may run: when this node takes a lease, starts, stops and releases. It
// assumes that the reaper starts a program only before the end of the lease, and kills it then (own-life.ts says
// when). Source: ADR 146.

import { rendezvousOrder } from '../../domain/nodes/rendezvous.ts';
import type { Transition } from './own-life.ts';
import type { ProgramRow } from './rows.ts';

/** Wait of each further rank before it takes a free program, in ms. */
const RANK_MS = 1_000;
/** A node that joins others takes no program of theirs in its first time, in ms. */
const JOINED_MS = 15_000;
/** Failed starts in a row after which the program is released. */
const MAX_FAILED_STARTS = 3;
/**
 * The reads of an earlier generation after which the row counts: the database went back, as after a failover to an older copy.
 * The first one may have begun before an update that was answered already. Others wait until the holder has ended its program.
 */
const OLDER_READS = { holder: 2, others: 4 } as const;

export interface ProgramLease {
  readonly row: ProgramRow;
  /** The time at which this node first saw that no node holds this generation; undefined while one does. */
  readonly freeSinceMs: number | undefined;
  /**
   * `taking` and `releasing`: an update is under way. `starting`, `running`: a process group may exist. `killing`:
   * until none does. `stopping`: the same in steps, before the release.
   */
  readonly phase: 'none' | 'taking' | 'starting' | 'running' | 'killing' | 'stopping' | 'releasing';
  /** Number of the last start, which `started` and `gone` name: an answer about an earlier process group says nothing. */
  readonly start: number;
  /** Starts that failed one after the other. */
  readonly failedStarts: number;
  /** The generation whose release had no answer: the release may still take effect. */
  readonly doubtfulGeneration: number | undefined;
  /** The last reads, in a row, that had an earlier generation than `row`. */
  readonly olderReads: number;
}

export type ProgramAction =
  | {
      readonly type: 'take';
      readonly program: string;
      readonly generation: number;
      readonly life: string;
    }
  /** Starts the program through the reaper, which must know the group before the program runs. */
  | { readonly type: 'start'; readonly program: string; readonly start: number }
  /** Ends the program in steps; its calls wait as for a starting instance. */
  | { readonly type: 'stopProgram'; readonly program: string }
  | { readonly type: 'killProgram'; readonly program: string }
  | {
      readonly type: 'release';
      readonly program: string;
      readonly generation: number;
      readonly life: string;
      readonly failedOn: string | undefined;
    };

/** The state of the node and its members that the rules of programs need. */
export interface LeaseSurroundings {
  readonly node: string;
  readonly life: string;
  readonly hasLease: boolean;
  readonly isDraining: boolean;
  readonly joinedAtMs: number;
  /** Ids of the live members that may take a program, with this node if it may. */
  readonly ready: readonly string[];
  /** Whether the lease of this holder is free. `ours`: the holder was a life of this node. */
  readonly isFree: (holder: string) => 'no' | 'yes' | 'ours';
}

type LeaseTransition = Transition<ProgramLease, ProgramAction>;

/** The row as it was just read. */
export function readProgram(
  lease: ProgramLease | undefined,
  row: ProgramRow,
  view: LeaseSurroundings,
  atMs: number,
): LeaseTransition {
  const before: ProgramLease = lease ?? {
    row,
    freeSinceMs: undefined,
    phase: 'none',
    start: 0,
    failedStarts: 0,
    doubtfulGeneration: undefined,
    olderReads: 0,
  };
  const olderReads = row.generation < before.row.generation ? before.olderReads + 1 : 0;
  if (olderReads > 0 && olderReads < OLDER_READS[hasGroup(before) ? 'holder' : 'others'])
    return step({ ...before, olderReads });
  const isFree = row.life === undefined || view.isFree(row.life) !== 'no';
  const isSame = before.row.generation === row.generation && before.row.life === row.life;
  const freeSinceMs = isFree ? (isSame ? (before.freeSinceMs ?? atMs) : atMs) : undefined;
  const next = { ...before, row, freeSinceMs, olderReads: 0 };
  // There is a lease of a later generation, or none: the program here has no lease.
  if (row.life !== view.life && hasGroup(before)) return kill(next);
  return tickProgram(next, view, atMs);
}

/** The step that is due now: a lease, a start, a stop or a release. */
export function tickProgram(lease: ProgramLease, view: LeaseSurroundings, atMs: number): LeaseTransition {
  const { row, phase } = lease;
  const { program } = row;
  if (!view.hasLease) return step(lease);
  const isHeld = row.life === view.life;
  if (isHeld && view.isDraining && phase === 'running')
    return step({ ...lease, phase: 'stopping' }, { type: 'stopProgram', program });
  if (phase !== 'none') return step(lease);
  if (isHeld) {
    if (view.isDraining || mayGiveUp(lease, view)) return release(lease, view);
    if (lease.doubtfulGeneration === row.generation) return take(lease, view);
    const start = lease.start + 1;
    return step({ ...lease, phase: 'starting', start }, { type: 'start', program, start });
  }
  if (view.isDraining || !mayTake(lease, view, atMs)) return step(lease);
  return take({ ...lease, failedStarts: 0 }, view);
}

/** Takes the answer to `take`. `isOurs` is undefined when there was none in time: the next read tells. */
export function hearTaken(
  lease: ProgramLease,
  { generation, isOurs }: { readonly generation: number; readonly isOurs: boolean | undefined },
  view: LeaseSurroundings,
  atMs: number,
): LeaseTransition {
  if (lease.phase !== 'taking') return step(lease);
  const idle: ProgramLease = { ...lease, phase: 'none', freeSinceMs: undefined };
  if (!isOurs || lease.row.generation !== generation) return step(idle); // a read came first
  const row = { ...lease.row, life: view.life, generation: generation + 1 };
  return tickProgram({ ...idle, row }, view, atMs);
}

/** Takes the answer to `release`, also when there was none in time: then only a new lease is certain. */
export function hearReleased(lease: ProgramLease, isReleased: boolean): LeaseTransition {
  if (lease.phase !== 'releasing') return step(lease);
  const row = isReleased ? { ...lease.row, life: undefined } : lease.row;
  const doubtfulGeneration = isReleased ? undefined : row.generation;
  return step({ ...lease, row, phase: 'none', freeSinceMs: undefined, doubtfulGeneration });
}

/** Takes the news that the program answers. `start`: the number of its start; that of an earlier start changes nothing. */
export function hearStarted(lease: ProgramLease, start: number): LeaseTransition {
  const hasStarted = lease.phase === 'starting' && lease.start === start;
  return step(hasStarted ? { ...lease, phase: 'running', failedStarts: 0 } : lease);
}

/**
 * Takes the end of a start: no process of its group is left, or it never began. `isRefused`: true when the policy of this node
 * refused it, so that a repeat is useless, and another node takes the program if one may.
 */
export function hearGone(
  lease: ProgramLease,
  start: number,
  isRefused: boolean,
  view: LeaseSurroundings,
): LeaseTransition {
  if (!hasGroup(lease) || lease.start !== start) return step(lease);
  const failedStarts = isRefused
    ? MAX_FAILED_STARTS
    : lease.phase === 'starting' && view.hasLease
      ? lease.failedStarts + 1
      : lease.failedStarts;
  const idle: ProgramLease = { ...lease, phase: 'none', failedStarts };
  const isHeld = lease.row.life === view.life && view.hasLease;
  return isHeld && (lease.phase === 'stopping' || mayGiveUp(idle, view)) ? release(idle, view) : step(idle);
}

/** The lease of the node ended: the groups are being killed. */
export function killed(lease: ProgramLease): ProgramLease {
  return hasGroup(lease) ? { ...lease, phase: 'killing' } : lease;
}

/** Time that passed says nothing: this node slept, or its database was away. */
export function countAgain(lease: ProgramLease): ProgramLease {
  return lease.freeSinceMs === undefined ? lease : { ...lease, freeSinceMs: undefined };
}

/** True when a process group may exist on this machine. */
function hasGroup({ phase }: ProgramLease): boolean {
  return phase === 'starting' || phase === 'running' || phase === 'killing' || phase === 'stopping';
}

/** True for a program that failed often enough here, and that another node may be able to start. */
function mayGiveUp({ row, failedStarts }: ProgramLease, { node, ready }: LeaseSurroundings): boolean {
  if (failedStarts < MAX_FAILED_STARTS) return false;
  return ready.some((other) => other !== node && !row.failedOn.includes(other));
}

/** The ready nodes that have not failed to start it; all of them when each has: the needs of the program may be met again. */
function ableNodes({ failedOn }: ProgramRow, { ready }: LeaseSurroundings): readonly string[] {
  const able = ready.filter((node) => !failedOn.includes(node));
  return able.length > 0 ? able : ready;
}

function mayTake({ row, freeSinceMs }: ProgramLease, view: LeaseSurroundings, atMs: number): boolean {
  if (freeSinceMs === undefined) return false;
  const able = ableNodes(row, view);
  if (!able.includes(view.node)) return false;
  if (row.life !== undefined && view.isFree(row.life) === 'ours') return true;
  if (view.ready.length > 1 && atMs - view.joinedAtMs < JOINED_MS) return false;
  const rank = rendezvousOrder(row.program, able).indexOf(view.node);
  return atMs - freeSinceMs >= rank * RANK_MS;
}

function take(lease: ProgramLease, { life }: LeaseSurroundings): LeaseTransition {
  const { program, generation } = lease.row;
  return step({ ...lease, phase: 'taking' }, { type: 'take', program, generation, life });
}

function release(lease: ProgramLease, view: LeaseSurroundings): LeaseTransition {
  const { program, generation } = lease.row;
  const failedOn = lease.failedStarts >= MAX_FAILED_STARTS ? view.node : undefined;
  return step(
    { ...lease, phase: 'releasing' },
    { type: 'release', program, generation, life: view.life, failedOn },
  );
}

function kill(lease: ProgramLease): LeaseTransition {
  if (lease.phase === 'killing') return step(lease);
  return step({ ...lease, phase: 'killing' }, { type: 'killProgram', program: lease.row.program });
}

function step(lease: ProgramLease, ...actions: ProgramAction[]): LeaseTransition {
  return { state: lease, actions };
}
