// Lists the tools of one template again for calls that the known list would refuse: servers may change their tools without a notice.
// One listing serves all waiting calls, and listings are rare, because wrong calls cost a client nothing.

import { LIMITS } from '../domain/limits.ts';
import type { InstanceRef } from './instances/instance-ref.ts';

/** Most instances that list again; the others run the same server. */
export const MOST_ASKED = 8;

export class ToolRenewal {
  readonly #instances: () => readonly Pick<InstanceRef, 'tools'>[];
  readonly #now: () => number;
  #renewal: Promise<void> | undefined;
  #waiting = 0;
  #endedAtMs = Number.NEGATIVE_INFINITY;

  /** `instances`: those that get calls; `now`: a monotonic clock in ms. */
  constructor(instances: () => readonly Pick<InstanceRef, 'tools'>[], now: () => number) {
    this.#instances = instances;
    this.#now = now;
  }

  /**
   * Resolves when the tools were listed, at the latest after LIMITS.toolLookupMs; never rejects. Undefined within
   * LIMITS.toolRenewalMs after the last listing, when LIMITS.queuedPerInstance calls wait already, and without an instance.
   */
  renew(): Promise<void> | undefined {
    if (this.#renewal === undefined && !this.#begin()) return undefined;
    if (this.#waiting >= LIMITS.queuedPerInstance) return undefined;
    this.#waiting += 1;
    return this.#renewal;
  }

  #begin(): boolean {
    if (this.#now() - this.#endedAtMs < LIMITS.toolRenewalMs) return false;
    const asked = this.#instances().slice(0, MOST_ASKED);
    const listings = asked.flatMap(({ tools }) => tools?.lookUp() ?? []);
    if (listings.length === 0) return false;
    this.#renewal = this.#finish(listings);
    return true;
  }

  async #finish(listings: readonly Promise<void>[]): Promise<void> {
    await Promise.all(listings);
    this.#renewal = undefined;
    this.#waiting = 0;
    this.#endedAtMs = this.#now();
  }
}
