// Which life had each session, and which lives have ended: a lost session is excused only if a life that had it ended.

import { hash } from 'node:crypto';

/** A life that ended is seen so much later at most, in ms: a read waits on a busy machine. */
const SEEN_MS = 1_500;
/** In the place of the life of a session that its node released. */
const RELEASED = 'released';

/** What was read; times are those of the reads. */
export interface Owners {
  /** By session: its lives, in their order. */
  readonly lives: ReadonlyMap<string, readonly { readonly life: string; readonly sinceMs: number }[]>;
  /** By life: when it was first seen as one that has ended. */
  readonly endedMs: ReadonlyMap<string, number>;
}

/** How owners name a session: its id begins with the life that opened it. */
export interface SessionName {
  readonly opener: string;
  readonly key: string;
}

/** What matters here of a call: see Call. */
interface OwnedCall {
  readonly session: string;
  readonly name?: SessionName | undefined;
  readonly isAfterUnsafe?: boolean;
  readonly endsWithStream?: boolean;
  readonly sentMs: number;
  readonly endedMs: number;
  readonly ending: string;
}

export function nameOf(sessionId: string | undefined): SessionName | undefined {
  return sessionId === undefined
    ? undefined
    : { opener: sessionId.slice(0, 8), key: hash('sha256', sessionId) };
}

/** While the database is away, a row is written after the answer to `initialize`: perhaps never. */
export function rowOf({ ending, name }: OwnedCall, owners: Owners | undefined): string {
  const isStored = name === undefined || owners?.lives.has(name.key) !== false;
  return ending !== 'lost session' || isStored ? '' : ' without a row in the database';
}

/** What matters here of a fault: see Disturbance. */
interface Fault {
  readonly fromMs: number;
  readonly lastsUntilMs?: number;
  readonly endsProgram?: boolean;
}

/** The lost sessions among these calls of which no life ended that had them since the call before, nor the program that had their state. */
export function lostWithoutEnd<Call extends OwnedCall>(
  calls: readonly Call[],
  disturbances: readonly Fault[],
  { lives, endedMs }: Owners,
): readonly Call[] {
  const isWithProgram = ({ isAfterUnsafe = false, endedMs: lostMs }: OwnedCall): boolean =>
    isAfterUnsafe &&
    disturbances.some(
      ({ fromMs, lastsUntilMs = 0, endsProgram = false }) =>
        endsProgram && fromMs <= lostMs && lostMs <= lastsUntilMs,
    );
  return calls.filter((call) => {
    const { ending, name, session, sentMs, endedMs: lostMs, endsWithStream } = call;
    if (ending !== 'lost session' || name === undefined || endsWithStream || isWithProgram(call))
      return false;
    const before = calls.findLast((other) => other.session === session && other.sentMs < sentMs);
    const sinceMs = before?.sentMs ?? 0;
    // A node that stops ends its sessions before its life.
    const until = disturbances.filter(({ fromMs }) => fromMs <= lostMs).map((one) => one.lastsUntilMs ?? 0);
    const untilMs = Math.max(lostMs, ...until) + SEEN_MS;
    const had = lives.get(name.key) ?? [];
    const those = had.filter(
      ({ sinceMs: fromMs }, index) =>
        fromMs <= untilMs && (had[index + 1]?.sinceMs ?? Number.POSITIVE_INFINITY) >= sinceMs,
    );
    const owners = those.length > 0 ? those.map(({ life }) => life) : [name.opener];
    return !owners.some((life) => life === RELEASED || (endedMs.get(life) ?? Infinity) <= untilMs);
  });
}
