// The requests of one session about its subscriptions that are under way: answers come in any order.

import type { ExchangeRequest } from '../calls/exchange.ts';

/** Requests of one method about one resource that no request of the other method came between. */
interface RequestGroup {
  readonly method: string;
  count: number;
  isOverridden: boolean;
}

interface RequestUnderWay {
  /** True when the client has sent the opposite request since: its answer changes nothing. */
  readonly isOverridden: () => boolean;
  /** Forgets it. Idempotent. */
  readonly end: () => void;
}

/**
 * The requests `resources/subscribe` and `resources/unsubscribe` under way: of two for one resource, the one that was sent
 * later counts.
 */
export class SubscriptionRequests {
  /** The last requests about each resource. */
  readonly #groups = new Map<string, RequestGroup>();

  /** Notes that the request is sent. `key` names the resource. */
  begin(key: string, { method }: ExchangeRequest): RequestUnderWay {
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
