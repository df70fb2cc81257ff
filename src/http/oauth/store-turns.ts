// Spreads the queries of sign-ins over turns of the event loop: one in each turn, however many sign-ins there are at once. On a file a
// query and what follows it block the loop, and calls go first. Source: ADR 261.

import type { TaskScheduler } from '../../domain/task-scheduler.ts';

/** The same part of the store, whose operations begin in the order in which they were asked for. */
export function inTurns<T extends object>(part: T, turns: Pick<TaskScheduler, 'turn'>): T {
  return new Proxy(part, {
    get: (target, name) => {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== 'function') return method;
      return async (...parameters: unknown[]) => {
        await turns.turn();
        return method.apply(target, parameters);
      };
    },
  });
}
