// The errors of sessions, of the nodes that have them, and of the bounds for each client.

import { LIMITS } from '../limits.ts';
import type { Exceeded } from '../memory/user-shares.ts';
import { GatewayError, retryAfter } from './errors.ts';
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

/** Retry-After when a limit of sessions, processes or subscriptions is reached: the next end is unknown. */
const ASK_AGAIN_SECONDS = 60;

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

/**
 * A bound of what may be open or under way at the same time is reached: that of all callers, or the share of this one.
 * `what`: a plural, such as "open subscriptions".
 */
export function tooMany(
  what: string,
  { most, isShare }: Exceeded,
  retryAfterSeconds = ASK_AGAIN_SECONDS,
): GatewayError {
  const message = `${isShare ? 'This caller has' : 'There are'} too many ${what} (${most}).`;
  return new GatewayError('QUEUE_FULL', message, retryAfter(retryAfterSeconds));
}

/** Draining concerns all templates, because a node serves them all. */
export function nodesNeedAllTemplates(): GatewayError {
  const message = 'Callers with a list of templates or tools cannot drain or resume a node.';
  return new GatewayError('INSUFFICIENT_PERMISSIONS', message);
}

export function nodeNotFound(id: string): GatewayError {
  return new GatewayError('NOT_FOUND', `No node "${id}" is known. GET /gateway/nodes lists the nodes.`);
}

/**
 * The node that holds the session is away, or does not answer; undefined where it is not known which. `unknown`: the request
 * may have reached it.
 */
export function nodeUnavailable(
  node: string | undefined,
  reason: string,
  delivered: 'no' | 'unknown',
): GatewayError {
  const plain = 'The node that has the session is unavailable';
  const named = node === undefined ? plain : `The node "${node}", which has the session, is unavailable`;
  const facts = { ...retryAfter(1), delivered, reason, plainMessage: `${plain}.` };
  return new GatewayError('NODE_UNAVAILABLE', `${named}: ${reason}.`, facts);
}

/** The node is drained, see Readiness.drain. */
export function nodeDraining(): GatewayError {
  return new GatewayError(
    'NODE_UNAVAILABLE',
    'This node is draining, and takes no new sessions.',
    retryAfter(5),
  );
}

/** The database has no row of what it opens now, and other nodes would answer 404. */
export function nodeCutOff(): GatewayError {
  return new GatewayError(
    'NODE_UNAVAILABLE',
    'This node does not reach the database that other nodes have, and takes no new sessions.',
    retryAfter(5),
  );
}
