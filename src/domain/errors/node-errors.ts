// The errors of the nodes of a deployment: one is unknown, away, drained or cut off.

import { GatewayError, retryAfter } from './errors.ts';

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
