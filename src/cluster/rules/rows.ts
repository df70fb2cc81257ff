// The rows that members share, as the rules see them: lives and programs. Every change of a row is a conditional update that
// names the life, and the counter or generation, that was read. Source: ADR 146.

import type { LifeEnd } from '../../domain/nodes/life.ts';

/** One start of a node. Its row stays when the life has ended. */
export interface LifeRow {
  readonly life: string;
  readonly node: string;
  /** Each heartbeat adds one. */
  readonly counter: number;
  /** The lives that this member had to reckon with at its last read before the heartbeat, without its own. */
  readonly sees: readonly string[];
  readonly isDraining: boolean;
  /** True for a node that runs no programs, and only uses those of others. Default: false. */
  readonly takesNoPrograms?: boolean;
  /**
   * True when a life before, of the same process, was ended because its connections were refused: by its network, not
   * by its end. Source: ADR 275.
   */
  readonly followsRefusal: boolean;
  readonly end: LifeEnd | undefined;
}

/** The lease of one program that any member may run. */
export interface ProgramRow {
  readonly program: string;
  /** The holder; undefined while there is none. */
  readonly life: string | undefined;
  /** Each lease adds one, so that a late update for an earlier lease changes nothing. */
  readonly generation: number;
  /** Ids of the nodes that could not start it. */
  readonly failedOn: readonly string[];
}

/** The store contents that a member reads at once: programs before lives, so that the life of a holder is there. */
export interface SharedRows {
  readonly programs: readonly ProgramRow[];
  readonly lives: readonly LifeRow[];
}

/** A moment by two clocks of this machine: their difference shows whether the machine was suspended. */
export interface Moment {
  /** The time by the monotonic clock. */
  readonly atMs: number;
  /** The time since the start of the machine, that of suspensions included. */
  readonly uptimeMs: number;
}

/** The map with each value changed. */
export function mapped<Key, Value>(
  map: ReadonlyMap<Key, Value>,
  change: (value: Value) => Value,
): ReadonlyMap<Key, Value> {
  return new Map([...map].map(([key, value]) => [key, change(value)]));
}
