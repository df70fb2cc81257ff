// The rules of one node: its own life, its watches over the others, and the leases of programs, as one function
// (state, event) -> (state, actions). No I/O and no clock: events carry times, and new lives. Source: ADR 146.

import type { LifeEnd } from '../../domain/nodes/life.ts';
import {
  dueEnd,
  forgetRefusals,
  hearAgain,
  hearAnswer,
  hearRefusal,
  isRefusing,
  type LifeWatch,
  REFUSED_AGAIN_MS,
  type SeenProcess,
  type Standing,
  seenProcesses,
  standingOf,
  watchAfterRead,
  watchAgain,
} from './life-watch.ts';
import {
  answerChecked,
  answerQuestion,
  confirmLife,
  endLife,
  failDatabase,
  hasLease,
  hearOpinion,
  isCutOff,
  type LifeAction,
  type LifeSurroundings,
  neededOf,
  newOwnLife,
  nextLife,
  type OwnLife,
  stopLife,
  type Transition,
  tickLife,
} from './own-life.ts';
import {
  countAgain,
  hearGone,
  hearReleased,
  hearStarted,
  hearTaken,
  killed,
  type LeaseSurroundings,
  type ProgramAction,
  type ProgramLease,
  readProgram,
  tickProgram,
} from './program-leases.ts';
import { type LifeRow, type Moment, mapped, type SharedRows } from './rows.ts';
import { LONG_TIMES, type LongTimes, READ_MS } from './times.ts';

/** Interval of pings to each member, in ms. */
const PING_MS = 1_000;
/** A gap between two ticks, in ms, after which this node slept. */
const SLEPT_MS = 2_000;
/** The most members that are asked to confirm a refusal. */
const MAX_THIRDS = 3;

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

type NodeTransition = Transition<NodeState, NodeAction>;

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
function standingIn({ tickedAtMs, supervised }: NodeState, watch: LifeWatch): Standing {
  return standingOf(watch, tickedAtMs, supervised.get(watch.row.life));
}

/** Whether this node opens no sessions, see own-life.ts. */
export function isAlone(state: NodeState, atMs: number): boolean {
  const isThere = ({ row, isRefused }: LifeWatch) => row.end === undefined && !isRefused;
  const lives = seenBy(state).filter((life) =>
    [state.watches.get(life)].some((watch) => watch && isThere(watch)),
  );
  return isCutOff(state.own, atMs, lives);
}

/** The state after an event, and the actions that follow. Pure: `now` is the only time. */
export function stepNode(state: NodeState, event: NodeEvent, now: Moment): NodeTransition {
  switch (event.type) {
    case 'tick':
      return tick(state, now);
    case 'confirmed':
      return ofLife(state, confirmLife(state.own, event.life, event.sent, now.atMs));
    case 'heartbeatMissed':
      return ofLife(state, endLife(state.own, event.life));
    case 'failed':
      return fail(state, event.sentAtMs, now);
    case 'read':
      return read(state, event.rows, now);
    case 'answered':
      return ofWatch(state, event.life, (watch) => hearAnswer(watch, event.sentAtMs, now.atMs));
    case 'refused':
      return refused(state, event.life, now.atMs);
    case 'thirdAnswered':
      if (!event.isRefused) return ofWatch(state, event.life, forgetRefusals);
      return endRefusing(state, event.life, now.atMs);
    case 'endNotWritten':
      return ofWatch(state, event.life, forgetRefusals);
    case 'processes':
      return { state: { ...state, supervised: seenProcesses(state, event) }, actions: [] };
    case 'opinion':
      return ofLife(state, hearOpinion(state.own, event, now.atMs, surroundings(state)));
    case 'asked':
      return ofLife(state, answerQuestion(state.own, event.from, event.sent));
    case 'databaseChecked':
      return checked(state, event, now);
    case 'taken':
      return ofProgram(state, event.program, (lease) =>
        hearTaken(lease, event, leaseSurroundings(state, now.atMs), now.atMs),
      );
    case 'released':
      return ofProgram(state, event.program, (lease) => hearReleased(lease, event.isReleased));
    case 'started':
      return ofProgram(state, event.program, (lease) => hearStarted(lease, event.start));
    case 'programGone':
      return ofProgram(state, event.program, (lease) =>
        hearGone(lease, event.start, event.isRefused, leaseSurroundings(state, now.atMs)),
      );
    case 'renewed':
      return renewed(state, event.life, now);
    case 'formerLifeGone':
      return former(state, event.life, event.isCleared);
    case 'drain':
      return { state: { ...state, own: { ...state.own, isDraining: event.isDraining } }, actions: [] };
    case 'stop':
      return ofLife(state, stopLife(state.own));
  }
}

function tick(before: NodeState, now: Moment): NodeTransition {
  const slept = now.atMs - before.tickedAtMs > SLEPT_MS;
  const woken: NodeState = slept
    ? {
        ...before,
        watches: mapped(before.watches, (watch) => hearAgain(watch, now.atMs)),
        programs: mapped(before.programs, countAgain),
      }
    : before;
  const lived = ofLife({ ...woken, tickedAtMs: now.atMs }, tickLife(woken.own, now, surroundings(woken)));
  let { state } = lived;
  const actions = [...lived.actions];
  if (state.own.stage === 'stopped') return { state, actions };
  if (now.atMs - state.own.readAtMs >= READ_MS) {
    state = { ...state, own: { ...state.own, readAtMs: now.atMs } };
    actions.push({ type: 'read' });
  }
  if (now.atMs - state.pingedAtMs >= PING_MS) {
    state = { ...state, pingedAtMs: now.atMs };
    for (const [life, { row }] of state.watches)
      if (row.end === undefined && !state.supervised.has(life))
        actions.push({ type: 'ping', life, afterMs: 0 });
  }
  if (state.own.stage === 'ended' && [...state.programs.values()].every(({ phase }) => isIdle(phase)))
    actions.push({ type: 'renew' });
  const around = leaseSurroundings(state, now.atMs);
  const programs = new Map<string, ProgramLease>();
  for (const [program, lease] of state.programs) {
    const step = tickProgram(lease, around, now.atMs);
    programs.set(program, step.state);
    actions.push(...step.actions);
  }
  return { state: { ...state, programs }, actions };
}

function read(before: NodeState, rows: SharedRows, now: Moment): NodeTransition {
  const { own } = before;
  const actions: NodeAction[] = [];
  const watches = new Map<string, LifeWatch>();
  const needed = neededOf(own, rows.lives);
  for (const row of rows.lives) {
    if (row.life === own.life) continue;
    const watch = watchAfterRead(before.watches.get(row.life), row, now.atMs);
    watches.set(row.life, watch);
    const end = own.former.includes(row.life)
      ? clearedEnd(row)
      : dueEnd(watch, needed, before.times.unseenMs, before.supervised.get(row.life));
    // A node that has not joined ends only earlier lives of its own.
    if (end && (own.stage === 'living' || row.node === own.node))
      actions.push({ type: 'end', life: row.life, counter: row.counter, end });
  }
  const ownRow = rows.lives.find(({ life }) => life === own.life);
  const next = { ...before, watches, hasRead: true, own: { ...own, isDatabaseAway: false } };
  if (ownRow?.end !== undefined) {
    const ended = ofLife(next, endLife(next.own, own.life));
    return { state: ended.state, actions: [...actions, ...ended.actions] };
  }
  const around = leaseSurroundings(next, now.atMs);
  const programs = new Map<string, ProgramLease>();
  for (const row of rows.programs) {
    const step = readProgram(before.programs.get(row.program), row, around, now.atMs);
    programs.set(row.program, step.state);
    actions.push(...step.actions);
  }
  for (const [program, lease] of before.programs) {
    if (programs.has(program) || isIdle(lease.phase)) continue;
    programs.set(program, killed(lease));
    // The program is not registered any more.
    if (lease.phase !== 'killing') actions.push({ type: 'killProgram', program });
  }
  return { state: { ...next, programs }, actions };
}

function refused(state: NodeState, life: string, atMs: number): NodeTransition {
  if (state.supervised.has(life)) return { state, actions: [] };
  const { state: heard } = ofWatch(state, life, (watch) => hearRefusal(watch, atMs));
  const watch = heard.watches.get(life);
  if (watch === undefined) return { state: heard, actions: [] };
  if (!watch.isRefused) return { state: heard, actions: [{ type: 'ping', life, afterMs: REFUSED_AGAIN_MS }] };
  if (!isRefusing(watch, atMs)) return { state: heard, actions: [] };
  const thirds = [...heard.watches]
    .filter(([other, { row }]) => other !== life && row.node !== watch.row.node)
    .filter(([, its]) => standingIn(heard, its) === 'live')
    .slice(0, MAX_THIRDS);
  if (thirds.length === 0) return endRefusing(heard, life, atMs);
  return { state: heard, actions: thirds.map(([third]) => ({ type: 'askThird', life, third })) };
}

function endRefusing(state: NodeState, life: string, atMs: number): NodeTransition {
  const watch = state.watches.get(life);
  if (watch === undefined || !isRefusing(watch, atMs) || state.own.stage !== 'living')
    return { state, actions: [] };
  const end: LifeEnd = { cause: 'refused', frees: 'sessions' };
  return { state, actions: [{ type: 'end', life, counter: watch.row.counter, end }] };
}

function former(state: NodeState, life: string, isCleared: boolean): NodeTransition {
  const row = state.watches.get(life)?.row;
  if (row === undefined || row.end?.frees === 'all' || (row.end !== undefined && !isCleared))
    return { state, actions: [] };
  const end: LifeEnd = { cause: row.end?.cause ?? 'restarted', frees: isCleared ? 'all' : 'sessions' };
  return { state, actions: [{ type: 'end', life, counter: row.counter, end }] };
}

/** Begins the next life; its row is inserted only after a read that shows the old row as ended. */
function renewed(state: NodeState, life: string, now: Moment): NodeTransition {
  if (state.own.stage !== 'ended') return { state, actions: [] };
  return { state: { ...state, hasRead: false, own: nextLife(state.own, life, now) }, actions: [] };
}

/** The end of an earlier life of this process, whose programs are gone. */
function clearedEnd(row: LifeRow): LifeEnd | undefined {
  return row.end?.frees === 'sessions' ? { cause: row.end.cause, frees: 'all' } : undefined;
}

function fail(state: NodeState, sentAtMs: number, now: Moment): NodeTransition {
  const watches = mapped(state.watches, watchAgain);
  const programs = mapped(state.programs, countAgain);
  return ofLife({ ...state, watches, programs }, failDatabase(state.own, sentAtMs, now, surroundings(state)));
}

function checked(
  state: NodeState,
  { from, sent, isAnswered }: Extract<NodeEvent, { type: 'databaseChecked' }>,
  now: Moment,
): NodeTransition {
  const known = isAnswered
    ? { state: { ...state, own: { ...state.own, isDatabaseAway: false } }, actions: [] }
    : fail(state, now.atMs, now);
  const said = ofLife(known.state, answerChecked(known.state.own, from, sent));
  return { state: said.state, actions: [...known.actions, ...said.actions] };
}

function surroundings(state: NodeState): LifeSurroundings {
  const { own, watches, hasRead, times } = state;
  const earlier = [...watches.values()].map(({ row }) => row).filter(({ node }) => node === own.node);
  return {
    mayJoin: hasRead && earlier.every(({ end }) => end !== undefined),
    followsRefusal: earlier.some(({ life, end }) => own.former.includes(life) && end?.cause === 'refused'),
    sees: seenBy(state),
    keptMs: times.keptMs,
  };
}

/**
 * The lives whose opinion counts while the database is away: all that may run programs. They do not include lives of this node,
 * because this node keeps or has ended their programs, nor supervised lives, which take no programs of a running process.
 */
function seenBy({ own, watches, supervised }: NodeState): string[] {
  const lives: string[] = [];
  for (const [life, { row }] of watches)
    if (row.end?.frees !== 'all' && row.node !== own.node && !supervised.has(life)) lives.push(life);
  return lives;
}

function leaseSurroundings(state: NodeState, atMs: number): LeaseSurroundings {
  const { own, watches } = state;
  const live = [...watches.values()].filter((watch) => standingIn(state, watch) === 'live');
  const ready = [own, ...live.map(({ row }) => row)].filter((one) => !one.isDraining && !one.takesNoPrograms);
  return {
    node: own.node,
    life: own.life,
    hasLease: hasLease(own, atMs),
    isDraining: own.isDraining,
    joinedAtMs: own.joinedAtMs,
    ready: ready.map(({ node }) => node),
    isFree: (holder) => {
      const row = watches.get(holder)?.row;
      if (row?.end?.frees !== 'all') return 'no';
      return row.node === own.node ? 'ours' : 'yes';
    },
  };
}

function ofLife(state: NodeState, { state: own, actions }: Transition<OwnLife, LifeAction>): NodeTransition {
  const kills = actions.some(({ type }) => type === 'killPrograms');
  const programs = kills ? mapped(state.programs, killed) : state.programs;
  return { state: { ...state, own, programs }, actions };
}

function ofWatch(state: NodeState, life: string, change: (watch: LifeWatch) => LifeWatch): NodeTransition {
  const watch = state.watches.get(life);
  if (watch === undefined) return { state, actions: [] };
  return { state: { ...state, watches: new Map(state.watches).set(life, change(watch)) }, actions: [] };
}

function ofProgram(
  state: NodeState,
  program: string,
  change: (lease: ProgramLease) => Transition<ProgramLease, ProgramAction>,
): NodeTransition {
  const lease = state.programs.get(program);
  if (lease === undefined) return { state, actions: [] };
  const { state: next, actions } = change(lease);
  return { state: { ...state, programs: new Map(state.programs).set(program, next) }, actions };
}

/** True when no process group exists. */
function isIdle(phase: ProgramLease['phase']): boolean {
  return phase === 'none' || phase === 'taking' || phase === 'releasing';
}
