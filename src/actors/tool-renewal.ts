// Lists the tools of one template again for calls that the known list would refuse: servers change their tools without a notice.
// Once for all calls at the same time, and seldom, because wrong calls cost their client nothing.

import { LIMITS } from '../domain/limits.ts';
import type { InstanceRef } from './instances/instance-ref.ts';

/** Instances that list again; the others run the same server. */
export const MOST_ASKED = 8;

/** Those of one template. */
export class ToolRenewal {
  readonly #instances: () => readonly Pick<InstanceRef, 'tools'>[];
  readonly #now: () => number;
  #underWay: Promise<void> | undefined;
  #waiting = 0;
  #endedAtMs = Number.NEGATIVE_INFINITY;

  /** `instances` are those that calls go to; `now` is a monotonic clock in ms. */
  constructor(instances: () => readonly Pick<InstanceRef, 'tools'>[], now: () => number) {
    this.#instances = instances;
    this.#now = now;
  }

  /**
   * Resolves when the tools were listed, at the latest after LIMITS.toolLookupMs; never rejects. Undefined when that was done
   * within LIMITS.toolRenewalMs, when LIMITS.queuedPerInstance calls wait for it already, and when there is no instance.
   */
  renew(): Promise<void> | undefined {
    if (this.#underWay === undefined && !this.#begin()) return undefined;
    if (this.#waiting >= LIMITS.queuedPerInstance) return undefined;
    this.#waiting += 1;
    return this.#underWay;
  }

  /** False when there is nothing to wait for. */
  #begin(): boolean {
    if (this.#now() - this.#endedAtMs < LIMITS.toolRenewalMs) return false;
    const asked = this.#instances().slice(0, MOST_ASKED);
    const listings = asked.flatMap(({ tools }) => tools?.lookUp() ?? []);
    if (listings.length === 0) return false;
    this.#underWay = this.#finish(listings);
    return true;
  }

  async #finish(listings: readonly Promise<void>[]): Promise<void> {
    await Promise.all(listings);
    this.#underWay = undefined;
    this.#waiting = 0;
    this.#endedAtMs = this.#now();
  }
}
