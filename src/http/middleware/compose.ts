// Composes middlewares once. koa-compose creates a bound function and a promise for each step of each request, to detect a second
// call of `next`, which no step here makes.

import type { Middleware } from 'koa';

/** Runs the steps in order, then `next`. A step may throw synchronously: steps that catch errors use `await`. */
export function compose<S, C>(steps: readonly Middleware<S, C>[]): Middleware<S, C> {
  return steps.reduceRight<Middleware<S, C>>(
    (rest, step) => (context, next) => step(context, () => rest(context, next)),
    (_context, next) => next(),
  );
}
