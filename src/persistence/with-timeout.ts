// A timeout for a promise. A server that accepts a connection may never answer, and its own limits do not
// help when its messages are lost.

import { setTimeout as delay } from 'node:timers/promises';

/**
 * The result of `work`, or an error with the code ETIMEDOUT after `withinMs`. A later result is passed to `tooLate`.
 */
export async function withTimeout<T>(
  work: Promise<T>,
  withinMs: number,
  tooLate: (value: T) => void = () => {},
): Promise<T> {
  const timer = new AbortController();
  let isOver = false;
  const silence = delay(withinMs, undefined, { signal: timer.signal }).then((): never => {
    isOver = true;
    throw Object.assign(new Error(`no answer within ${withinMs} ms`), { code: 'ETIMEDOUT' });
  });
  void work.then(
    (value) => isOver && tooLate(value),
    () => undefined, // its caller gets this error, or got the timeout
  );
  try {
    return await Promise.race([work, silence]);
  } finally {
    timer.abort();
  }
}
