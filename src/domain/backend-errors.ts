// Errors of a call that no backend answered: no backend could take it, or the connection broke. Errors in an answer of a
// backend are in answer-errors.ts.

import { type Delivered, type ErrorDetails, GatewayError } from './errors.ts';

/** `why`: the reasons of single instances, as clauses; '' without any. */
export function noHealthyInstance(template: string, why = ''): GatewayError {
  const plainMessage = `No instance of "${template}" is healthy right now.`;
  const message = why === '' ? plainMessage : `${plainMessage.slice(0, -1)}: ${why}.`;
  const facts = { delivered: 'no', retryAfterSeconds: 2, plainMessage } as const;
  return new GatewayError('NO_HEALTHY_INSTANCE', message, facts);
}

/** It is registered, but no call or command reaches it from here. `why` says where it runs, as a clause. */
export function runsElsewhere(id: string, why: string): GatewayError {
  const plainMessage = `"${id}" cannot be used here.`;
  const message = `${plainMessage.slice(0, -1)}: ${why}.`;
  return new GatewayError('NO_HEALTHY_INSTANCE', message, { delivered: 'no', plainMessage });
}

export function toolNotFound(tool: string, owner: string): GatewayError {
  return new GatewayError('TOOL_NOT_FOUND', `"${owner}" has no tool named "${tool}".`);
}

export function queueFull(template: string): GatewayError {
  return new GatewayError('QUEUE_FULL', `Every instance of "${template}" is busy and the line is full.`, {
    delivered: 'no',
    retryAfterSeconds: 1,
  });
}

/** A backend could not be reached or broke off. `reason` names the fact: "connection refused", "exited with code 7". */
export function backendUnavailable(
  reason: string,
  facts: Pick<ErrorDetails, 'cause' | 'stderr' | 'suspicious' | 'unreachable'> & { delivered: Delivered },
): GatewayError {
  return new GatewayError('BACKEND_UNAVAILABLE', `The backend is unavailable: ${reason}.`, {
    ...facts,
    reason,
    plainMessage: 'The backend is unavailable.',
    ...(facts.delivered === 'no' ? { retryAfterSeconds: 1 } : {}),
  });
}

/** Reason of calls that fail, or are not sent, because of the memory bound of answers. */
export const ANSWERS_HOLD_TOO_MUCH = 'its answers that are not complete take all the memory that they may';

/** There is no connection to the backend, so that nothing was delivered. */
export function notConnected(): GatewayError {
  return backendUnavailable('it is not connected', { delivered: 'no' });
}

export function backendTimeout(afterMs: number, delivered: Delivered = 'unknown'): GatewayError {
  return new GatewayError('BACKEND_TIMEOUT', `The backend did not answer within ${afterMs / 1000} s.`, {
    delivered,
    suspicious: true,
    reason: `it did not answer within ${afterMs / 1000} s`,
    ...(delivered === 'no' ? { retryAfterSeconds: 1 } : {}),
  });
}
