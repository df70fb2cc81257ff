// Deletes the rows of sign-ins, grants, clients and connections that have expired. A gateway has such rows also when no client
// ever asks its authorization server: each login of the console leaves one. Source: ADR 386.

import type { Logger } from 'pino';
import { hasCode } from '../domain/errors/errors.ts';
import { type Clock, clockDoubt } from '../domain/time/clock.ts';
import type { Store } from '../persistence/store.ts';

const SWEEP_MS = 10 * 60_000;
/** The most sweeps in a row, of 500 rows each: 1,000 sign-ins a minute leave 20,000 rows in this time. */
const MAX_SWEEPS = 100;

/** Sweeps each 10 min, unless the clock may be wrong, until the returned function is called. */
export function sweepExpiredRows(
  store: Pick<Store, 'oauth' | 'serverTimeMs'>,
  { clock, log }: { readonly clock: Clock; readonly log: Pick<Logger, 'warn'> },
): () => void {
  const doubt = clockDoubt(clock, () => store.serverTimeMs());
  const sweep = async (): Promise<void> => {
    const reason = await doubt();
    if (reason !== undefined) {
      log.warn({ reason }, 'no expired grants, clients and accounts are deleted: the clock may be wrong');
      return;
    }
    for (let round = 0; round < MAX_SWEEPS; round += 1)
      if ((await store.oauth.sweep(new Date(clock.wall()).toISOString())) === 0) return;
  };
  return clock.background.every(SWEEP_MS, () => {
    sweep().catch((thrown: unknown) => {
      // The store logs its unavailability elsewhere; the next sweep tries again.
      if (!hasCode(thrown, 'DATABASE_UNAVAILABLE'))
        log.warn({ err: thrown }, 'expired grants cannot be deleted');
    });
  });
}
