// Changes of what others change at the same time: read, changed, stored only if it is still the same.

import { databaseUnavailable } from '../domain/errors/gateway-errors.ts';

/** The most rounds of one change. */
export const MAX_CHANGE_ROUNDS = 10;

/**
 * Repeats a round until it resolves with a value: it reads, and stores its change unless another one was faster; then it
 * resolves with undefined. `number` counts from 1. Throws as the round does, and after MAX_CHANGE_ROUNDS DATABASE_UNAVAILABLE.
 */
export async function untilTaken<T extends NonNullable<unknown> | null>(
  round: (number: number) => Promise<T | undefined>,
): Promise<T> {
  for (let number = 1; number <= MAX_CHANGE_ROUNDS; number += 1) {
    const taken = await round(number);
    if (taken !== undefined) return taken;
  }
  throw databaseUnavailable(new Error('others changed it again and again'), 'no');
}
