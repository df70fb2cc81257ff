// Tells when the registry or the accounts were changed by anybody, by asking the store for its revision again and again.
// Every node of one database hears of the others this way.

import { catchError, defer, exhaustMap, map, type Observable, of, scan, timer } from 'rxjs';
import { GatewayError } from '../domain/errors.ts';
import { reasonOf } from '../domain/failures.ts';
import type { Store } from './store.ts';

export type RevisionChange =
  /** The revision is another one than the last seen. */
  | { readonly kind: 'changed' }
  /** It is the same, or the first one seen. */
  | { readonly kind: 'answered' }
  /** The store did not answer; why, as a clause without values, where somebody knows. */
  | { readonly kind: 'away'; readonly reason?: string };

export interface RevisionWatchOptions {
  /** Time between two questions, in ms. Default 2 000. */
  readonly everyMs?: number;
}

/**
 * One piece of news per question, the first at once. Cold: every subscriber asks for itself, and what it saw last is its own.
 * Never errors and never completes. While one question is unanswered no other is asked (exhaustMap): a slow database is not
 * asked more often, and answers cannot overtake each other.
 */
export function watchRevision(
  store: Pick<Store, 'revision'>,
  { everyMs = 2_000 }: RevisionWatchOptions = {},
): Observable<RevisionChange> {
  return timer(0, everyMs).pipe(
    exhaustMap(() => answerOf(store)),
    scan(withNews, NOTHING_SEEN),
    map(({ news }) => news),
  );
}

/** The revision, or why there is none. */
type Answer = number | { readonly reason: string };

interface Seen {
  readonly revision: number | undefined;
  readonly news: RevisionChange;
}

const NOTHING_SEEN: Seen = { revision: undefined, news: { kind: 'away' } };

function withNews(seen: Seen, answer: Answer): Seen {
  if (typeof answer === 'object') return { ...seen, news: { kind: 'away', ...answer } };
  const isAnother = seen.revision !== undefined && seen.revision !== answer;
  return { revision: answer, news: { kind: isAnother ? 'changed' : 'answered' } };
}

function answerOf(store: Pick<Store, 'revision'>): Observable<Answer> {
  return defer(() => store.revision()).pipe(catchError((error: unknown) => of({ reason: clauseOf(error) })));
}

/** What is behind DATABASE_UNAVAILABLE, which itself says no more than its name. */
function clauseOf(error: unknown): string {
  const behind = error instanceof GatewayError ? (error.facts.cause ?? error) : error;
  return reasonOf(behind);
}
