// Times of a clock as Observables. Apart from clock.ts, which commands need, but not rxjs.

import { Observable } from 'rxjs';
import type { Waits } from './clock.ts';

/** Emits once, after `ms`, and completes. */
export function timer$(clock: Waits, ms: number): Observable<void> {
  return new Observable((subscriber) =>
    clock.alarm(ms, () => {
      subscriber.next();
      subscriber.complete();
    }),
  );
}

/** Errors after `ms`. */
export function failAfter$(clock: Waits, ms: number, error: () => Error): Observable<never> {
  return new Observable((subscriber) => clock.alarm(ms, () => subscriber.error(error())));
}

/** Emits each `everyMs`, the first time after the first of them. Never completes. */
export function ticks$(clock: Waits, everyMs: number): Observable<void> {
  return new Observable((subscriber) => clock.every(everyMs, () => subscriber.next()));
}
