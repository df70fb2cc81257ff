// A hot stream for the subscribers of single templates. With a filter each value would be compared by all of them, and each that
// leaves would be looked for among all: a stream at `/mcp` has one subscription for each of up to 2,000 templates.

import { Observable, Subject } from 'rxjs';

/** The values of a hot stream, by template. */
export class ByTemplate<T extends { readonly template: string }> {
  readonly #subjects = new Map<string, Subject<T>>();
  #isComplete = false;

  constructor(values$: Observable<T>) {
    values$.subscribe({
      next: (value) => this.#subjects.get(value.template)?.next(value),
      complete: () => {
        this.#isComplete = true;
        for (const subject of this.#subjects.values()) subject.complete();
      },
    });
  }

  /** Hot, no replay; completes with the stream. */
  of(template: string): Observable<T> {
    return new Observable((subscriber) => {
      if (this.#isComplete) return subscriber.complete();
      const subject = this.#subjects.get(template) ?? new Subject<T>();
      this.#subjects.set(template, subject);
      const subscription = subject.subscribe(subscriber);
      return () => {
        subscription.unsubscribe();
        if (!subject.observed) this.#subjects.delete(template);
      };
    });
  }
}
