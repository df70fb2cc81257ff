// Whether the database answers: one query at a time, with a time limit, and at most one per second, so that many health checks
// cause few queries.

import { sharedAnswer } from '../domain/time/shared-answer.ts';
import type { Store } from '../persistence/store.ts';
import { withTimeout } from '../persistence/with-timeout.ts';

export type DatabaseState = 'connected' | 'disconnected';

/** The longest wait for the answer, in ms. */
const PING_MS = 2_000;

/** A function that resolves within two seconds and never rejects. The answer may be a second old. */
export function databaseStatus(store: Pick<Store, 'ping'>, now: () => number): () => Promise<DatabaseState> {
  const ping = async (): Promise<DatabaseState> => {
    try {
      await withTimeout(store.ping(), PING_MS);
      return 'connected';
    } catch {
      return 'disconnected'; // the log has the reason
    }
  };
  return sharedAnswer(ping, now);
}
