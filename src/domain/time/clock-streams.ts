// Times of a clock as Observables. Apart from clock.ts, which commands need, but not rxjs.

import { type MonoTypeOperatorFunction, Observable, race } from 'rxjs';
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

/** Errors if the source neither emits nor ends within `ms`. After its first value it may take any time. */
export function startsWithin<T>(clock: Waits, ms: number, error: () => Error): MonoTypeOperatorFunction<T> {
  const late$ = new Observable<never>((late) => clock.alarm(ms, () => late.error(error())));
  return (source$) => race(source$, late$);
}

/** Emits each `everyMs`, the first time after the first of them. Never completes. */
export function ticks$(clock: Waits, everyMs: number): Observable<void> {
  return new Observable((subscriber) => clock.every(everyMs, () => subscriber.next()));
}
