// Whether a failed call may be repeated, and the retry budget of the gateway. The call and its route decide how often, and at
// which instance (call.ts, routes.ts). Source: ADR 9.

import { RecentCounts } from '../../balancing/recent-counts.ts';
import type { Delivered, GatewayError } from '../../domain/errors.ts';
import { type ExchangeRequest, toolOf } from '../../domain/exchange.ts';
import { LIMITS } from '../../domain/limits.ts';
import { METHODS } from '../../domain/mcp.ts';
import type { ToolCache } from '../instances/tool-cache.ts';

/** True when a repeat does no harm. To be called before sending: afterwards the session that knew the tool may be gone. */
export function isRepeatable(
  request: ExchangeRequest,
  { tools }: { readonly tools: Pick<ToolCache, 'isRepeatable'> | undefined },
): boolean {
  const tool = toolOf(request);
  if (tool !== undefined) return tools?.isRepeatable(tool) ?? false;
  return METHODS[request.method]?.repeatable ?? false;
}

/** True for a request that certainly did not arrive, and for one that perhaps did if it is safe to repeat; never after an answer. */
export function isRepeatAllowed(delivered: Delivered, mayRepeat: boolean): boolean {
  return delivered === 'no' || (delivered === 'unknown' && mayRepeat);
}

/** True for an answer over HTTP that is about the request: every instance of the template would give it. Source: ADR 107. */
export function isAboutRequest({ facts: { backendStatus = 0 } }: GatewayError): boolean {
  return ABOUT_REQUEST.has(backendStatus);
}

/** Not those about credentials, the address, the session, the rate or the state of one server. */
const ABOUT_REQUEST: ReadonlySet<number> = new Set([400, 402, 406, 409, 411, 413, 414, 415, 417, 422, 451]);

/** Bounds the repeats of uncertain calls of a gateway by its recent traffic: they would overload a failing backend. */
export class RetryBudget {
  readonly #now: () => number;
  readonly #counts = new RecentCounts();

  /** `now` is a monotonic clock in ms. */
  constructor(now: () => number) {
    this.#now = now;
  }

  countCall(): void {
    this.#counts.addFirst(this.#now());
  }

  /** True, and counted, when one more repeat is within 20 % of the last 10 s plus 10. Source: ADR 9. */
  take(): boolean {
    const now = this.#now();
    const [calls, repeats] = this.#counts.sums(now);
    if (repeats + 1 > calls * LIMITS.retryBudgetShare + LIMITS.retryBudgetAllowance) return false;
    this.#counts.addSecond(now);
    return true;
  }
}
