// Statistics of the probes, openings and closings of one instance: pure functions on a small immutable value, applied by the
// machine (instance-setup.ts). call-counter.ts counts calls.

import { LIMITS } from '../../domain/limits.ts';

export interface InstanceStatistics {
  /** Failed probes and openings in a row. */
  readonly failures: number;
  /** Failed ones in a row since it became unhealthy. */
  readonly recoveries: number;
  /** Openings in a row whose session was short-lived. */
  readonly attempts: number;
  readonly sessions: number;
  /** Monotonic ms of the last finished probe or opening. */
  readonly checkedAtMs: number | undefined;
  /** Monotonic ms of the opening of the present session; undefined while there is none. */
  readonly openedAtMs: number | undefined;
}

export const INITIAL_STATISTICS: InstanceStatistics = {
  failures: 0,
  recoveries: 0,
  attempts: 0,
  sessions: 0,
  checkedAtMs: undefined,
  openedAtMs: undefined,
};

/** The finished handshake is a passed probe. */
export function afterOpening(statistics: InstanceStatistics, nowMs: number): InstanceStatistics {
  const passed = afterPassedProbe(statistics, nowMs);
  return { ...passed, sessions: statistics.sessions + 1, openedAtMs: nowMs };
}

export function afterPassedProbe(statistics: InstanceStatistics, nowMs: number): InstanceStatistics {
  return { ...statistics, failures: 0, checkedAtMs: nowMs };
}

/** Also after a failed opening. */
export function afterFailedProbe(statistics: InstanceStatistics, nowMs: number): InstanceStatistics {
  return {
    ...statistics,
    failures: statistics.failures + 1,
    recoveries: statistics.recoveries + 1,
    checkedAtMs: nowMs,
  };
}

/** The session is gone, or could not be opened. A long-lived session resets the back-off. */
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
