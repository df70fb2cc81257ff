// Slots for refreshes at one authorization server.

import type { Clock } from '../domain/time/clock.ts';

/** The most refreshes at one server: fewer than the requests that it may get, so that new accounts can be connected meanwhile. */
const MAX_AT_ONE_SERVER = 15;

interface ServerSlots {
  running: number;
  /** The refreshes that wait: first come, first served. */
  readonly waiting: Set<() => void>;
}

/**
 * Gives a refresh a slot at its server. Users whose tokens end at the same time, as after a night, wait for each other
 * here; without this, the bound of requests to one server (OutsidePlaces) would refuse most of them. Source: ADR 316.
 */
export class RefreshSlots {
  readonly #alarm: Clock['alarm'];
  readonly #servers = new Map<string, ServerSlots>();

  constructor({ alarm }: Clock) {
    this.#alarm = alarm;
  }

  /** The function that frees the slot; undefined when there was none within this time. */
  async take(name: string, longestMs: number): Promise<(() => void) | undefined> {
    const server = this.#servers.get(name) ?? { running: 0, waiting: new Set() };
    this.#servers.set(name, server);
    if (server.running < MAX_AT_ONE_SERVER) server.running += 1;
    else if (longestMs === 0 || !(await this.#waits(server, longestMs))) return undefined;
    return () => this.#end(name, server);
  }

  /** Ends a refresh. The slot passes to the next one, so the number of those that run stays. */
  #end(name: string, server: ServerSlots): void {
    const [next] = server.waiting;
    if (next !== undefined) {
      server.waiting.delete(next);
      next();
      return;
    }
    server.running -= 1;
    if (server.running === 0) this.#servers.delete(name);
  }

  #waits({ waiting }: ServerSlots, longestMs: number): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const begin = (): void => {
      cancel();
      resolve(true);
    };
    const cancel = this.#alarm(longestMs, () => {
      waiting.delete(begin);
      resolve(false);
    });
    waiting.add(begin);
    return promise;
  }
}
