// Thousands of items of microseconds each as tasks of a TaskScheduler: in groups, since a task for each would cost more
// than the item.

import { TaskScheduler } from './task-scheduler.ts';

/** Items in one task. */
const ITEMS_TOGETHER = 50;

/**
 * Visits the items in order. Throws the first error of a visit. `scheduler`: that of the gateway; default one of its
 * own, for stores, which belong to no gateway.
 */
export function eachInGroups<T>(
  items: Iterable<T>,
  visit: (item: T) => void,
  scheduler: TaskScheduler = new TaskScheduler(),
): Promise<void> {
  return scheduler.each(inGroups(items, ITEMS_TOGETHER), (group) => group.forEach(visit));
}

/** Views of the items by their names, in order; without those of items that have none. */
export async function viewsByName<Item, View>(
  items: Iterable<Item>,
  nameOf: (item: Item) => string,
  view: (item: Item) => View | undefined,
  scheduler: TaskScheduler,
): Promise<Record<string, View>> {
  const views: [string, View][] = [];
  const add = (item: Item): void => {
    const shown = view(item);
    if (shown !== undefined) views.push([nameOf(item), shown]);
  };
  await eachInGroups(items, add, scheduler);
  return Object.fromEntries(views);
}

/** The items in groups of this size, in order; each is read when its group is. */
export function* inGroups<T>(items: Iterable<T>, size: number): Generator<readonly T[]> {
  let group: T[] = [];
  for (const item of items) {
    group.push(item);
    if (group.length < size) continue;
    yield group;
    group = [];
  }
  if (group.length > 0) yield group;
}
