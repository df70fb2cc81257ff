// Work on many rows of the store in few operations: reads and claims of sessions. Source: ADR 143.

import type { Clock } from '../../../domain/time/clock.ts';
import { MAX_SESSION_ROWS } from '../../../persistence/store.ts';

/**
 * Pause after a group of reads or claims, in ms, in which more of the same burst arrive: fewer statements for as many
 * sessions.
 */
const PAUSE_MS = 50;

/**
 * Does work in batches, one at a time. The first item is done alone and at once; items that arrive during this, or
 * during the pause after it, form the next batch. `work` resolves with the result of each item.
 */
export function batched<Item, Result>(
  clock: Clock,
  work: (items: readonly Item[]) => Promise<(item: Item) => Result>,
): (item: Item) => Promise<Result> {
  const waiting: ({ readonly item: Item } & PromiseWithResolvers<Result>)[] = [];
  let isWorking = false;
  let endPause = (): void => {};

  const pause = async (): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = clock.background.alarm(PAUSE_MS, resolve);
    endPause = resolve;
    await promise;
    cancel();
  };

  const workAll = async (): Promise<void> => {
    isWorking = true;
    while (waiting.length > 0) {
      const batch = waiting.splice(0, MAX_SESSION_ROWS);
      try {
        const resultOf = await work(batch.map(({ item }) => item));
        for (const { item, resolve } of batch) resolve(resultOf(item));
      } catch (thrown) {
        for (const { reject } of batch) reject(thrown);
      }
      if (waiting.length < MAX_SESSION_ROWS) await pause();
    }
    isWorking = false;
  };

  return (item) => {
    const added = { item, ...Promise.withResolvers<Result>() };
    waiting.push(added);
    if (!isWorking) void workAll();
    else if (waiting.length >= MAX_SESSION_ROWS) endPause();
    return added.promise;
  };
}
