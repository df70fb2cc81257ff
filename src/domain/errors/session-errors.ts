// The errors of sessions, and of the bounds for each client.

import { LIMITS } from '../limits.ts';
import type { Exceeded } from '../memory/user-shares.ts';
import { GatewayError, retryAfter } from './errors.ts';
import { nodeUnavailable } from './node-errors.ts';
import { ASK_AGAIN_SECONDS } from './request-errors.ts';
import { type EndReason, SESSION_ENDS } from './session-ends.ts';

/** The session is unknown, has ended, or is another caller's; the error does not reveal which. */
export function sessionNotFound(): GatewayError {
  return new GatewayError('SESSION_NOT_FOUND', 'Session not found. Initialize again.');
}

/** The session with this fingerprint does not exist, or is another caller's. */
export function sessionUnknown(fingerprint: string): GatewayError {
  return new GatewayError(
    'SESSION_NOT_FOUND',
    `Session "${fingerprint}" not found. GET /gateway/sessions lists the sessions.`,
  );
}

/** The session is over here. NODE_UNAVAILABLE where another node recovers it: its client must not initialize again. */
export function sessionEnded(end: EndReason): GatewayError {
  const reason = SESSION_ENDS[end];
  return end === 'takenOver' || end === 'drained'
    ? nodeUnavailable(undefined, reason, 'no')
    : sessionLost(reason);
}

/** The session cannot continue. `reason`: a clause. */
export function sessionLost(reason: string): GatewayError {
  return new GatewayError('SESSION_NOT_FOUND', `The session ended: ${reason}. Initialize again.`, {
    delivered: 'no',
    reason,
  });
}

/** Too many sessions are open. The share of a caller has no Retry-After: the caller ends its own sessions. */
export function sessionLimit({ most, isShare }: Exceeded): GatewayError {
  return isShare
    ? new GatewayError(
        'SESSION_LIMIT',
        `This caller has too many open sessions (${most}; setting sessions.share).`,
      )
    : new GatewayError('SESSION_LIMIT', `Too many sessions are open (${most}; setting sessions.max).`, {
        retryAfterSeconds: ASK_AGAIN_SECONDS,
      });
}

/** The memory for what clients declare, and the gateway keeps, is full: that of this caller, or that of all callers (ADR 89). */
export function declarationsTooLarge(code: 'SESSION_LIMIT' | 'QUEUE_FULL'): GatewayError {
  const message =
    'The memory for capabilities that clients declare is full: end some sessions, subscriptions or calls, or declare fewer capabilities.';
  return new GatewayError(code, message, retryAfter(ASK_AGAIN_SECONDS));
}

export function dedicatedShareLimit(most: number): GatewayError {
  const message = `This caller has too many processes or conversations at the instance (${most}; setting sessions.share).`;
  return new GatewayError('QUEUE_FULL', message, retryAfter(5));
}

/** A call was cancelled for another one, because its client was disconnected. */
export function capacityYielded(): GatewayError {
  const seconds = LIMITS.callsYieldAfterMs / 1000;
  const message = `The call was cancelled: its client was disconnected for over ${seconds} s, and another call needed its capacity.`;
  return new GatewayError('QUEUE_FULL', message, { delivered: 'unknown' });
}

export function processLimit(most: number): GatewayError {
  const message = `The instance has too many dedicated processes (${most}; setting sessions.max_processes).`;
  return new GatewayError('QUEUE_FULL', message, retryAfter(ASK_AGAIN_SECONDS));
}

/** Each of the processes for clients that declare extensions has a call in flight. */
export function extensionProcessLimit(): GatewayError {
  const message = `The instance runs a process for each of ${LIMITS.extensionProcesses} sets of extensions that clients declare, and all have calls in flight.`;
  return new GatewayError('QUEUE_FULL', message, retryAfter(ASK_AGAIN_SECONDS));
}

/** A server asks the client of a call for input, while too many calls, in all or of this caller, already wait for such input. */
export function tooManyAwaitingClient(most: number): GatewayError {
  const message = `Too many calls (${most}) are waiting for client input.`;
  return new GatewayError('QUEUE_FULL', message, { delivered: 'unknown' });
}
