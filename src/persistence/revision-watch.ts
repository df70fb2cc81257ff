// Watches the registry and the accounts for changes by polling the revision of the store, so that the nodes
// of one database notice each other's changes. Source: ADR 19.

import { catchError, defer, exhaustMap, map, type Observable, of, scan, timer } from 'rxjs';
import { GatewayError, reasonOf } from '../domain/errors.ts';
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
  return timer(0, everyMs).pipe(
    exhaustMap(() =>
      defer(() => store.revision()).pipe(catchError((error: unknown) => of({ reason: clauseOf(error) }))),
    ),
    scan(withChange, NOTHING_SEEN),
    map(({ change }) => change),
  );
}

/** The revision, or the reason why it could not be read. */
type RevisionReading = number | { readonly reason: string };

interface Seen {
  readonly revision: number | undefined;
  readonly change: RevisionChange;
}

const NOTHING_SEEN: Seen = { revision: undefined, change: { kind: 'away' } };

function withChange(seen: Seen, answer: RevisionReading): Seen {
  if (typeof answer === 'object') return { ...seen, change: { kind: 'away', ...answer } };
  const isAnother = seen.revision !== undefined && seen.revision !== answer;
  return { revision: answer, change: { kind: isAnother ? 'changed' : 'answered' } };
}

/** The cause of DATABASE_UNAVAILABLE, because its message does not name the cause. */
function clauseOf(error: unknown): string {
  const behind = error instanceof GatewayError ? (error.facts.cause ?? error) : error;
  return reasonOf(behind);
}
