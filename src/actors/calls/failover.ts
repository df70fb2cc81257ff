// Whether a call that failed may be made again, wherever and by whom. How often, and at which instance, is decided by who
// carries it: call.ts, stateless-clients.ts or client-session-call.ts. Source: ADR 9.

import type { Delivered } from '../../domain/errors.ts';
import type { ExchangeRequest } from '../../domain/exchange.ts';
import { METHODS } from '../../domain/mcp.ts';
import type { ToolCache } from '../instances/tool-cache.ts';
import { toolOf } from './call-order.ts';
import type { RetryBudget } from './retry-budget.ts';

/** Where a request is sent; `tools` is undefined while nobody is connected there. */
interface Asked {
  readonly tools: Pick<ToolCache, 'isRepeatable'> | undefined;
}

/** True when making it twice does no harm. Asked before sending: afterwards the session that knew the tool may be gone. */
export function isRepeatable(request: ExchangeRequest, { tools }: Asked): boolean {
  const tool = toolOf(request);
  if (tool !== undefined) return tools?.isRepeatable(tool) ?? false;
  return METHODS[request.method]?.repeatable ?? false;
}

/** What certainly did not arrive may go on, what perhaps did only if it may be repeated, what was answered never. */
export function mayGoOn(delivered: Delivered, mayRepeat: boolean): boolean {
  return delivered === 'no' || (delivered === 'unknown' && mayRepeat);
}

/** Asked last, when somebody is there to take it: a repeat is paid for, and one that nobody can take costs nothing. */
export function affords(budget: Pick<RetryBudget, 'take'>, delivered: Delivered): boolean {
  return delivered === 'no' || budget.take();
}
