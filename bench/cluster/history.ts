// What happened in one run, and the judgement about it: each call with its times at the client, each call that a backend carried out,
// each fault with its times, each process group of the shared program. Counters of the gateway are not asked.

import { hrtime } from 'node:process';
import { type HerdBars, type HerdHistory, judgeHerd } from './herd-verdicts.ts';
import { lostWithoutEnd, type Owners, rowOf, type SessionName } from './owners.ts';
import { none, seconds, type Verdict } from './verdict.ts';

/** Milliseconds of the monotonic clock that all processes of the machine share. */
export function nowMs(): number {
  return Number(hrtime.bigint()) / 1e6;
}

/** A line of the record of a backend; written before the answer. */
export interface CarriedOut {
  readonly token: string;
  readonly tool: string;
  readonly pid: number;
  readonly atMs: number;
}

/**
 * How a call ended: `answered` (with its own token), `unknown` (an error that says so, or a broken connection), `refused` (an error
 * that says that it was not delivered), `lost session` (404), `hung` (no answer within the patience of the client), `failed`
 * (anything else, also the answer of another call).
 */
export type Ending = 'answered' | 'unknown' | 'refused' | 'lost session' | 'hung' | 'failed';

export interface Call {
  readonly token: string;
  /** Of its client: a client that lost its session opens another. */
  readonly session: string;
  /** As the nodes name the session; undefined where there is none. */
  readonly name?: SessionName | undefined;
  readonly isUnsafe: boolean;
  /** Whether its session had sent an unsafe call before: it need not move. */
  readonly isAfterUnsafe: boolean;
  /** Its client cannot continue a stream: the session ends with it, and a call in flight then has no answer. */
  readonly endsWithStream?: boolean;
  readonly sentMs: number;
  readonly endedMs: number;
  readonly ending: Ending;
  /** For a person; empty when answered. */
  readonly reason: string;
}

/** The opening of a session that failed; it was tried again. */
export interface Opening {
  readonly sentMs: number;
  readonly endedMs: number;
  readonly reason: string;
}

/** One fault, from its first effect until the disturbed node has ended or goes on. */
export interface Disturbance {
  /** It cuts one node off from the database, which ends its life and moves its programs: until then sessions may be refused to be opened. */
  readonly isolates?: boolean;
  readonly what: string;
  readonly fromMs: number;
  readonly untilMs: number;
  /** When a node serves each session; later than `untilMs` if there is only one, and where nodes do not reach each other. */
  readonly servedMs: number;
  /** When the disturbed node is ready again. */
  readonly backMs: number;
  /** Until then sessions that may not move may be lost; default `untilMs`. Calls that were in flight at `untilMs` only are excused. */
  readonly lastsUntilMs?: number;
  /** Until `lastsUntilMs` calls may be refused: the node and the others do not agree on the owner of its sessions. */
  readonly mayRefuse?: boolean;
  /** The process of the program ends, which has the state of sessions after an unsafe call: those may be lost until `lastsUntilMs`. */
  readonly endsProgram?: boolean;
  /** No session may be lost for it: the node of each is live and reaches the database. */
  readonly endsNoLife?: boolean;
}

/** A process of the shared program, as sampled. */
export interface ProgramLife {
  readonly pid: number;
  readonly firstSeenMs: number;
  lastSeenMs: number;
}

export interface History extends HerdHistory {
  readonly calls: readonly Call[];
  readonly carriedOut: readonly CarriedOut[];
  readonly disturbances: readonly Disturbance[];
  readonly programs: readonly ProgramLife[];
  readonly failedOpenings: readonly Opening[];
  /** Undefined where one node has all sessions. */
  readonly owners?: Owners | undefined;
  /** Processes of programs that were left after the end. */
  readonly leftOver: number;
}

export interface Bars extends HerdBars {
  /** Longest first answer of a session after a disturbance, once a node serves again, in ms: of 99 %, and of all. */
  readonly firstAnswerMs?: readonly [p99: number, longest: number];
  /** Longest time from a disturbance until the shared program has a process again, in ms. */
  readonly programBackMs?: number;
  /** No life of a node may end. */
  readonly endsNoLife?: boolean;
}

/** The verdicts about a history; every bar of a run must be met. */
export function judge(history: History, bars: Bars): readonly Verdict[] {
  const { calls, failedOpenings, leftOver } = history;
  const inFlight = calls.filter((call) => history.disturbances.some((one) => isInFlight(call, one)));
  const later = calls.filter((call) => !inFlight.includes(call));
  const described = (found: readonly Call[]): readonly string[] =>
    found.map(
      (call) =>
        `${call.token} ${call.ending}${rowOf(call, history.owners)}, ${whenOf(call, history)}: ${call.reason}`,
    );
  const refused = failedOpenings
    .filter((opening) => !history.disturbances.some((one) => isInFlight(opening, one)))
    .filter((opening) => !mayBeClosed(opening, history))
    .map((opening) => `${opening.reason} ${whenOf(opening, history)}`);
  const lost = calls.filter(({ ending }) => ending === 'lost session');
  const failed = [
    ...later.filter(({ ending }) => ending === 'failed' || ending === 'unknown' || ending === 'refused'),
    ...inFlight.filter(({ ending }) => ending === 'failed' || ending === 'refused'),
  ].filter((call) => !mayBeRefused(call, history));
  const movable = lost.filter(({ isAfterUnsafe, endsWithStream }) => !isAfterUnsafe && !endsWithStream);
  const hung = [...later, ...inFlight.filter(({ endsWithStream }) => !endsWithStream)].filter(
    ({ ending }) => ending === 'hung',
  );
  const withoutFault = lost.filter((call) => !isAfterFault(call, history));
  const withoutEnd = history.owners && lostWithoutEnd(calls, history.disturbances, history.owners);
  return [
    none('failed calls, besides those in flight at a fault', described(failed)),
    none('calls without an answer within 20 s', described(hung)),
    none('sessions without unsafe calls that had to initialize again', described(movable)),
    none('sessions that had to initialize again without a fault', described(withoutFault)),
    ...(withoutEnd ? [none('lost sessions of a life that had not ended', described(withoutEnd))] : []),
    none('failed openings of sessions, besides those in flight at a fault', refused),
    none('unsafe calls carried out twice', twiceOf(history)),
    none('answered calls that no backend carried out', acknowledgedOnly(history)),
    none('calls refused as not delivered, but carried out', refusedOnly(history)),
    none('moments with two processes of the shared program', overlapsOf(history.programs)),
    none('processes of programs left at the end', leftOver === 0 ? [] : [`${leftOver} processes`], leftOver),
    ...firstAnswers(history, bars),
    ...programsBack(history, bars),
    ...judgeHerd(history, bars),
    ...(bars.endsNoLife
      ? [none('lives of nodes that ended', [...(history.owners?.endedMs.keys() ?? [])])]
      : []),
  ];
}

/** Counts for the reader, which are no bars. */
export function countsOf({
  calls,
  disturbances,
  herd,
  load = [],
}: History): Readonly<Record<string, number>> {
  const inFlight = calls.filter((call) => disturbances.some((one) => isInFlight(call, one)));
  const unknown = inFlight.filter(({ ending }) => ending === 'unknown').length;
  const lost = calls.filter(({ ending }) => ending === 'lost session').length;
  const counts = {
    calls: calls.length,
    faults: disturbances.length,
    inFlight: inFlight.length,
    unknown,
    lost,
  };
  if (herd === undefined || load.length === 0) return counts;
  const recovered = herd.sessions.filter(({ isOfEnded }) => isOfEnded).length;
  const cpuMs = load.reduce((sum, one) => sum + one.cpuMs, 0);
  return {
    ...counts,
    streams: herd.streams,
    streamsOpenMs: Math.round(herd.streamsOpenMs),
    cpuMsOfNodes: cpuMs,
    cpuMsPerSession: Math.round((100 * cpuMs) / recovered) / 100,
    lagMs: Math.round(Math.max(...load.map(({ lagMs }) => lagMs))),
  };
}

function isInFlight({ sentMs, endedMs }: Opening, { fromMs, untilMs }: Disturbance): boolean {
  return sentMs <= untilMs && endedMs >= fromMs;
}

/** For a person: seconds since the last fault before its end. */
function whenOf({ sentMs, endedMs }: Opening, { disturbances }: History): string {
  const last = disturbances.findLast(({ fromMs }) => fromMs <= endedMs);
  if (last === undefined) return 'before any fault';
  const [sent, ended] = [sentMs, endedMs].map((ms) => ((ms - last.fromMs) / 1_000).toFixed(2));
  return `from ${sent} to ${ended} s after "${last.what}"`;
}

/** The refusal says when to come again. */
const LATER = /retry_after_seconds/;

function mayBeRefused({ ending, endedMs, reason }: Call, { disturbances }: History): boolean {
  if (ending !== 'refused' || !LATER.test(reason)) return false;
  return disturbances.some(
    ({ fromMs, lastsUntilMs = 0, mayRefuse }) =>
      mayRefuse === true && fromMs <= endedMs && endedMs <= lastsUntilMs,
  );
}

/** A node whose life has ended has no place for a session, and none has one with a program that moves. */
function mayBeClosed({ endedMs, reason }: Opening, { disturbances }: History): boolean {
  if (!/NODE_UNAVAILABLE|NO_HEALTHY_INSTANCE/.test(reason) || !LATER.test(reason)) return false;
  return disturbances.some(
    ({ fromMs, lastsUntilMs = 0, isolates }) =>
      isolates === true && fromMs <= endedMs && endedMs <= lastsUntilMs,
  );
}

/** Whether there was a fault since the last call of the session before this one. */
function isAfterFault(call: Call, { calls, disturbances }: History): boolean {
  const before = calls.filter(({ session, sentMs }) => session === call.session && sentMs < call.sentMs);
  const sinceMs = Math.max(0, ...before.map(({ sentMs }) => sentMs));
  return disturbances.some(
    ({ untilMs, lastsUntilMs = untilMs, fromMs, endsNoLife }) =>
      endsNoLife !== true && lastsUntilMs >= sinceMs && fromMs <= call.endedMs,
  );
}

function twiceOf({ carriedOut }: History): readonly string[] {
  const times = new Map<string, number>();
  for (const { token, tool } of carriedOut)
    if (tool !== 'read') times.set(token, (times.get(token) ?? 0) + 1);
  return [...times].filter(([, count]) => count > 1).map(([token, count]) => `${token}: ${count} times`);
}

function acknowledgedOnly({ calls, carriedOut }: History): readonly string[] {
  const known = new Set(carriedOut.map(({ token }) => token));
  return calls
    .filter(({ ending, token }) => ending === 'answered' && !known.has(token))
    .map(({ token }) => token);
}

function refusedOnly({ calls, carriedOut }: History): readonly string[] {
  const known = new Set(carriedOut.map(({ token }) => token));
  return calls
    .filter(({ ending, token }) => (ending === 'refused' || ending === 'lost session') && known.has(token))
    .map(({ token, reason }) => `${token}: ${reason}`);
}

/** Pairs of processes that were both seen after the later one had begun. */
function overlapsOf(programs: readonly ProgramLife[]): readonly string[] {
  const sorted = programs.toSorted((one, other) => one.firstSeenMs - other.firstSeenMs);
  return sorted.flatMap((one, index) =>
    sorted
      .slice(index + 1)
      .filter((other) => other.firstSeenMs <= one.lastSeenMs)
      .map((other) => `${one.pid} and ${other.pid} for ${Math.round(one.lastSeenMs - other.firstSeenMs)} ms`),
  );
}

/** Per session and disturbance, from its first call after it, or from when a node served again, until an answer. */
function firstAnswers(history: History, { firstAnswerMs }: Bars): readonly Verdict[] {
  const { calls, disturbances } = history;
  if (firstAnswerMs === undefined || disturbances.length === 0) return [];
  const [p99Ms, longestMs] = firstAnswerMs;
  const sessions = Map.groupBy(calls, ({ session }) => session);
  const waits = disturbances.flatMap(({ untilMs, servedMs }) =>
    [...sessions.values()].flatMap((those) => {
      const later = those.filter(({ sentMs }) => sentMs > untilMs);
      const [next] = later;
      const end = later.find(({ ending }) => ending === 'answered' || ending === 'lost session');
      if (next === undefined || end?.ending === 'lost session') return []; // judged above
      if (disturbances.some((one) => isInFlight(next, one))) return []; // by the next fault
      const ms = (end?.endedMs ?? Infinity) - Math.max(next.sentMs, servedMs);
      return [{ next, ms: Math.max(0, ms) }];
    }),
  );
  const sorted = waits.toSorted((one, other) => other.ms - one.ms);
  const longest = sorted[0]?.ms ?? 0;
  const p99 = sorted[Math.floor(sorted.length / 100)]?.ms ?? 0;
  return [
    {
      bar: `first answer after a fault p99 <= ${p99Ms / 1_000} s, at most ${longestMs / 1_000} s`,
      found: `p99 ${seconds(p99)}, longest ${seconds(longest)}, ${sorted.length} sessions`,
      isMet: p99 <= p99Ms && longest <= longestMs,
      examples: sorted
        .slice(0, 5)
        .map(
          ({ next, ms }) => `${next.session} after ${seconds(ms)}: ${next.ending}, ${whenOf(next, history)}`,
        ),
    },
  ];
}

function programsBack({ disturbances, programs }: History, { programBackMs }: Bars): readonly Verdict[] {
  if (programBackMs === undefined || programs.length === 0) return [];
  const waits = disturbances.map(({ fromMs, untilMs, backMs, lastsUntilMs }) => {
    if (lastsUntilMs !== undefined) return longestGap(programs, fromMs, lastsUntilMs);
    // It ran on: on another node, or in a node that was not ended.
    if (programs.some(({ firstSeenMs, lastSeenMs }) => firstSeenMs < fromMs && lastSeenMs > backMs)) return 0;
    return Math.min(...programs.map(({ firstSeenMs }) => firstSeenMs).filter((ms) => ms > fromMs)) - untilMs;
  });
  const longest = Math.max(0, ...waits);
  return [
    {
      bar: `the shared program runs again <= ${programBackMs / 1_000} s after a fault`,
      found: seconds(longest),
      isMet: longest <= programBackMs,
      examples: [],
    },
  ];
}

/** The longest part of this time in which no process of the program was there. */
function longestGap(programs: readonly ProgramLife[], fromMs: number, untilMs: number): number {
  let seenMs = fromMs;
  let longest = 0;
  for (const { firstSeenMs, lastSeenMs } of programs.toSorted((a, b) => a.firstSeenMs - b.firstSeenMs)) {
    longest = Math.max(longest, Math.min(firstSeenMs, untilMs) - seenMs);
    seenMs = Math.max(seenMs, lastSeenMs);
  }
  return Math.max(longest, untilMs - seenMs);
}
