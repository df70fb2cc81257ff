// A timeout for a promise. A server that accepts a connection may never answer, and its own limits do not
// help when its messages are lost.

import { settlesWithin, systemClock } from '../domain/time/clock.ts';

/** The result of `work`, or an error with the code ETIMEDOUT after `withinMs`. A later result is passed to `tooLate`. */
export async function withTimeout<T>(
  work: Promise<T>,
  withinMs: number,
  tooLate: (value: T) => void = () => {},
): Promise<T> {
  if (await settlesWithin(work, withinMs, systemClock)) return work;
  work.then(tooLate, () => undefined); // its caller got the timeout
  throw Object.assign(new Error(`no answer within ${withinMs} ms`), { code: 'ETIMEDOUT' });
}
