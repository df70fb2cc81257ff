// What one node knows of all, the events by which that changes, and the actions that follow. step-node.ts has the rules.
// Source: ADR 146.

import type { LifeEnd } from '../../domain/nodes/life.ts';
import { type LifeWatch, type SeenProcess, type Standing, standingOf } from './life-watch.ts';
import { isCutOff, type LifeAction, newOwnLife, type OwnLife, type Transition } from './own-life.ts';
import type { ProgramAction, ProgramLease } from './program-leases.ts';
import type { Moment, SharedRows } from './rows.ts';
import { LONG_TIMES, type LongTimes } from './times.ts';

/** What one node knows of all, at its last event. Times are in ms of its own monotonic clock. */
export interface NodeState {
  readonly own: OwnLife;
  /** The watches by life, without the lives of this process. */
  readonly watches: ReadonlyMap<string, LifeWatch>;
  readonly programs: ReadonlyMap<string, ProgramLease>;
  /** Lives of other processes of this machine, which their supervisor alone judges. Source: ADR 174. */
  readonly supervised: ReadonlyMap<string, SeenProcess>;
  /** True once the rows were read in the present life. */
  readonly hasRead: boolean;
  readonly tickedAtMs: number;
  readonly pingedAtMs: number;
  readonly times: LongTimes;
}

export type NodeEvent =
  /** It comes at least twice a second. */
  | { readonly type: 'tick' }
  /** The row is inserted, or a heartbeat has added one to its counter. */
  | { readonly type: 'confirmed'; readonly life: string; readonly sent: Moment }
  /** A conditional update that names this life found no such row. */
  | { readonly type: 'heartbeatMissed'; readonly life: string }
  /** An operation of the database failed, or had no answer in time. Its late answer is dropped. */
  | { readonly type: 'failed'; readonly sentAtMs: number }
  /** Reads do not overlap. */
  | { readonly type: 'read'; readonly rows: SharedRows }
  /** The node of this life has answered a ping. */
  | { readonly type: 'answered'; readonly life: string; readonly sentAtMs: number }
  /** The machine of this life has refused the connection of a ping: the process is gone. */
  | { readonly type: 'refused'; readonly life: string }
  /** The answer of a third member about this life. */
  | { readonly type: 'thirdAnswered'; readonly life: string; readonly isRefused: boolean }
  /** The end of this life was not written: its row had changed meanwhile. */
  | { readonly type: 'endNotWritten'; readonly life: string }
  /** The lives of other processes that the supervisor of this one sees running, and a life whose process it saw end. */
  | { readonly type: 'processes'; readonly running: readonly string[]; readonly gone?: string | undefined }
  /** Another member says whether the database is away for it; `sent`: when it was asked, by the clocks of this node. */
  | { readonly type: 'opinion'; readonly life: string; readonly isAway: boolean; readonly sent: Moment }
  /** A member asks; `sent` is by its clocks and goes back with the answer. */
  | { readonly type: 'asked'; readonly from: string; readonly sent: Moment }
  /** The operation of `check` on the database has its answer, or has failed. */
  | {
      readonly type: 'databaseChecked';
      readonly from: string;
      readonly sent: Moment;
      readonly isAnswered: boolean;
    }
  /** The answer to `take`, and as `released` that to `release`: see program-leases.ts. */
  | {
      readonly type: 'taken';
      readonly program: string;
      readonly generation: number;
      readonly isOurs: boolean | undefined;
    }
  | { readonly type: 'released'; readonly program: string; readonly isReleased: boolean }
  /** A program answers; `start` is the number of its start. */
  | { readonly type: 'started'; readonly program: string; readonly start: number }
  /** The end of a start: see hearGone. */
  | {
      readonly type: 'programGone';
      readonly program: string;
      readonly start: number;
      readonly isRefused: boolean;
    }
  /** The answer to `renew`. */
  | { readonly type: 'renewed'; readonly life: string }
  /** An earlier process of this node is gone; `isCleared`: so are its process groups. Repeated with each read. */
  | { readonly type: 'formerLifeGone'; readonly life: string; readonly isCleared: boolean }
  | { readonly type: 'drain'; readonly isDraining: boolean }
  /** Sessions are released, programs gone. */
  | { readonly type: 'stop' };

export type NodeAction =
  | LifeAction
  | ProgramAction
  /** All lives and programs. */
  | { readonly type: 'read' }
  | { readonly type: 'end'; readonly life: string; readonly counter: number; readonly end: LifeEnd }
  | { readonly type: 'ping'; readonly life: string; readonly afterMs: number }
  /** Ask `third` whether `life` refuses its connections, too. */
  | { readonly type: 'askThird'; readonly life: string; readonly third: string }
  /** Draw a new life: no process group of the ended one exists. */
  | { readonly type: 'renew' };

export type NodeTransition = Transition<NodeState, NodeAction>;

interface NewNodeOptions {
  readonly times?: LongTimes;
  readonly takesNoPrograms?: boolean | undefined;
}

/** The state of a process that starts as `node`. */
export function newNode(
  node: string,
  life: string,
  now: Moment,
  { times = LONG_TIMES, takesNoPrograms = false }: NewNodeOptions = {},
): NodeState {
  const never = Number.NEGATIVE_INFINITY;
  return {
    own: newOwnLife(node, life, now, takesNoPrograms),
    watches: new Map(),
    programs: new Map(),
    supervised: new Map(),
    hasRead: false,
    tickedAtMs: now.atMs,
    pingedAtMs: never,
    times,
  };
}

/** The standing of each other life that has a row. */
export function standings(state: NodeState): ReadonlyMap<string, Standing> {
  return new Map([...state.watches].map(([life, watch]) => [life, standingIn(state, watch)]));
}

/**
 * The standing at the last tick: for a node that slept, missing answers are not silence, also before the next tick says that it
 * slept.
 */
export function standingIn({ tickedAtMs, supervised }: NodeState, watch: LifeWatch): Standing {
  return standingOf(watch, tickedAtMs, supervised.get(watch.row.life));
}

/** Whether this node opens no sessions, see own-life.ts. */
export function isAlone(state: NodeState, atMs: number): boolean {
  const isThere = ({ row, isRefused }: LifeWatch) => row.end === undefined && !isRefused;
  const lives = seenBy(state).filter((life) => {
    const watch = state.watches.get(life);
    return watch !== undefined && isThere(watch);
  });
  return isCutOff(state.own, atMs, lives);
}

/**
 * The lives whose opinion counts while the database is away: all that may run programs. They do not include lives of this node,
 * because this node keeps or has ended their programs, nor supervised lives, which take no programs of a running process.
 */
export function seenBy({ own, watches, supervised }: NodeState): string[] {
  const lives: string[] = [];
  for (const [life, { row }] of watches)
    if (row.end?.frees !== 'all' && row.node !== own.node && !supervised.has(life)) lives.push(life);
  return lives;
}
