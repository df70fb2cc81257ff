// Values of Observables as tasks of a TaskScheduler: thousands of clients may get the same one, or one client thousands.

import { Observable } from 'rxjs';
import type { TaskScheduler } from './task-scheduler.ts';

/** Emits the value in a task, and completes. */
export function inTask<T>(value: T, { run }: Pick<TaskScheduler, 'run'>): Observable<T> {
  return new Observable((subscriber) => {
    run(() => {
      subscriber.next(value);
      subscriber.complete();
    });
  });
}

/** Emits each value in a task, until it is unsubscribed from, and completes. */
export function inTasks<T>(values: Iterable<T>, scheduler: Pick<TaskScheduler, 'each'>): Observable<T> {
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
