// A hot stream for the subscribers of single templates. With a filter each value would be compared by all of them, and each that
// leaves would be looked for among all: a stream at `/mcp` has one subscription for each of up to 2,000 templates.

import { Observable, Subject } from 'rxjs';

/** The values of a hot stream, by template: hot, no replay; they complete with the stream. */
export function byTemplate<T extends { readonly template: string }>(
  values$: Observable<T>,
): (template: string) => Observable<T> {
  const subjects = new Map<string, Subject<T>>();
  let isComplete = false;
  values$.subscribe({
    next: (value) => subjects.get(value.template)?.next(value),
    complete: () => {
      isComplete = true;
      for (const subject of subjects.values()) subject.complete();
    },
  });
  return (template) =>
    new Observable((subscriber) => {
      if (isComplete) return subscriber.complete();
      const subject = subjects.get(template) ?? new Subject<T>();
      subjects.set(template, subject);
      const subscription = subject.subscribe(subscriber);
      return () => {
        subscription.unsubscribe();
        if (!subject.observed) subjects.delete(template);
      };
    });
}
