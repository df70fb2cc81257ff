// Logs once when the database becomes unavailable, with the reason, and once when it is back. Consequences are logged where
// they happen: refusals in answers, the registry in its events.

import type { Logger } from 'pino';
import { distinctUntilChanged, type Observable, pairwise, type Subscription, startWith } from 'rxjs';
import type { RevisionChange } from './persistence/revision-watch.ts';

/** Logs until it is unsubscribed. */
export function logDatabase(
  storeChanges$: Observable<RevisionChange>,
  log: Pick<Logger, 'info' | 'error'>,
): Subscription {
  return storeChanges$
    .pipe(
      startWith(HERE),
      distinctUntilChanged((one, other) => isAway(one) === isAway(other)),
      pairwise(),
    )
    .subscribe(([, change]) => {
      if (change.kind === 'away')
        log.error({ reason: change.reason }, 'the database is away; known callers and instances are served');
      else log.info('the database is back');
    });
}

const HERE: RevisionChange = { kind: 'answered' };

function isAway({ kind }: RevisionChange): boolean {
  return kind === 'away';
}
