// The life of this node: heartbeats, the lease that they confirm, the opinion of the others while the database is
// away, the end of the life and the next one. It does not decide which programs run (program-leases.ts). Source:
// ADR 146.

import type { LifeRow, Moment } from './rows.ts';
import { HEARTBEAT_MS, LEASE_MS, SUSPENDED_MS } from './times.ts';

/** Interval of questions to the others while the database is away, in ms. */
const ASK_MS = 2_000;

export interface OwnLife {
  readonly node: string;
  readonly life: string;
  /** Earlier lives of this process: no member speaks for them any more. */
  readonly former: readonly string[];
  /** `joining`: the row is not confirmed. `ended`: the programs of the ended life are being killed. `stopped`: for ever. */
  readonly stage: 'joining' | 'living' | 'ended' | 'stopped';
  readonly isDraining: boolean;
  /** True for a node that runs no programs. */
  readonly takesNoPrograms: boolean;
  readonly joinedAtMs: number;
  readonly heartbeatAtMs: number;
  readonly readAtMs: number;
  readonly askedAtMs: number;
  /** The time at which the last heartbeat that the database confirmed was sent. */
  readonly confirmedAtMs: number;
  /**
   * The time until which other nodes have certainly not ended this life: the latest of the sendings of
   * - the last operation that the database confirmed,
   * - the last one that failed while the life was not in doubt, or had no other nodes,
   * - the last question to which all others answered that the database is away.
   */
  readonly notEndedAtMs: number;
  /**
   * The start of the lease, which ends LEASE_MS later: the sending at `confirmedAtMs`, or of a question whose answers confirmed
   * it.
   */
  readonly leaseFrom: Moment;
  readonly leaseUntilMs: number;
  /** True when the lease has ended, and its programs were killed. */
  readonly isLapsed: boolean;
  /** True when the last operation failed: the answer to a member that asks. */
  readonly isDatabaseAway: boolean;
  /** The time of the question to each life that last said that the database is away. */
  readonly opinions: ReadonlyMap<string, Moment>;
}

export type LifeAction =
  /** Insert the row; one that exists counts as inserted. */
  | { readonly type: 'join'; readonly row: LifeRow; readonly sent: Moment }
  /** Add one to the counter of the row of this life, if it has not ended. */
  | {
      readonly type: 'heartbeat';
      readonly life: string;
      readonly sees: readonly string[];
      readonly isDraining: boolean;
      readonly sent: Moment;
    }
  /** Ask this life whether its database answers. */
  | { readonly type: 'ask'; readonly life: string; readonly sent: Moment }
  /** Tell a life that asked whether the database answers this node. */
  | { readonly type: 'say'; readonly to: string; readonly isAway: boolean; readonly sent: Moment }
  /** Ask the database something small, then answer. */
  | { readonly type: 'check'; readonly to: string; readonly sent: Moment }
  /** Tell the reaper when to kill, by the monotonic clock of the machine. It starts no program afterwards. */
  | { readonly type: 'lease'; readonly untilMs: number }
  /** SIGKILL for the groups of all `any` programs, without steps. */
  | { readonly type: 'killPrograms' }
  /** Forget all sessions, without an answer to their clients. */
  | { readonly type: 'dropSessions' }
  /** End the own life; the counter does not matter. */
  | { readonly type: 'stop'; readonly life: string };

/** The effect of an event: the next state, and the actions of the node. */
export interface Transition<State, Action> {
  readonly state: State;
  readonly actions: readonly Action[];
}

type LifeTransition = Transition<OwnLife, LifeAction>;

/** The state of a process that starts. */
export function newOwnLife(node: string, life: string, now: Moment, takesNoPrograms = false): OwnLife {
  const never = Number.NEGATIVE_INFINITY;
  return {
    node,
    life,
    former: [],
    stage: 'joining',
    isDraining: false,
    takesNoPrograms,
    joinedAtMs: Number.POSITIVE_INFINITY,
    heartbeatAtMs: never,
    readAtMs: never,
    askedAtMs: never,
    confirmedAtMs: never,
    notEndedAtMs: never,
    leaseFrom: now,
    leaseUntilMs: never,
    isLapsed: true,
    isDatabaseAway: false,
    opinions: new Map(),
  };
}

/** True while programs may run: until the end of the lease. */
export function hasLease(own: OwnLife, atMs: number): boolean {
  return own.stage === 'living' && atMs < own.leaseUntilMs;
}

/**
 * True when others may have ended this life: for the time of a lease no heartbeat was confirmed, nor did one fail.
 * The node was frozen, and asks the database before it serves anything as this life. If that fails, it goes on only if the
 * database is away for all others, too.
 */
export function isInDoubt({ stage, notEndedAtMs }: OwnLife, atMs: number): boolean {
  if (stage === 'living') return atMs - notEndedAtMs >= LEASE_MS;
  return stage !== 'stopped';
}

/**
 * True when this node alone may have lost the database: its lease is over, and not all others say that they have lost
 * it, too. They may end this life, and no row says what it opens now. `sees`: the lives whose opinion counts.
 */
export function isCutOff(own: OwnLife, atMs: number, sees: readonly string[]): boolean {
  const { stage, confirmedAtMs, opinions } = own;
  if (stage !== 'living' || atMs - confirmedAtMs < LEASE_MS) return false;
  return sees.some((life) => atMs - (opinions.get(life)?.atMs ?? Number.NEGATIVE_INFINITY) >= LEASE_MS);
}

export interface LifeSurroundings {
  /** True when no other life of this node goes on. */
  readonly mayJoin: boolean;
  /** True when an earlier life of this process was ended because its connections were refused. */
  readonly followsRefusal: boolean;
  /** The lives whose opinion counts here. */
  readonly sees: readonly string[];
  /** The opinion of others keeps the lease at most this long, in ms (LongTimes). */
  readonly keptMs: number;
}

/** What time does to the own life: it joins, sends heartbeats, asks the others, and loses its programs with its lease. */
export function tickLife(own: OwnLife, now: Moment, around: LifeSurroundings): LifeTransition {
  const { mayJoin, followsRefusal, sees } = around;
  if (own.stage === 'joining') {
    if (!mayJoin || now.atMs - own.heartbeatAtMs < HEARTBEAT_MS) return step(own);
    const { life, node, isDraining, takesNoPrograms } = own;
    const row = { life, node, counter: 0, sees, isDraining, takesNoPrograms, followsRefusal, end: undefined };
    return step({ ...own, heartbeatAtMs: now.atMs }, { type: 'join', row, sent: now });
  }
  if (own.stage !== 'living') return step(own);
  const actions: LifeAction[] = [];
  let next = own;
  if (!next.isLapsed && (now.atMs >= next.leaseUntilMs || wasSuspended(next, now))) {
    next = { ...next, isLapsed: true, leaseUntilMs: Number.NEGATIVE_INFINITY };
    actions.push({ type: 'killPrograms' });
  }
  if (now.atMs - next.heartbeatAtMs >= HEARTBEAT_MS) {
    next = { ...next, heartbeatAtMs: now.atMs };
    actions.push({ type: 'heartbeat', life: next.life, sees, isDraining: next.isDraining, sent: now });
  }
  const asked = askOthers(next, now, around);
  return step(asked.state, ...actions, ...asked.actions);
}

/**
 * Asks the others while the database is away: their opinion confirms the lease. Without others no node could take the programs.
 * The opinion does not bring back a lease that is over, but says whether this node is cut off alone.
 */
function askOthers(own: OwnLife, now: Moment, { sees, keptMs }: LifeSurroundings): LifeTransition {
  const { stage, isDatabaseAway, askedAtMs } = own;
  if (!isDatabaseAway || stage !== 'living' || now.atMs - askedAtMs < ASK_MS) return step(own);
  const asked = { ...own, askedAtMs: now.atMs };
  if (sees.length === 0) return keepLease(asked, now, now.atMs, keptMs);
  return step(asked, ...sees.map((life): LifeAction => ({ type: 'ask', life, sent: now })));
}

/** The database has confirmed the life: its row was made, or a heartbeat has added one to its counter. */
export function confirmLife(own: OwnLife, life: string, sent: Moment, atMs: number): LifeTransition {
  if (life !== own.life || (own.stage !== 'joining' && own.stage !== 'living')) return step(own);
  const living: OwnLife = {
    ...own,
    stage: 'living',
    joinedAtMs: own.stage === 'joining' ? atMs : own.joinedAtMs,
    confirmedAtMs: Math.max(own.confirmedAtMs, sent.atMs),
    notEndedAtMs: Math.max(own.notEndedAtMs, sent.atMs),
    isDatabaseAway: false,
  };
  return renewLease(living, sent, atMs);
}

/**
 * Takes the failure of an operation, or of its answer to arrive in time. An operation sent before a freeze says nothing about the
 * time after. An unconfirmed operation of a life that begins or is in doubt is sent again with the next tick: requests wait for
 * it.
 */
export function failDatabase(
  own: OwnLife,
  sentAtMs: number,
  now: Moment,
  around: LifeSurroundings,
): LifeTransition {
  const isUncertain = isInDoubt(own, now.atMs);
  const mayBeEnded = isUncertain && around.sees.length > 0;
  const notEndedAtMs = mayBeEnded ? own.notEndedAtMs : Math.max(own.notEndedAtMs, sentAtMs);
  const heartbeatAtMs = isUncertain ? Number.NEGATIVE_INFINITY : own.heartbeatAtMs;
  return askOthers({ ...own, notEndedAtMs, heartbeatAtMs, isDatabaseAway: true }, now, around);
}

/**
 * A member asks whether the database is away. Only an operation that failed is a reason to say so, because from
 * then on this node ends no life before it has watched again for EXPIRY_MS.
 */
export function answerQuestion(own: OwnLife, to: string, sent: Moment): LifeTransition {
  if (own.stage !== 'living') return step(own);
  return step(
    own,
    own.isDatabaseAway ? { type: 'say', to, isAway: true, sent } : { type: 'check', to, sent },
  );
}

/** The answer after a check, which failed or not. */
export function answerChecked(own: OwnLife, to: string, sent: Moment): LifeTransition {
  return step(own, { type: 'say', to, isAway: own.isDatabaseAway, sent });
}

/** Takes the opinion of a member, which says whether its database is away. `sees`: all members whose opinion counts. */
export function hearOpinion(
  own: OwnLife,
  opinion: { readonly life: string; readonly isAway: boolean; readonly sent: Moment },
  atMs: number,
  { sees, keptMs }: Pick<LifeSurroundings, 'sees' | 'keptMs'>,
): LifeTransition {
  const opinions = new Map(own.opinions);
  if (opinion.isAway) opinions.set(opinion.life, opinion.sent);
  else opinions.delete(opinion.life);
  const heard = { ...own, opinions };
  const asked = sees.map((life) => opinions.get(life));
  let oldest: Moment | undefined;
  for (const moment of asked) {
    if (moment === undefined) return step(heard);
    if (oldest === undefined || moment.atMs < oldest.atMs) oldest = moment;
  }
  if (oldest === undefined) return step(heard);
  return keepLease({ ...heard, notEndedAtMs: Math.max(own.notEndedAtMs, oldest.atMs) }, oldest, atMs, keptMs);
}

/** A conditional update that names this life found it ended. */
export function endLife(own: OwnLife, life: string): LifeTransition {
  if (life !== own.life || own.stage === 'ended' || own.stage === 'stopped') return step(own);
  return step(
    { ...own, stage: 'ended', leaseUntilMs: Number.NEGATIVE_INFINITY, isLapsed: true },
    { type: 'dropSessions' },
    { type: 'killPrograms' },
  );
}

/** Begins the next life: no group of the programs of the ended life exists any more, and the node goes on as `life`. */
export function nextLife(own: OwnLife, life: string, now: Moment): OwnLife {
  const former = [...own.former, own.life];
  const { node, isDraining, takesNoPrograms } = own;
  return { ...newOwnLife(node, life, now, takesNoPrograms), former, isDraining };
}

/** Ends the life: its sessions are released and its programs gone. */
export function stopLife(own: OwnLife): LifeTransition {
  if (own.stage === 'stopped') return step(own);
  return step({ ...own, stage: 'stopped' }, { type: 'stop', life: own.life });
}

/**
 * The lives of this process whose opinion a member needs that sees them. A former life whose programs are free is not needed any
 * more: the member may have read that, though its own row does not say so yet.
 */
export function neededOf({ life, former }: OwnLife, rows: readonly LifeRow[]): readonly string[] {
  const isFreed = (one: string) => rows.some((row) => row.life === one && row.end?.frees === 'all');
  const isThere = (one: string) => rows.some((row) => row.life === one);
  return [life, ...former.filter(isThere)].filter((one) => !isFreed(one));
}

/**
 * The opinion of all others counts as a confirmation. It keeps a lease and never brings back one that ended:
 * others may hold it then.
 */
function keepLease(own: OwnLife, asked: Moment, atMs: number, keptMs: number): LifeTransition {
  if (!hasLease(own, atMs) || asked.atMs > own.confirmedAtMs + keptMs) return step(own);
  return renewLease(own, asked, atMs);
}

function renewLease(own: OwnLife, leaseFrom: Moment, atMs: number): LifeTransition {
  const untilMs = leaseFrom.atMs + LEASE_MS;
  if (untilMs <= own.leaseUntilMs || untilMs <= atMs) return step(own);
  return step({ ...own, leaseFrom, leaseUntilMs: untilMs, isLapsed: false }, { type: 'lease', untilMs });
}

/** True after a suspension, whose time the monotonic clock does not count, but its uptime does. */
function wasSuspended({ leaseFrom }: OwnLife, now: Moment): boolean {
  return now.uptimeMs - leaseFrom.uptimeMs - (now.atMs - leaseFrom.atMs) > SUSPENDED_MS;
}

function step(state: OwnLife, ...actions: LifeAction[]): LifeTransition {
  return { state, actions };
}
