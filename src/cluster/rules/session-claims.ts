// Which node serves a session: what a node does with a request of a session that it does not have, and with a call that is not safe to
// repeat. All decisions use the row of the session as it was just read. Source: ADR 146.

import type { LifeRow, SessionRow } from './rows.ts';

/** Longest wait of a request for a silent owner, in ms. */
const SILENT_OWNER_MS = 15_000;
/** Most requests that wait for one silent owner. */
const MAX_WAITING = 1_000;

export type SessionDecision =
  /** This life owns it, though it is not in memory: the answer to its claim was lost. */
  | { readonly do: 'recover'; readonly generation: number }
  | { readonly do: 'forward'; readonly life: string }
  /** Claim it by a conditional update that names all that was read; the new generation is one more. */
  | { readonly do: 'claim'; readonly read: SessionRow }
  /** 404: the client initializes again. */
  | { readonly do: 'end'; readonly reason: 'no session' | 'may not move' | 'unknown life' };

export interface SessionReader {
  /** The life of this node. */
  readonly life: string;
  /** Of the member table, read after the row of the session. */
  readonly lifeOf: (life: string) => LifeRow | undefined;
  /** By `session_failover` and the mark `unsafe`. */
  readonly mayMove: (row: SessionRow) => boolean;
}

/** What to do with a request for a session that is not in memory here. */
export function decideSession(row: SessionRow | undefined, reader: SessionReader): SessionDecision {
  if (row === undefined) return { do: 'end', reason: 'no session' };
  if (row.life === reader.life) return { do: 'recover', generation: row.generation };
  if (row.life !== undefined) {
    const owner = reader.lifeOf(row.life);
    if (owner === undefined) return { do: 'end', reason: 'unknown life' };
    if (owner.end === undefined) return { do: 'forward', life: row.life };
  }
  return reader.mayMove(row) ? { do: 'claim', read: row } : { do: 'end', reason: 'may not move' };
}

/**
 * How long a request waits for its silent owner, in ms; undefined: 503 with `Retry-After` at once. After the wait it is 503 as well, never
 * 404: a silent owner is not an answer.
 */
export function waitForOwnerMs(deadlineMs: number, waiting: number): number | undefined {
  return waiting < MAX_WAITING ? Math.min(deadlineMs, SILENT_OWNER_MS) : undefined;
}
