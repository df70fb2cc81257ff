// One answer for requests at the same time, so that many requests without credentials cause little work.

import type { Clock } from './clock.ts';

/** The longest use of an answer after it was given, in ms. */
const SHARED_MS = 1_000;

/** A function that asks once for all its calls until the answer, and in the second after it. Throws as `ask`. */
export function sharedAnswer<T>(ask: () => Promise<T>, now: Clock['now']): () => Promise<T> {
  let answer: Promise<T> | undefined;
  let isUsedUntilMs = 0;
  return () => {
    if (answer !== undefined && now() < isUsedUntilMs) return answer;
    isUsedUntilMs = Number.POSITIVE_INFINITY; // until it is given
    answer = ask().finally(() => {
      isUsedUntilMs = now() + SHARED_MS;
    });
    return answer;
  };
}
