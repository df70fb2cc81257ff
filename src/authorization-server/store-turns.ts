// Spreads the queries of sign-ins over turns of the event loop: one in each turn, however many sign-ins there are at
// once.

import { TaskScheduler } from '../domain/time/task-scheduler.ts';

/**
 * The queue of the queries of sign-ins. With SQLite a query and the work after it block the event loop, and calls go first.
 * Networks take turns, so that one with many requests does not hold up the sign-ins of others. Source: ADR 247.
 */
export class StoreTurns {
  readonly #turns = new TaskScheduler({ perTurn: 1 });
  /** The queries that wait, by network; the first network is the next. */
  readonly #waiting = new Map<string, (() => void)[]>();
  readonly #network: () => string;

  /** `network`: of the request that is being served. */
  constructor(network: () => string) {
    this.#network = network;
  }

  /** The part of the store with turns: the operations of one network begin in the order in which they were asked for. */
  spread<T extends object>(part: T): T {
    return new Proxy(part, {
      get: (target, name) => {
        const method: unknown = Reflect.get(target, name);
        if (typeof method !== 'function') return method;
        return async (...parameters: unknown[]) => {
          await this.turn();
          return method.apply(target, parameters);
        };
      },
    });
  }

  /** Resolves when it is the turn of the network of this request. */
  turn(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const network = this.#network();
    const own = this.#waiting.get(network);
    if (own === undefined) this.#waiting.set(network, [resolve]);
    else own.push(resolve);
    // Bounded: each request waits for one operation at a time, and the connections of an address are limited.
    this.#turns.run(() => this.#next());
    return promise;
  }

  #next(): void {
    for (const [network, own] of this.#waiting) {
      this.#waiting.delete(network);
      own.shift()?.();
      if (own.length > 0) this.#waiting.set(network, own);
      return;
    }
  }
}
