// Which node serves a session: what a node does with a request of a session that it does not have. Whether the
// session may move is decided after this, by its template: see outlivesNode of
// actors/sessions/session-state.ts. Source: ADR 146.

import type { SessionDecision } from '../../domain/nodes/life.ts';
import type { LifeRow } from './rows.ts';

/** Longest wait of a request for a silent holder, in ms. */
export const SILENT_HOLDER_MS = 15_000;
/** Most requests that wait for one silent holder. */
const MAX_WAITING = 1_000;

export interface SessionReader {
  /** The life of this node. */
  readonly life: string;
  /** The row of a life, read after the row of the session. */
  readonly lifeOf: (life: string) => LifeRow | undefined;
}

/**
 * What to do with a request for a session that is not in memory here. `holder`: the life in its row; undefined
 * when it was released.
 */
export function decideSession(holder: string | undefined, reader: SessionReader): SessionDecision {
  if (holder === undefined) return { do: 'claim' };
  if (holder === reader.life) return { do: 'recover' };
  const row = reader.lifeOf(holder);
  if (row === undefined) return { do: 'end', reason: 'unknown life' };
  return row.end === undefined ? { do: 'forward', life: holder } : { do: 'claim' };
}

/**
 * Whether one more request may wait for its silent holder, for SILENT_HOLDER_MS; otherwise 503 with `Retry-After` at once.
 * After the wait it is 503 as well, never 404: a silent holder is not an answer.
 */
export function mayWaitForHolder(waiting: number): boolean {
  return waiting < MAX_WAITING;
}
