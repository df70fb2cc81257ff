// The places for requests to servers that outsiders name.

import { LruMap } from '../../domain/memory/lru-map.ts';
import type { Clock } from '../../domain/time/clock.ts';

/** The most places, in all and of one server. */
export const PLACES = {
  answered: { all: 100, atServer: 20 },
  unknown: { all: 40, atServer: 20 },
  silent: { all: 20, atServer: 10 },
} as const;
/** The part of the places that requests which wait may take: those that do not wait find the others free. */
const WAITING_PART = 0.8;
/** The time for which a server counts as silent, even if it answers meanwhile, in ms. */
const SILENT_MS = 60_000;
const MAX_KNOWN = 10_000;

type Manner = keyof typeof PLACES;

/** Gives the place back, once. `isSilent`: whether the server was silent; undefined if it was not asked. */
export type OutsidePlace = (isSilent?: boolean) => void;

/**
 * Gives requests to servers that outsiders name their places, or none. A server that does not answer holds a place until the time
 * is over, so the last answer of a server decides: silent servers have few places, and take none from servers that answer.
 * Requests that may wait get a free place in turn, those of the server that has the fewest first. Source: ADR 440.
 */
export class OutsidePlaces {
  readonly #clock: Pick<Clock, 'now' | 'alarm'>;
  readonly #running: Record<Manner, number> = { answered: 0, unknown: 0, silent: 0 };
  readonly #atServers = new Map<string, number>();
  /** What gives each waiting request its place, by server. */
  readonly #waiting = new Map<string, Set<(place: OutsidePlace) => void>>();
  readonly #answered = new LruMap<true>(MAX_KNOWN);
  /** The time at which each server was silent last. */
  readonly #silent = new LruMap<number>(MAX_KNOWN);

  constructor(clock: Pick<Clock, 'now' | 'alarm'>) {
    this.#clock = clock;
  }

  /** A place; undefined if there is none. */
  take(server: string): OutsidePlace | undefined {
    return this.#isFree(server, 1) ? this.#enter(server) : undefined;
  }

  /** Resolves with a place as soon as there is one; undefined if there was none within the time. */
  async wait(server: string, maxWaitMs: number): Promise<OutsidePlace | undefined> {
    if (!this.#waiting.has(server) && this.#isFree(server, WAITING_PART)) return this.#enter(server);
    const waiting = this.#waiting.get(server) ?? new Set();
    this.#waiting.set(server, waiting);
    const { promise, resolve } = Promise.withResolvers<OutsidePlace | undefined>();
    const go = (place?: OutsidePlace): void => {
      cancel();
      waiting.delete(go);
      if (waiting.size === 0) this.#waiting.delete(server);
      resolve(place);
    };
    const cancel = this.#clock.alarm(maxWaitMs, go);
    waiting.add(go);
    return promise;
  }

  #enter(server: string): OutsidePlace {
    const manner = this.#mannerOf(server);
    this.#running[manner] += 1;
    this.#atServers.set(server, this.#placesOf(server) + 1);
    let isHeld = true;
    return (isSilent) => {
      if (!isHeld) return;
      isHeld = false;
      this.#running[manner] -= 1;
      const left = this.#placesOf(server) - 1;
      if (left > 0) this.#atServers.set(server, left);
      else this.#atServers.delete(server);
      if (isSilent === true) this.#silent.set(server, this.#clock.now());
      if (isSilent === false) this.#answered.set(server, true);
      this.#passOn();
    };
  }

  /** Gives what is free to those that wait. */
  #passOn(): void {
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      const [server, [go]] = next;
      go?.(this.#enter(server));
    }
  }

  /** The waiting server that has the fewest places, and may have one more. */
  #next() {
    const free = [...this.#waiting].filter(([server]) => this.#isFree(server, WAITING_PART));
    return free.sort(([one], [other]) => this.#placesOf(one) - this.#placesOf(other))[0];
  }

  #isFree(server: string, part: number): boolean {
    const manner = this.#mannerOf(server);
    const { all, atServer } = PLACES[manner];
    return this.#running[manner] < all * part && this.#placesOf(server) < Math.floor(atServer * part);
  }

  #placesOf(server: string): number {
    return this.#atServers.get(server) ?? 0;
  }

  #mannerOf(server: string): Manner {
    const silentAtMs = this.#silent.get(server);
    if (silentAtMs !== undefined && this.#clock.now() - silentAtMs < SILENT_MS) return 'silent';
    return this.#answered.has(server) ? 'answered' : 'unknown';
  }
}
