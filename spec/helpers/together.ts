// Tests that begin together, so many at a time, since most of their time is that of waiting for something. Each is counted
// and reported by itself. They share nothing, and the hooks around each test of the suite are not for them.

import type { Body, Suite } from './suite.ts';

/** Declares tests like `declare`, which is a suite or what its `needs` gives. */
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
      await result.catch(() => undefined); // its own test tells
    }
  };
  for (let worker = 0; worker < atOnce; worker += 1) void work();
  for (const { promise } of outcomes) promise.catch(() => undefined); // until its test asks
  return outcomes.map(({ promise }) => promise);
}
