// Requests that an outsider causes: documents of clients, and their keys.

import { isIP } from 'node:net';
import { WindowCounter } from '../../auth/limits/rate-limiter.ts';
import { codeOf } from '../../domain/errors/errors.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { lookupOutside } from '../../net/lookup.ts';
import { addressesIn, SPECIAL_NETWORKS } from '../../net/network-guard.ts';
import { allowedLookup } from '../../net/outside/allowed-lookup.ts';
import { OutsidePlaces } from '../../net/outside/outside-places.ts';
import { askOutside, OutsideFailure, OutsideSilence } from '../../net/outside/outside-request.ts';
import { OutsideHandshakes } from '../../net/tls/outside-handshakes.ts';

interface FetchBounds {
  readonly mostBytes: number;
  readonly timeoutMs: number;
}

interface Fetched {
  readonly status: number;
  readonly body: Buffer;
}

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

interface GuardedFetchOptions {
  readonly clock: Clock;
  /** Networks that are reached although they are not public, in CIDR form. */
  readonly openNetworks: readonly string[];
  /** Certificates of further authorities, in PEM. */
  readonly ca?: string | undefined;
}

/**
 * Sends requests that an outsider causes. They go to public addresses only, follow no redirect, and are bounded in
 * size, time and number. Answers are never quoted.
 */
export class GuardedFetch {
  readonly #isSpecial = addressesIn(SPECIAL_NETWORKS);
  readonly #isOpen: (address: string) => boolean;
  readonly #options: GuardedFetchOptions;
  readonly #counts = new WindowCounter({ windowSeconds: 60, keys: MAX_COUNTED });
  readonly #places: OutsidePlaces;
  readonly #handshakes: OutsideHandshakes;

  constructor(options: GuardedFetchOptions) {
    this.#options = options;
    this.#places = new OutsidePlaces(options.clock);
    this.#handshakes = new OutsideHandshakes(options.clock);
    this.#isOpen = addressesIn(options.openNetworks);
  }

  /** `causedBy`: the network of the client for which it is done. Rejects with FetchFailure. */
  async get(url: URL, causedBy: string, bounds: FetchBounds): Promise<Fetched> {
    if (url.protocol !== 'https:') throw new FetchFailure('its address is not https');
    if (this.#counts.add(causedBy, this.#options.clock.now(), 1).count > MAX_PER_MINUTE)
      throw new FetchFailure('this address has asked for too many documents within a minute', true);
    const leave = this.#places.take(url.host);
    if (leave === undefined)
      throw new FetchFailure('too many documents are being fetched at this moment', true);
    let isSilent = false;
    try {
      return await this.#fetch(url, bounds);
    } catch (thrown) {
      isSilent = thrown instanceof OutsideSilence;
      if (thrown instanceof FetchFailure) throw thrown;
      // The text of another cause may quote the server.
      throw new FetchFailure(
        `its server ${thrown instanceof OutsideFailure ? thrown.message : 'cannot be reached'}`,
      );
    } finally {
      leave(isSilent);
    }
  }

  #isAllowed(address: string): boolean {
    return !this.#isSpecial(address) || this.#isOpen(address);
  }

  readonly #lookup = allowedLookup({
    find: (hostname, family) => lookupOutside(hostname, { family }),
    isAllowed: (address) => this.#isAllowed(address),
    refused: () => new FetchFailure('its server has no public address'),
    failed: (thrown) =>
      new FetchFailure(
        NO_ADDRESS.has(codeOf(thrown))
          ? 'its server has no address'
          : 'the address of its server cannot be looked up now',
      ),
  });

  async #fetch(url: URL, bounds: FetchBounds): Promise<Fetched> {
    const host = url.hostname.replace(/^\[|\]$/g, '');
    if (isIP(host) !== 0 && !this.#isAllowed(host))
      throw new FetchFailure('its server has no public address');
    const { ca, clock } = this.#options;
    return askOutside(url, {
      lookup: this.#lookup,
      handshakes: this.#handshakes,
      headers: { Accept: 'application/json', 'User-Agent': 'stagedoor' },
      ca,
      alarm: clock.alarm,
      ...bounds,
    });
  }
}
