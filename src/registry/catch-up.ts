// Work that is done after requests until it succeeds: the registry is read after changes of the store, deployments are listed
// after changes of their source.

import { defer, delay, type Observable, race, retry, type Subscription, tap, throttle, timer } from 'rxjs';

export interface CatchUpOptions {
  readonly work: () => Promise<unknown>;
  /** Shortest time between the end of a run and the next one, in ms: a thousand requests are a few runs. */
  readonly gapMs: number;
  /** Gets the first failure since the last success. */
  readonly onFailure: (thrown: unknown) => void;
  /** Called at the first success after failures. */
  readonly onRecovery?: () => void;
}

/** Longest wait after a run that failed, in ms; a request shortens it. */
const RETRY_MS = 5_000;

/** Runs the work after each request (hot), one run at a time: requests during a run cause one more run, and only one. */
export function catchUp(
  requests$: Observable<unknown>,
  { work, gapMs, onFailure, onRecovery }: CatchUpOptions,
): Subscription {
  let hasFailed = false;
  const run$ = defer(work).pipe(
    tap({
      next: () => {
        if (hasFailed) onRecovery?.();
        hasFailed = false;
      },
      error: (thrown) => {
        if (!hasFailed) onFailure(thrown);
        hasFailed = true;
      },
    }),
    retry({ delay: () => race(timer(RETRY_MS), requests$.pipe(delay(gapMs))) }),
    delay(gapMs),
  );
  return requests$.pipe(throttle(() => run$, { leading: true, trailing: true })).subscribe();
}
