// Counts what outsiders cause, such as rows: by network, and by site, since one outsider may have all networks of a site.

import { type Window, WindowCounter } from '../domain/memory/window-counter.ts';
import { networkOf, siteOf } from './network-of.ts';

/** As many networks a site may use up, if nothing else is said. */
const NETWORKS_OF_SITE = 10;
const MAX_COUNTED = 10_000;

interface OutsiderBounds {
  readonly windowSeconds: number;
  readonly perNetwork: number;
  /** Default: the same. */
  readonly siteSeconds?: number;
  readonly perSite?: number;
}

/** The counts of all outsiders, for a bounded number of networks and of sites. */
export class OutsiderCounter {
  readonly #perNetwork: number;
  readonly #perSite: number;
  readonly #networks: WindowCounter;
  readonly #sites: WindowCounter;

  constructor({ windowSeconds, perNetwork, siteSeconds = windowSeconds, perSite }: OutsiderBounds) {
    this.#perNetwork = perNetwork;
    this.#perSite = perSite ?? NETWORKS_OF_SITE * perNetwork;
    this.#networks = new WindowCounter({ windowSeconds, keys: MAX_COUNTED });
    this.#sites = new WindowCounter({ windowSeconds: siteSeconds, keys: MAX_COUNTED });
  }

  /** The window that has too many, if any. What a full network causes does not count for its site. */
  add(address: string, nowMs: number): Window | undefined {
    const ofNetwork = this.#networks.add(networkOf(address), nowMs);
    if (ofNetwork.count > this.#perNetwork) return ofNetwork;
    const ofSite = this.#sites.add(siteOf(address), nowMs, 1, this.#perSite);
    return ofSite.count > this.#perSite ? ofSite : undefined;
  }
}
