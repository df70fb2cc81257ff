// Writes values that cannot be got again, such as the successor of a refresh token that works once: repeats the write until
// the database answers.

import { hasCode } from '../domain/errors/errors.ts';
import { type Clock, sleep } from '../domain/time/clock.ts';

const MAX_ATTEMPTS = 60;
const WAIT_MS = 500;

/**
 * Repeats work that fails because the database does not answer, for 30 s at least. Throws the error of the last
 * attempt. `silent` is called after each attempt that is repeated.
 */
export async function untilDatabaseAnswers<T>(
  clock: Clock,
  run: () => Promise<T>,
  silent: () => void = () => {},
): Promise<T> {
  for (let attempt = 1; ; attempt += 1)
    try {
      return await run();
    } catch (thrown) {
      if (attempt === MAX_ATTEMPTS || !hasCode(thrown, 'DATABASE_UNAVAILABLE')) throw thrown;
      silent();
      await sleep(clock, WAIT_MS);
    }
}
