// Thousands of items of microseconds each as tasks of a TaskScheduler: in groups, since a task for each would cost more
// than the item.

import { TaskScheduler } from './task-scheduler.ts';

/** Items in one task. */
const ITEMS_TOGETHER = 50;

/**
 * Visits the items in order. Rejects with the first error of a visit. `scheduler`: that of the gateway; default one of its
 * own, for stores, which belong to no gateway.
 */
export function eachInGroups<T>(
  items: readonly T[],
  visit: (item: T) => void,
  scheduler: Pick<TaskScheduler, 'each'> = new TaskScheduler(),
): Promise<void> {
  const count = Math.ceil(items.length / ITEMS_TOGETHER);
  const starts = Array.from({ length: count }, (_, index) => index * ITEMS_TOGETHER);
  return scheduler.each(starts, (start) => items.slice(start, start + ITEMS_TOGETHER).forEach(visit));
}
