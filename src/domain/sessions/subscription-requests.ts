// The requests of one session about its subscriptions that are under way: answers come in any order.

import type { ExchangeRequest } from '../calls/exchange.ts';

/**
 * The requests `resources/subscribe` and `resources/unsubscribe` under way: of two for one resource, the one that was sent
 * later counts.
 */
export class SubscriptionRequests {
  /** The last requests about each resource. */
  readonly #groups = new Map<string, { readonly method: string; count: number; isOverridden: boolean }>();

  /**
   * Notes that the request is sent. `key` names the resource. `isOverridden`: the client has sent the opposite request since,
   * so that the answer changes nothing. `end` forgets it; idempotent.
   */
  begin(
    key: string,
    { method }: ExchangeRequest,
  ): { readonly isOverridden: () => boolean; readonly end: () => void } {
    const before = this.#groups.get(key);
    if (before !== undefined && before.method !== method) before.isOverridden = true;
    const group = before?.isOverridden === false ? before : { method, count: 0, isOverridden: false };
    group.count += 1;
    this.#groups.set(key, group);
    let isOver = false;
    const end = (): void => {
      if (isOver) return;
      isOver = true;
      group.count -= 1;
      if (group.count === 0 && this.#groups.get(key) === group) this.#groups.delete(key);
    };
    return { isOverridden: () => group.isOverridden, end };
  }
}
