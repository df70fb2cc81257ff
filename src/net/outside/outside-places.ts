// The places for requests to servers that outsiders name.

import { LruMap } from '../../domain/memory/lru-map.ts';
import type { Clock } from '../../domain/time/clock.ts';

const PLACES = { answered: 100, unknown: 40, silent: 10 } as const;
/** The most places of one server. */
const MAX_AT_ONE_SERVER = 20;
/** The time for which a server counts as silent, even if it answers meanwhile, in ms. */
const SILENT_MS = 60_000;
const MAX_KNOWN = 10_000;

type Manner = keyof typeof PLACES;

/**
 * Gives requests to servers that outsiders name their places, or none. A server that does not answer holds a place until the time
 * is over, so the last answer of a server decides: silent servers have few places, and take none from servers that answer.
 * Source: ADR 307.
 */
export class OutsidePlaces {
  readonly #now: Clock['now'];
  readonly #running: Record<Manner, number> = { answered: 0, unknown: 0, silent: 0 };
  readonly #atServers = new Map<string, number>();
  readonly #answered = new LruMap<true>(MAX_KNOWN);
  /** The time at which each server was silent last. */
  readonly #silent = new LruMap<number>(MAX_KNOWN);

  constructor({ now }: Clock) {
    this.#now = now;
  }

  /** The function that gives the place back, and says whether the server was silent; undefined if there is none. */
  take(server: string): ((isSilent: boolean) => void) | undefined {
    const manner = this.#mannerOf(server);
    const atServer = this.#atServers.get(server) ?? 0;
    if (this.#running[manner] >= PLACES[manner] || atServer >= MAX_AT_ONE_SERVER) return undefined;
    this.#running[manner] += 1;
    this.#atServers.set(server, atServer + 1);
    return (isSilent) => {
      this.#running[manner] -= 1;
      const left = (this.#atServers.get(server) ?? 1) - 1;
      if (left > 0) this.#atServers.set(server, left);
      else this.#atServers.delete(server);
      if (isSilent) this.#silent.set(server, this.#now());
      else this.#answered.set(server, true);
    };
  }

  #mannerOf(server: string): Manner {
    const silentAtMs = this.#silent.get(server);
    if (silentAtMs !== undefined && this.#now() - silentAtMs < SILENT_MS) return 'silent';
    return this.#answered.has(server) ? 'answered' : 'unknown';
  }
}
