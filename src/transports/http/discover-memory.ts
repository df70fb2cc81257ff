// What one opening of an HTTP backend teaches the next: whether it is asked `server/discover` before it is initialized, or
// leaves that unanswered, which costs time. How it is asked is http-probe.ts's; ADR 33 says why.

import type { Era } from '../../domain/mcp.ts';
import type { OpeningMemory } from '../transport.ts';

/**
 * What became of `server/discover`. `answered`: by a result or a refusal; `unanswered`: by nothing; `cut`: by the end of the
 * connection.
 */
export type DiscoverOutcome = 'answered' | 'unanswered' | 'cut';

/** How long a backend that left it unanswered is initialized first. Another server may be at the endpoint by then. */
export const UNANSWERED_FOR_MS = 60 * 60_000;

/** Whether the next opening begins with `server/discover`. `nowMs` is of a monotonic clock. */
export function isDiscoveredFirst({ unansweredAtMs }: OpeningMemory, nowMs: number): boolean {
  return unansweredAtMs === undefined || nowMs - unansweredAtMs >= UNANSWERED_FOR_MS;
}

/** Hands were shaken. `outcome`: undefined when it was initialized first; what is remembered then becomes no younger. */
export function noteOpened(
  memory: OpeningMemory,
  era: Era,
  { outcome, nowMs }: { readonly outcome: DiscoverOutcome | undefined; readonly nowMs: number },
): void {
  memory.wasCutOff = undefined;
  if (era !== 'legacy' || outcome === 'answered') memory.unansweredAtMs = undefined;
  else if (outcome !== undefined) memory.unansweredAtMs = nowMs;
}

/** It could not be opened. Where nobody was there nothing is learned; a server that failed may be another one by now. */
export function noteFailed(
  memory: OpeningMemory,
  { outcome, isThere }: { readonly outcome: DiscoverOutcome | undefined; readonly isThere: boolean },
): void {
  if (outcome === 'cut') memory.wasCutOff = true;
  if (isThere) memory.unansweredAtMs = undefined;
}

/**
 * Its program ended by itself instead of being opened. If the connection ended on the question, the question may have ended the
 * program: the next one is spared it.
 */
export function noteExit(memory: OpeningMemory, nowMs: number): void {
  memory.unansweredAtMs = memory.wasCutOff === true ? nowMs : undefined;
  memory.wasCutOff = undefined;
}
