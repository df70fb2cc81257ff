// Work that is done after requests until it succeeds: the registry is read after changes of the store, sources are listed
// after changes of their source.

import {
  catchError,
  defer,
  delayWhen,
  EMPTY,
  map,
  merge,
  type Observable,
  of,
  Subject,
  type Subscription,
  switchMap,
  tap,
  throttle,
} from 'rxjs';
import type { Clock } from '../domain/time/clock.ts';
import { timer$ } from '../domain/time/clock-streams.ts';

interface RepeatUntilDoneOptions {
  readonly clock: Clock;
  readonly work: () => Promise<unknown>;
  /** The shortest time between the end of a run and the next one, in ms: a thousand requests are a few runs. */
  readonly gapMs: number;
  /** Gets the first failure since the last success. */
  readonly onFailure: (thrown: unknown) => void;
  /** Called at the first success after failures. */
  readonly onCaughtUp?: () => void;
}

/** Wait after a run that failed, in ms; a request during the run or the wait ends it. */
const RETRY_MS = 5_000;

/** Runs the work after each request, one run at a time: requests during a run cause one more run, and only one. */
export function repeatUntilDone(
  requests$: Observable<unknown>,
  { clock, work, gapMs, onFailure, onCaughtUp }: RepeatUntilDoneOptions,
): Subscription {
  let hasFailed = false;
  const outcomes$ = new Subject<boolean>();
  const run$ = defer(work).pipe(
    map(() => true),
    catchError((thrown) => {
      if (!hasFailed) onFailure(thrown);
      return of(false);
    }),
    tap((isDone) => {
      if (isDone && hasFailed) onCaughtUp?.();
      hasFailed = !isDone;
      outcomes$.next(isDone);
    }),
    delayWhen(() => timer$(clock, gapMs)),
  );
  const retries$ = outcomes$.pipe(switchMap((isDone) => (isDone ? EMPTY : timer$(clock, RETRY_MS))));
  return merge(requests$, retries$)
    .pipe(throttle(() => run$, { leading: true, trailing: true }))
    .subscribe();
}
