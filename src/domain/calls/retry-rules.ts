// The rules of retries and hedges: whether what has failed is done again, and whether one more begins beside what
// is silent. They are pure. `Call` asks them for calls, and BindingSearch for openings, which no call carries.
// They know how often it may still be done; where a call goes on, its route says. The budget is in
// actors/calls/retries.ts.
// Source: ADR 9, ADR 40, ADR 71, ADR 150.

import { type GatewayError, isUnanswered } from '../errors/errors.ts';

/** A call or an opening that has failed. */
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

/** Repeats of a call at the only instance that may answer. */
const MAX_AT_BOUND = 3;

/** `here`: there again, after a pause. `move`: only at another instance, to which the session of the call moves. */
export type NextAtBound = 'here' | 'move' | 'stop';

/** Not those about credentials, the address, the session, the rate or the state of one server. */
const ABOUT_REQUEST: ReadonlySet<number> = new Set([400, 402, 406, 409, 411, 413, 414, 415, 417, 422, 451]);

/**
 * `next`: where its route finds an instance. `others`: those under way continue, and one more may begin, see
 * mayHedge. `stop`: the failure is final, as it is for others if it is an answer about the request.
 */
export function nextAfter(failed: Failed): 'next' | 'others' | 'stop' {
  const { error, wasSent = false, hasOthers = false, isAnswering = false } = failed;
  if (wasSent && isAboutRequest(error)) return 'stop';
  if (hasOthers) return 'others';
  return isAnswering || isDone(failed) ? 'stop' : 'next';
}

/**
 * The same for a call that was sent to the only instance that may answer. `mayHaveArrived`: it failed before, and
 * may have arrived at this instance or at an earlier one: it is not sent there once more.
 */
export function nextAtBound(
  error: GatewayError,
  {
    repeats,
    mayHaveArrived,
  }: { readonly repeats: number; readonly mayHaveArrived: 'here' | 'earlier' | false },
): NextAtBound {
  if (!isUnanswered(error)) return 'stop';
  if (repeats < MAX_AT_BOUND && (mayHaveArrived === false || error.delivered === 'no')) return 'here';
  return mayHaveArrived === 'here' ? 'move' : 'stop';
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
function isDone({ error: { delivered }, isRepeatable }: Failed): boolean {
  return delivered === 'yes' || (delivered === 'unknown' && !isRepeatable);
}

/** True for an answer over HTTP that is about the request: every instance of the template would give it. Source: ADR 107. */
function isAboutRequest({ facts: { backendStatus = 0 } }: GatewayError): boolean {
  return ABOUT_REQUEST.has(backendStatus);
}
