// Whether the database answers: one query at a time, with a time limit, and at most one per second, so that many health checks
// cause few queries.

import type { Store } from '../persistence/store.ts';
import { withTimeout } from '../persistence/with-timeout.ts';

export type DatabaseState = 'connected' | 'disconnected';

/** The longest wait for the answer, in ms. */
const PING_MS = 2_000;
/** The longest use of an answer, in ms. */
const FRESH_MS = 1_000;

/** A function that resolves within two seconds and never rejects. The answer may be a second old. */
export function databaseStatus(store: Pick<Store, 'ping'>, now: () => number): () => Promise<DatabaseState> {
  let answer: Promise<DatabaseState> | undefined;
  let isUsedUntilMs = 0;
  const ping = async (): Promise<DatabaseState> => {
    try {
      await withTimeout(store.ping(), PING_MS);
      return 'connected';
    } catch {
      return 'disconnected'; // the log has the reason
    } finally {
      isUsedUntilMs = now() + FRESH_MS;
    }
  };
  return () => {
    if (answer !== undefined && now() < isUsedUntilMs) return answer;
    isUsedUntilMs = Number.POSITIVE_INFINITY; // until it has answered
    answer = ping();
    return answer;
  };
}
