// Makes one middleware of several, once. koa-compose makes a bound function and a promise for each step of each request, to find a
// second call of `next`, which no step here makes.

import type { Middleware } from 'koa';

/** Runs the steps from first to last, then `next`. What a step throws at once is thrown at once: steps that catch use `await`. */
export function compose<S, C>(steps: readonly Middleware<S, C>[]): Middleware<S, C> {
  return steps.reduceRight<Middleware<S, C>>(
    (rest, step) => (context, next) => step(context, () => rest(context, next)),
    (_context, next) => next(),
  );
}
