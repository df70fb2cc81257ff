// The clock of this machine and that of the database server. All nodes are compared with the same clock, so this also finds
// nodes that differ from each other. Source: ADR 386.

import type { Logger } from 'pino';
import { exhaustMap, merge, type Subscription } from 'rxjs';
import { asGatewayError } from '../../domain/errors/errors.ts';
import { HOUR_MS, MAX_SKEW_MS, systemClock } from '../../domain/time/clock.ts';
import { ticks$, timer$ } from '../../domain/time/clock-streams.ts';
import type { Store } from '../../persistence/store.ts';

const CHECK_MS = HOUR_MS;
/**
 * The difference that is warned of, half the bound: of two nodes that differ by more than the bound, one differs from
 * the database by more than this.
 */
const WARNED_MS = MAX_SKEW_MS / 2;

/**
 * Warns when the clock of this node and that of the database differ, at the start and once an hour. Does nothing for a database
 * without a clock of its own. `now`: ms since 1970.
 */
export function watchClockSkew(
  store: Pick<Store, 'serverTimeMs'>,
  log: Pick<Logger, 'warn'>,
  now: () => number = systemClock.wall,
): Subscription {
  const check = async (): Promise<void> => {
    const askedAtMs = now();
    const serverMs = await store.serverTimeMs();
    if (serverMs === undefined) return;
    const skewMs = serverMs - (askedAtMs + now()) / 2;
    if (Math.abs(skewMs) <= WARNED_MS) return;
    const isBehind = skewMs > 0;
    const skew_s = Math.round(Math.abs(skewMs) / 1_000);
    log.warn(
      { skew_s, node: isBehind ? 'behind' : 'ahead' },
      'the clocks of this node and of the database differ',
    );
  };
  return merge(timer$(systemClock, 0), ticks$(systemClock, CHECK_MS))
    .pipe(
      exhaustMap(() =>
        check().catch((thrown: unknown) =>
          log.warn({ reason: asGatewayError(thrown).code }, 'the clock of the database cannot be read'),
        ),
      ),
    )
    .subscribe();
}
