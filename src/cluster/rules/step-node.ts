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
  seenProcesses,
  watchAfterRead,
  watchAgain,
} from './life-watch.ts';
import {
  type NodeAction,
  type NodeEvent,
  type NodeState,
  type NodeTransition,
  seenBy,
  standingIn,
} from './node-state.ts';
import {
  answerChecked,
  answerQuestion,
  confirmLife,
  endLife,
  failDatabase,
  hasLease,
  hearOpinion,
  type LifeAction,
  type LifeSurroundings,
  neededOf,
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
import { READ_MS } from './times.ts';

/** Interval of pings to each member, in ms. */
const PING_MS = 1_000;
/** A gap between two ticks, in ms, after which this node slept. */
const SLEPT_MS = 2_000;
/** The most members that are asked to confirm a refusal. */
const MAX_THIRDS = 3;

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
