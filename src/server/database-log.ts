// What the log says while the database is away.

import type { Logger } from 'pino';
import { distinctUntilChanged, type Observable, type Subscription, skip, startWith } from 'rxjs';
import type { RevisionChange } from '../persistence/revision-watch.ts';

/** Logs once when the database becomes unavailable, with the reason, and once when it is available again. */
export function logDatabase(
  storeChanges$: Observable<RevisionChange>,
  log: Pick<Logger, 'info' | 'error'>,
): Subscription {
  return storeChanges$
    .pipe(
      startWith({ kind: 'answered' } as const),
      distinctUntilChanged((before, now) => (before.kind === 'away') === (now.kind === 'away')),
      skip(1),
    )
    .subscribe((change) => {
      if (change.kind === 'away')
        log.error(
          { reason: change.reason },
          'the database is unavailable; known callers and instances are still served',
        );
      else log.info('the database is available again');
    });
}
