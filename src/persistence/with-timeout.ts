// Gives every step of opening a database an end: a server that takes the connection and then falls silent ends nothing by
// itself, and its own limits are no help when its words do not arrive.

import { setTimeout as delay } from 'node:timers/promises';

/**
 * What `work` comes to, or an error with the code ETIMEDOUT after `withinMs`. What comes later is handed to `tooLate`.
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
    () => undefined, // its caller hears of it, or has heard of the silence
  );
  try {
    return await Promise.race([work, silence]);
  } finally {
    timer.abort();
  }
}
