// The rules of retries and hedges: which requests may be retried, what follows a failure, and whether one more
// attempt begins beside a silent one. They are pure. `Call` asks them; BindingSearch asks `mayHedge` for openings,
// which no call carries and which may always be retried. Where a call goes on, its route says; the counts and the budget are in
// actors/calls/retries.ts.
// Source: ADR 9, ADR 40, ADR 71, ADR 150.

import { type GatewayError, isUnanswered } from '../errors/errors.ts';
import { isRepeatableMethod } from '../mcp/mcp.ts';
import { type ExchangeRequest, toolOf } from './exchange.ts';

/** An attempt that has failed. */
export interface Failed {
  readonly error: GatewayError;
  /** Doing it twice does no harm. */
  readonly isRepeatable: boolean;
  /** The call itself was sent, so that the error may be its answer. Default: something before it failed. */
  readonly wasSent?: boolean;
  /** Others for the same call are under way. Default: none. */
  readonly hasOthers?: boolean;
  /** True when the caller has messages of the call. Default: none. */
  readonly isAnswering?: boolean;
}

/**
 * What follows a failure. `goOn`: one more attempt, where the route of the call finds an instance. `keepOthers`: the
 * other attempts continue, and one more may begin beside them, see mayHedge. `giveUp`: the failure is final, also
 * for other attempts.
 */
export type Decision = 'goOn' | 'keepOthers' | 'giveUp';

/**
 * The same for a call that only one instance may answer. `retryHere`: one more attempt there, after a pause.
 * `move`: one more attempt, but only at another instance, to which the session of the call moves.
 */
export type DecisionAtBound = 'retryHere' | 'move' | 'giveUp';

/** Retries of a call at the only instance that may answer. */
const MAX_AT_BOUND = 3;

/** Not those about credentials, the address, the session, the rate or the state of one server. */
const ABOUT_REQUEST: ReadonlySet<number> = new Set([400, 402, 406, 409, 411, 413, 414, 415, 417, 422, 451]);

/** True when a repeat does no harm. To be called before sending: afterwards the transport that knew the tool may be gone. */
export function isRepeatable(
  request: ExchangeRequest,
  { tools }: { readonly tools: { isRepeatable(tool: string): boolean } | undefined },
): boolean {
  const tool = toolOf(request);
  if (tool !== undefined) return request.isRepeatable ?? tools?.isRepeatable(tool) ?? false;
  return isRepeatableMethod(request.method);
}

/** What follows the failure of an attempt. */
export function decideAfter(failed: Failed): Decision {
  const { error, wasSent = false, hasOthers = false, isAnswering = false } = failed;
  if (wasSent && isAboutRequest(error)) return 'giveUp';
  if (hasOthers) return 'keepOthers';
  return isAnswering || !mayRetry(failed) ? 'giveUp' : 'goOn';
}

/**
 * What follows the failure of a call at the only instance that may answer. `mayHaveArrived`: it failed before, and
 * may have arrived at this instance or at an earlier one: it is not sent there once more.
 */
export function decideAtBound(
  error: GatewayError,
  {
    retries,
    mayHaveArrived,
  }: { readonly retries: number; readonly mayHaveArrived: 'here' | 'earlier' | false },
): DecisionAtBound {
  if (!isUnanswered(error)) return 'giveUp';
  if (retries < MAX_AT_BOUND && (mayHaveArrived === false || error.delivered === 'no')) return 'retryHere';
  return mayHaveArrived === 'here' ? 'move' : 'giveUp';
}

/**
 * True when one more may begin elsewhere, beside what is silent and continues. `isAffordable`: the retry budget
 * has room for it.
 */
export function mayHedge(
  { isRepeatable }: Pick<Failed, 'isRepeatable'>,
  left: number,
  isAffordable: boolean,
): boolean {
  return isRepeatable && left > 0 && isAffordable;
}

/** What certainly did not arrive may be done again; what perhaps did, if it does no harm; never what was answered. */
function mayRetry({ error: { delivered }, isRepeatable }: Failed): boolean {
  return delivered === 'unknown' ? isRepeatable : delivered !== 'yes';
}

/** True for an answer over HTTP that is about the request: every instance of the template would give it. Source: ADR 107. */
function isAboutRequest({ facts: { backendStatus = 0 } }: GatewayError): boolean {
  return ABOUT_REQUEST.has(backendStatus);
}
