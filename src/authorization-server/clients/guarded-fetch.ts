// Requests that an outsider causes: documents of clients, and their keys.

import { codeOf } from '../../domain/errors/errors.ts';
import { WindowCounter } from '../../domain/memory/window-counter.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { lookupOutside } from '../../net/lookup.ts';
import { OutsideClient, whyUnanswered } from '../../net/outside/outside-client.ts';

/** The failure of a request, in words for people, without any part of the answer. */
export class FetchFailure extends Error {
  readonly isBusy: boolean;

  constructor(message: string, isBusy = false) {
    super(message);
    this.name = 'FetchFailure';
    this.isBusy = isBusy;
  }
}

/** The answers of DNS by which a name has no address. Other failures are those of the look-up. */
const NO_ADDRESS: ReadonlySet<string | undefined> = new Set(['ENOTFOUND', 'ENODATA']);
const MAX_PER_MINUTE = 10;
const MAX_COUNTED = 10_000;

/**
 * Sends requests that an outsider causes. They go to public addresses only, follow no redirect, and are bounded in
 * size, time and number. Answers are never quoted.
 */
export class GuardedFetch {
  readonly #clock: Clock;
  /** Certificates of further authorities, in PEM. */
  readonly #ca: string | undefined;
  readonly #counts = new WindowCounter({ windowSeconds: 60, keys: MAX_COUNTED });
  readonly #client: OutsideClient;

  /** `openNetworks`: networks that are reached although they are not public, in CIDR form. */
  constructor(clock: Clock, openNetworks: readonly string[], ca?: string) {
    this.#clock = clock;
    this.#ca = ca;
    this.#client = new OutsideClient(clock, openNetworks);
  }

  /** `causedBy`: the network of the client for which it is done. Throws FetchFailure. */
  async get(
    url: URL,
    causedBy: string,
    bounds: { readonly mostBytes: number; readonly timeoutMs: number },
  ): Promise<{ readonly status: number; readonly body: Buffer }> {
    if (url.protocol !== 'https:') throw new FetchFailure('its address is not https');
    if (this.#counts.add(causedBy, this.#clock.now(), 1).count > MAX_PER_MINUTE)
      throw new FetchFailure('this address has asked for too many documents within a minute', true);
    const place = this.#client.place(url);
    if (place === undefined)
      throw new FetchFailure('too many documents are being fetched at this moment', true);
    const rules = {
      isAllowed: this.#client.isPublic,
      find: (hostname: string, family: number) => lookupOutside(hostname, { family }),
      refused: () => new FetchFailure('its server has no public address'),
      failed: lookupFailure,
    };
    const headers = { Accept: 'application/json', 'User-Agent': 'stagedoor' };
    try {
      return await this.#client.ask(url, place, rules, { headers, ca: this.#ca, ...bounds });
    } catch (thrown) {
      if (thrown instanceof FetchFailure) throw thrown;
      throw new FetchFailure(`its server ${whyUnanswered(thrown)}`);
    }
  }
}

function lookupFailure(thrown: Error): FetchFailure {
  return new FetchFailure(
    NO_ADDRESS.has(codeOf(thrown))
      ? 'its server has no address'
      : 'the address of its server cannot be looked up now',
  );
}
