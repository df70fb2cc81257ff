// Work of which each caller may have a part under way.

import { tooMany } from '../domain/errors/request-errors.ts';
import type { UserShares } from '../domain/memory/user-shares.ts';

/** Runs `work` in the share of the caller. QUEUE_FULL. `what`: a plural, such as "running examinations". */
export async function withinShare<T>(
  shares: UserShares,
  callerId: string,
  what: string,
  work: () => T | Promise<T>,
): Promise<T> {
  const exceeded = shares.exceededBy(callerId);
  if (exceeded !== undefined) throw tooMany(what, exceeded, 5);
  shares.add(callerId);
  try {
    return await work();
  } finally {
    shares.release(callerId);
  }
}
