// Waits with a bound: polls until the answer is the expected one.

import { isDeepStrictEqual } from 'node:util';
import * as assert from 'uvu/assert';

// Taken before any spec can replace the global timers with simulated ones.
const { setImmediate: nextTurn, setTimeout: startTimer } = globalThis;

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

/** Polls until it is true; fails after 30 s. */
export async function until(
  isTrue: () => boolean | Promise<boolean>,
  what = `it is true: ${isTrue}`,
): Promise<void> {
  const isSo = await eventually(async () => isTrue(), Boolean);
  if (!isSo) throw new Error(`waited in vain until ${what}`);
}

/** Polls until the answer is wanted. Resolves with the last answer, also after the time limit. */
export async function eventually<T>(
  ask: () => Promise<T>,
  isWanted: (answer: T) => boolean,
  withinMs = 30_000,
): Promise<T> {
  const beganAtMs = performance.now();
  for (;;) {
    const answer = await ask();
    const waitedMs = performance.now() - beganAtMs;
    if (isWanted(answer) || waitedMs >= withinMs) return answer;
    await pause(waitedMs);
  }
}

/** First a turn of the event loop. What is not true soon depends on another process, which needs the processor, too. */
function pause(waitedMs: number): Promise<void> {
  return new Promise((resolve) => {
    if (waitedMs < 50) nextTurn(resolve);
    else startTimer(resolve, Math.min(20, waitedMs / 25));
  });
}
