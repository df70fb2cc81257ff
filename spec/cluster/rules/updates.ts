// The conditional updates, as functions: the stored row and what the update names, to the new row, or undefined where the update changes
// nothing. Each names what was read, so that an update that comes late, or twice, changes nothing. Source: ADR 146.

import type { LifeRow, ProgramRow } from '../../../src/cluster/rules/rows.ts';
import type { LifeEnd } from '../../../src/domain/nodes/life.ts';

/** What the row of a session says about its holder. */
export interface SessionRow {
  readonly session: string;
  /** The holder; undefined when it released the session. */
  readonly life: string | undefined;
  /** Each claim adds one. */
  readonly generation: number;
  /** A call that is not safe to repeat may have left for a backend. */
  readonly isUnsafe: boolean;
}

/** A heartbeat. An ended life has none. */
export function beaten(
  stored: LifeRow | undefined,
  { sees, isDraining }: Pick<LifeRow, 'sees' | 'isDraining'>,
): LifeRow | undefined {
  if (stored === undefined || stored.end !== undefined) return undefined;
  return { ...stored, counter: stored.counter + 1, sees, isDraining };
}

/** The end of a life, or the end of its programs after that of its sessions. `counter`: as read; undefined for the own life. */
export function ended(
  stored: LifeRow | undefined,
  counter: number | undefined,
  end: LifeEnd,
): LifeRow | undefined {
  if (stored === undefined || stored.end?.frees === 'all') return undefined;
  if (counter !== undefined && stored.counter !== counter) return undefined;
  if (stored.end !== undefined && end.frees === 'sessions') return undefined;
  return { ...stored, end };
}

/** The program leased by `life`, if the row is still the free one of `generation`. */
export function taken(
  stored: ProgramRow | undefined,
  generation: number,
  life: string,
): ProgramRow | undefined {
  if (stored?.generation !== generation) return undefined;
  return { ...stored, life, generation: generation + 1 };
}

/** The program without a holder. The generation stays: the next lease adds one. `failedOn`: the node that cannot start it. */
export function released(
  stored: ProgramRow | undefined,
  generation: number,
  life: string,
  failedOn: string | undefined,
): ProgramRow | undefined {
  if (stored?.generation !== generation || stored.life !== life) return undefined;
  const { failedOn: before } = stored;
  const marks = failedOn === undefined || before.includes(failedOn) ? before : [...before, failedOn];
  return { ...stored, life: undefined, failedOn: marks };
}

/** A claim of a session by `life`. The mark `unsafe` is part of what was read: a call may have left since. */
export function claimed(
  stored: SessionRow | undefined,
  read: SessionRow,
  life: string,
): SessionRow | undefined {
  if (stored === undefined || stored.life !== read.life) return undefined;
  if (stored.generation !== read.generation || stored.isUnsafe !== read.isUnsafe) return undefined;
  return { ...stored, life, generation: read.generation + 1 };
}

/** The mark `unsafe`, set by `life`. If it changes nothing, another life owns the session: the call is forwarded, not sent. */
export function fenced(
  stored: SessionRow | undefined,
  generation: number,
  life: string,
): SessionRow | undefined {
  if (stored?.generation !== generation || stored.life !== life) return undefined;
  return { ...stored, isUnsafe: true };
}
