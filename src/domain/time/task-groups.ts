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
  return scheduler.each(inGroups(items, ITEMS_TOGETHER), (group) => group.forEach(visit));
}

/** The items in groups of this size, in order. */
export function* inGroups<T>(items: readonly T[], size: number): Generator<readonly T[]> {
  for (let at = 0; at < items.length; at += size) yield items.slice(at, at + size);
}
