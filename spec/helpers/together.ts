// Runs tests concurrently, up to a limit, because most of their time is waiting. Each is counted and reported separately.
// They share nothing, and the suite's hooks for each test do not apply to them.

import type { Body, Suite } from './suite.ts';

/** Declares tests like `declare`, which is a suite or the result of its `needs`. */
export function together(declare: Suite | ReturnType<Suite['needs']>, atOnce: number) {
  const bodies: Body[] = [];
  let results: readonly Promise<unknown>[] | undefined;
  return (name: string, body: Body): void => {
    const index = bodies.push(body) - 1;
    declare(name, () => {
      results ??= begin(bodies, atOnce);
      return results[index];
    });
  };
}

function begin(bodies: readonly Body[], atOnce: number): readonly Promise<unknown>[] {
  const outcomes = bodies.map(() => Promise.withResolvers<unknown>());
  const waiting = bodies.map((body, index) => ({ body, outcome: outcomes[index] }));
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const result = (async () => next.body())();
      next.outcome?.resolve(result);
      await result.catch(() => undefined); // its own test reports it
    }
  };
  for (let worker = 0; worker < atOnce; worker += 1) void work();
  for (const { promise } of outcomes) promise.catch(() => undefined); // its test awaits it later
  return outcomes.map(({ promise }) => promise);
}
