// The rules of retries and hedges: which requests may be repeated, what follows a failure, and whether one more
// attempt begins beside a silent one. They are pure. `Call` asks them through actors/calls/tries.ts, which has the counts and
// the budget. Where a call goes on, its route says.
// Source: ADR 40, ADR 384.

import { type GatewayError, isUnanswered } from '../errors/errors.ts';
import { isRepeatableMethod } from '../mcp/mcp.ts';
import { type ExchangeRequest, toolOf } from './exchange.ts';

/** An attempt that has failed, or an opening before one, at the instance `ref`. */
export interface FailedAttempt<Ref = unknown> {
  readonly ref: Ref;
  /** Its position in its call, 1 for the first one. */
  readonly number: number;
  readonly error: GatewayError;
  /** True when a repeat does no harm. */
  readonly isRepeatable: boolean;
  /**
   * The conversation in which the request itself was sent, so that the error may be its answer. `reused`: one that had
   * another use before, and may have ended unnoticed. Default: something failed before.
   */
  readonly sentIn?: 'fresh' | 'reused' | undefined;
}

/** The course of a call up to the failure. */
export interface CallHistory {
  /** The number of retries and hedges that it may still make at other instances. */
  readonly attemptsLeft: number;
  /** The number of retries that were sent. */
  readonly retriesMade: number;
  /** True after a failure that did not count: see `reopen`. */
  readonly hasReopened: boolean;
  /** True after it has made its session move: a call that fails everywhere must not move its session again and again. */
  readonly hasMoved: boolean;
  /**
   * Where an earlier attempt may have arrived: at the instance to which the session of the call is bound, at one that the
   * session has left, or at none. Undefined for a call without a session.
   */
  readonly bound: { readonly mayHaveArrived: 'here' | 'earlier' | false } | undefined;
  /** `others`: other attempts are under way. `answering`: the caller has messages of the failed one. Undefined: neither. */
  readonly progress: 'others' | 'answering' | undefined;
}

/**
 * The way in which a call is tried again. `elsewhere`: at another instance. `here`: where its session is bound, after a
 * pause. `move`: at another instance, but only if its session moves there. `reopen`: at the same instance in a new
 * conversation; the failure does not count, because the reused one had ended unnoticed and no backend got the request.
 * `hedge`: at another instance beside attempts that continue, if mayHedge allows one more.
 */
export type TryKind = 'elsewhere' | 'here' | 'move' | 'reopen' | 'hedge';

/** Retries of a call where its session is bound. */
const MAX_AT_BOUND = 3;

/**
 * The HTTP statuses that refuse the request itself, not credentials, the address, the session, the rate or the state
 * of one server.
 */
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

/**
 * The way in which a call goes on after a failure. `giveUp`: the failure is final, also for other attempts. A retry also needs an
 * instance, which the route of the call may not have, and, after `delivered: 'unknown'`, room in the retry budget.
 */
export function nextAfter(
  failed: FailedAttempt,
  { attemptsLeft, retriesMade, hasReopened, hasMoved, bound, progress }: CallHistory,
): TryKind | 'giveUp' {
  const { error, sentIn } = failed;
  if (sentIn !== undefined && isAboutRequest(error)) return 'giveUp';
  if (progress === 'others') return 'hedge';
  if (progress === 'answering' || !mayRepeat(failed)) return 'giveUp';
  const reachedNobody = error.delivered === 'no';
  if (sentIn === 'reused' && !hasReopened && reachedNobody && isUnanswered(error)) return 'reopen';
  if (bound === undefined) return attemptsLeft > 0 ? 'elsewhere' : 'giveUp';
  if (!isUnanswered(error)) return 'giveUp';
  if (retriesMade < MAX_AT_BOUND && (reachedNobody || bound.mayHaveArrived === false)) return 'here';
  return bound.mayHaveArrived === 'here' && !hasMoved ? 'move' : 'giveUp';
}

/**
 * True when one more may begin elsewhere, beside what is silent and continues. `isAffordable`: the retry budget
 * has room for it.
 */
export function mayHedge(
  { isRepeatable }: Pick<FailedAttempt, 'isRepeatable'>,
  left: number,
  isAffordable: boolean,
): boolean {
  return isRepeatable && left > 0 && isAffordable;
}

/**
 * True when a silent attempt ends where the session of its call is bound, if that can move. `isSuspended`: calls of others get
 * no answers there either.
 */
export function mayAbandon(
  { isRepeatable }: Pick<FailedAttempt, 'isRepeatable'>,
  hasMoved: boolean,
  isSuspended: boolean,
): boolean {
  return isRepeatable && isSuspended && !hasMoved;
}

/**
 * True when a call waits some ms to learn whether the link to another node is lost: it did not reach the node, and has no other
 * instance. A call that the node or a backend there has refused did reach it. Source: ADR 295.
 */
export function mayAwaitLink(error: GatewayError, isElsewhere: boolean, attemptsLeft: number): boolean {
  const isLost = isUnanswered(error) && error.delivered === 'no' && error.facts.refusal === undefined;
  return isLost && isElsewhere && attemptsLeft > 0;
}

/** True for what certainly did not arrive, and for what perhaps did if it does no harm; never for what was answered. */
function mayRepeat({ error: { delivered }, isRepeatable }: FailedAttempt): boolean {
  return delivered === 'unknown' ? isRepeatable : delivered !== 'yes';
}

/** True for an answer over HTTP that is about the request: every instance of the template would give it. Source: ADR 107. */
function isAboutRequest({ facts: { refusal } }: GatewayError): boolean {
  return refusal !== undefined && ABOUT_REQUEST.has(refusal.status);
}
