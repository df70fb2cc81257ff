// Errors about the sessions of MCP clients, and about other bounds per client.

import { GatewayError } from './errors.ts';
import { LIMITS } from './limits.ts';

/** The session is unknown, over, or another caller's; the error does not say which. The client has to open a new one. */
export function sessionNotFound(): GatewayError {
  return new GatewayError('SESSION_NOT_FOUND', 'There is no such session. Initialize again.');
}

/** The session was there, but its instance is gone and it may not go on with another one. */
export function sessionLost(reason: string): GatewayError {
  return new GatewayError('SESSION_NOT_FOUND', `The session ended: ${reason}. Initialize again.`, {
    delivered: 'no',
    reason,
  });
}

/** Room appears when a session ends, at an unknown time; a client gains nothing by asking more often. */
const ASK_AGAIN_SECONDS = 60;

/** No room for one more session. */
export function sessionLimit(most: number): GatewayError {
  const message = `All ${most} sessions are taken (setting sessions.max).`;
  return new GatewayError('SESSION_LIMIT', message, { retryAfterSeconds: ASK_AGAIN_SECONDS });
}

/** The caller has as many sessions as one owner may have. The caller ends them itself, so there is no Retry-After. */
export function sessionShareLimit(most: number): GatewayError {
  const message = `You have ${most} sessions already, which is the most that one caller may have (setting sessions.share).`;
  return new GatewayError('SESSION_LIMIT', message);
}

/** The caller has as many processes of one instance as one owner may have. They end with the caller's sessions. */
export function processShareLimit(most: number): GatewayError {
  const message = `You have ${most} processes of the instance, which is the most that one caller may have (setting sessions.share).`;
  return new GatewayError('QUEUE_FULL', message, { delivered: 'no', retryAfterSeconds: ASK_AGAIN_SECONDS });
}

/** The calls of a caller without a session use as many conversations with one instance as one owner may use. */
export function conversationShareLimit(most: number): GatewayError {
  const message = `You use ${most} conversations with the instance, which is the most that one caller may use (setting sessions.share).`;
  return new GatewayError('QUEUE_FULL', message, { delivered: 'no', retryAfterSeconds: 5 });
}

/** As many conversations of the caller wait to be opened with one instance as one owner may have waiting. */
export function openingShareLimit(most: number): GatewayError {
  const message = `${most} conversations of yours wait to be opened with the instance already, which is the most that one caller may have.`;
  return new GatewayError('QUEUE_FULL', message, { delivered: 'no', retryAfterSeconds: 5 });
}

/** As parkedCallsFull, of the calls of one caller. */
export function parkedShareLimit(most: number): GatewayError {
  const message = `${most} of your calls wait for your answer already, which is the most that one caller may have.`;
  return new GatewayError('QUEUE_FULL', message, { delivered: 'unknown' });
}

/** A call of a client that is away was cancelled for another one. */
export function placeYielded(): GatewayError {
  const seconds = LIMITS.clientAwayMs / 1000;
  const message = `The call was cancelled: its client was away for over ${seconds} s, and another call waited for its place.`;
  return new GatewayError('QUEUE_FULL', message, { delivered: 'unknown' });
}

/** Every process that an instance may run for single clients is taken, most of them for as long as sessions last. */
export function processLimit(most: number): GatewayError {
  const message = `All ${most} processes that the instance may run for single clients are taken (setting sessions.max_processes).`;
  return new GatewayError('QUEUE_FULL', message, { delivered: 'no', retryAfterSeconds: ASK_AGAIN_SECONDS });
}

/** A backend sends its client a request during a call, and too many calls wait for such an answer already. */
export function parkedCallsFull(most: number): GatewayError {
  const message = `${most} calls wait for an answer of their client already, which is the most there may be.`;
  return new GatewayError('QUEUE_FULL', message, { delivered: 'unknown' });
}

/** The caller has as many open streams of `subscriptions/listen` as one caller may have, or all callers together have. */
export function listenLimit(most: number, isShare: boolean): GatewayError {
  const message = isShare
    ? `You have ${most} open subscriptions, which is the most that one caller may have.`
    : `All ${most} subscriptions are open that there may be.`;
  return new GatewayError('QUEUE_FULL', message, { delivered: 'no', retryAfterSeconds: ASK_AGAIN_SECONDS });
}

/** The instance of a task is unknown here and is not searched for: too many searches are under way. */
export function tooManySearches(): GatewayError {
  return new GatewayError('QUEUE_FULL', 'Too many tasks are being looked for.', {
    delivered: 'no',
    retryAfterSeconds: 1,
  });
}
