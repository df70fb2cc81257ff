// What one opening of a program teaches the next: whether the probe for the modern era comes first, and whether a second start
// is allowed because the probe may have ended it. stdio-handshake.ts sends the probe; ADR 23 gives the reasons.

import type { Era } from '../domain/mcp.ts';
import type { OpeningMemory } from './transport.ts';

/** What became of a probe. `late`: a result came after the probe was given up; `answered`: another answer, or a refusal. */
export type ProbeOutcome = 'unanswered' | 'answered' | 'late';

/** How an opening failed. */
export interface FailedOpening {
  /** Undefined when it did not begin with a probe. */
  readonly outcome: ProbeOutcome | undefined;
  /** There was a program at all. */
  readonly wasStarted: boolean;
  /** It ended by itself. */
  readonly hasEnded: boolean;
}

/** True when the next opening begins with the probe. While all openings fail it is every other one. */
export function isProbedNext({ era, failure }: OpeningMemory): boolean {
  if (era !== undefined) return era === 'modern';
  return failure === undefined || failure === 'unprobed';
}

/**
 * Keeps the era of a program that had the choice. A legacy one had it when it refused the probe, or left it unanswered in
 * this opening or the one before; a late answer says only that it was slow, and a program that was broken says nothing.
 */
export function noteSuccess(memory: OpeningMemory, era: Era, outcome: ProbeOutcome | undefined): void {
  const isSure = outcome === undefined ? memory.failure === 'unanswered' : outcome !== 'late';
  memory.failure = undefined;
  if (era === 'modern' || (era === 'legacy' && isSure)) memory.era = era;
}

/**
 * True when the program is to be started once more: it is new, and ended where the probe may have ended it. One that broke
 * then, too, is just broken: from then on each opening starts it once.
 */
export function noteProbeFailure(
  memory: OpeningMemory,
  { outcome, wasStarted, hasEnded }: FailedOpening,
): boolean {
  if (memory.era === 'legacy') return false;
  if (memory.era === 'modern') {
    memory.era = undefined; // it may be another program by now
    return false;
  }
  if (memory.failure !== undefined) {
    memory.failure = outcome === undefined ? 'unprobed' : 'probed';
    return false;
  }
  if (outcome !== 'unanswered' || !wasStarted) return false;
  memory.failure = 'unanswered';
  return hasEnded;
}
