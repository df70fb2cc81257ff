// Watches the registry and the accounts for changes by polling the revision of the store, so that the nodes
// of one database notice each other's changes. Source: ADR 19.

import { defer, exhaustMap, merge, type Observable } from 'rxjs';
import { GatewayError, reasonOf } from '../domain/errors/errors.ts';
import { systemClock } from '../domain/time/clock.ts';
import { ticks$, timer$ } from '../domain/time/clock-streams.ts';
import type { Store } from './store.ts';

export type RevisionChange =
  /** The revision differs from the previous one. */
  | { readonly kind: 'changed' }
  /** The revision is the same, or the first one. */
  | { readonly kind: 'answered' }
  /** The store did not answer; the reason, if known, as a clause without values. */
  | { readonly kind: 'away'; readonly reason?: string };

/**
 * One value per query, every `everyMs`, the first at once. Cold: each subscriber polls separately. Never errors,
 * never completes. One query at a time (exhaustMap): a slow database gets fewer queries, and answers stay in order.
 */
export function watchRevision(
  store: Pick<Store, 'revision'>,
  { everyMs = 2_000 }: { readonly everyMs?: number } = {},
): Observable<RevisionChange> {
  return defer(() => {
    let seen: number | undefined;
    const read = async (): Promise<RevisionChange> => {
      try {
        const revision = await store.revision();
        const isAnother = seen !== undefined && seen !== revision;
        seen = revision;
        return { kind: isAnother ? 'changed' : 'answered' };
      } catch (error) {
        // The message of DATABASE_UNAVAILABLE does not name the cause.
        const cause = error instanceof GatewayError ? (error.facts.cause ?? error) : error;
        return { kind: 'away', reason: reasonOf(cause) };
      }
    };
    return merge(timer$(systemClock, 0), ticks$(systemClock, everyMs)).pipe(exhaustMap(read));
  });
}
