// The numbers of one instance and how each event changes them. Pure functions on a small immutable value.
// The machine decides when they apply (instance.machine.ts).

import { ewma } from '../../balancing/health-score.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { ExchangeEnding } from '../calls/reply.ts';

export interface InstanceStatistics {
  /** Exchanges it carries now. */
  readonly inFlight: number;
  /** Exchanges it was given, and those of them that failed on their way or were answered with an error. */
  readonly requests: number;
  readonly errors: number;
  /** Exponentially weighted share of answered calls and probes, 0 to 1. */
  readonly successRate: number;
  /** Exponentially weighted time to the answer; undefined before the first. */
  readonly latencyMs: number | undefined;
  /** Failed probes and openings in a row. */
  readonly failures: number;
  /** Those of them that failed while it was unhealthy already. */
  readonly recoveries: number;
  /** Openings in a row whose session did not live long. */
  readonly attempts: number;
  /** Sessions opened so far. */
  readonly sessions: number;
  /** Monotonic ms of the last finished probe or opening. */
  readonly checkedAtMs: number | undefined;
  /** Monotonic ms of the opening of the present session; undefined while there is none. */
  readonly openedAtMs: number | undefined;
}

export const INITIAL_STATISTICS: InstanceStatistics = {
  inFlight: 0,
  requests: 0,
  errors: 0,
  successRate: 1,
  latencyMs: undefined,
  failures: 0,
  recoveries: 0,
  attempts: 0,
  sessions: 0,
  checkedAtMs: undefined,
  openedAtMs: undefined,
};

export function afterRequest(statistics: InstanceStatistics): InstanceStatistics {
  return { ...statistics, inFlight: statistics.inFlight + 1, requests: statistics.requests + 1 };
}

/** A cancelled exchange says nothing about the instance; an error answer is an answer. */
export function afterRelease(statistics: InstanceStatistics, ending: ExchangeEnding): InstanceStatistics {
  const inFlight = Math.max(0, statistics.inFlight - 1);
  if (ending.outcome === 'cancelled') return { ...statistics, inFlight };
  const failed = ending.outcome === 'failed';
  return {
    ...statistics,
    inFlight,
    errors: statistics.errors + (ending.outcome === 'result' ? 0 : 1),
    successRate: ewma(statistics.successRate, failed ? 0 : 1),
    latencyMs: failed ? statistics.latencyMs : ewma(statistics.latencyMs, ending.durationMs),
  };
}

/** The finished handshake is a passed probe whose time says nothing about calls. */
export function afterOpening(statistics: InstanceStatistics, nowMs: number): InstanceStatistics {
  const passed = afterPassedProbe(statistics, undefined, nowMs);
  return { ...passed, sessions: statistics.sessions + 1, openedAtMs: nowMs };
}

/** `durationMs` is undefined when answers to calls stood in for the probe. */
export function afterPassedProbe(
  statistics: InstanceStatistics,
  durationMs: number | undefined,
  nowMs: number,
): InstanceStatistics {
  return {
    ...statistics,
    failures: 0,
    checkedAtMs: nowMs,
    successRate: ewma(statistics.successRate, 1),
    latencyMs: durationMs === undefined ? statistics.latencyMs : ewma(statistics.latencyMs, durationMs),
  };
}

/** Also when a session could not be opened. */
export function afterFailedProbe(statistics: InstanceStatistics, nowMs: number): InstanceStatistics {
  return {
    ...statistics,
    failures: statistics.failures + 1,
    recoveries: statistics.recoveries + 1,
    checkedAtMs: nowMs,
    successRate: ewma(statistics.successRate, 0),
  };
}

/** The session is gone, or could not be opened. One that lived long enough starts the back-off anew. */
export function afterClosing(statistics: InstanceStatistics, nowMs: number): InstanceStatistics {
  const livedMs = statistics.openedAtMs === undefined ? 0 : nowMs - statistics.openedAtMs;
  const attempts = livedMs >= LIMITS.restartForgivenMs ? 1 : statistics.attempts + 1;
  return { ...statistics, attempts, openedAtMs: undefined };
}

/** The first wait doubled for every try after the first, times 0.75 to 1.25 by `random`, at most `longestMs`. */
export function backOffMs(tries: number, longestMs: number, random: number): number {
  const doublings = Math.min(Math.max(tries - 1, 0), 30);
  const mostMs = Math.max(longestMs, LIMITS.restartFirstMs);
  const waitMs = Math.min(LIMITS.restartFirstMs * 2 ** doublings, mostMs);
  return Math.min(Math.round(waitMs * (0.75 + random / 2)), mostMs);
}
