// Polls until the answer is the expected one, for a bounded time.

import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import * as assert from 'uvu/assert';

/** Polls until the answer equals `wanted`; fails with the last answer after the time limit. */
export async function becomes<T>(ask: () => T | Promise<T>, wanted: T, withinMs?: number): Promise<void> {
  const isIt = (answer: T): boolean => isDeepStrictEqual(answer, wanted);
  assert.equal(await eventually(async () => ask(), isIt, withinMs), wanted);
}

/** Polls until the answer has this status; fails with the last answer after the time limit. */
export async function untilStatus<T extends { readonly status: number; readonly body: unknown }>(
  status: number,
  ask: () => Promise<T>,
  withinMs?: number,
): Promise<T> {
  const answer = await eventually(ask, (one) => one.status === status, withinMs);
  assert.is(answer.status, status, JSON.stringify(answer.body));
  return answer;
}

/** Polls until the answer is wanted. Resolves with the last answer, also after the time limit. */
export async function eventually<T>(
  ask: () => Promise<T>,
  isWanted: (answer: T) => boolean,
  withinMs = 30_000,
): Promise<T> {
  const giveUpAtMs = performance.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (isWanted(answer) || performance.now() >= giveUpAtMs) return answer;
    await delay(20);
  }
}
