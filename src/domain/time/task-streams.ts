// Values of Observables as tasks of a TaskScheduler: thousands of clients may get the same one, or one client thousands.

import { Observable } from 'rxjs';
import type { TaskScheduler } from './task-scheduler.ts';

/** Emits the value in a task, and completes. */
export function inTask<T>(value: T, { run }: TaskScheduler): Observable<T> {
  return new Observable((subscriber) => {
    run(() => {
      subscriber.next(value);
      subscriber.complete();
    });
  });
}

/** Emits each value in a task, until it is unsubscribed from, and completes. */
export function inTasks<T>(values: Iterable<T>, scheduler: TaskScheduler): Observable<T> {
  return new Observable((subscriber) => {
    function* whileWanted(): Generator<T> {
      for (const value of values) {
        if (subscriber.closed) return;
        yield value;
      }
    }
    scheduler
      .each(whileWanted(), (value) => subscriber.next(value))
      .then(() => subscriber.complete())
      .catch((thrown) => subscriber.error(thrown));
  });
}

/** Emits each value in a task. One that waits is replaced by a later one with the same key; the end comes at once. */
export function latestInTasks<T>(
  values$: Observable<T>,
  keyOf: (value: T) => string,
  { run }: TaskScheduler,
): Observable<T> {
  return new Observable((subscriber) => {
    const waiting = new Map<string, T>();
    const emit = (key: string, value: T): void => {
      const latest = waiting.get(key) ?? value;
      waiting.delete(key);
      subscriber.next(latest);
    };
    return values$.subscribe({
      next: (value) => {
        const key = keyOf(value);
        const isWaiting = waiting.has(key);
        waiting.set(key, value);
        if (!isWaiting) run(() => emit(key, value));
      },
      error: (thrown) => subscriber.error(thrown),
      complete: () => subscriber.complete(),
    });
  });
}
