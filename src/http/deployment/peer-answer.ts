// One question to one other node, and its whole answer, for answers of this node that need it: those of sessions are passed on as they come
// (relay.ts).

import type { Peer } from '../../cluster/channel/peer-client.ts';
import { GatewayError, retryAfter } from '../../domain/errors/errors.ts';
import type { ForwardedRequest } from '../../domain/nodes/forwarding.ts';

export interface PeerAnswer {
  readonly status: number;
  readonly body: Buffer;
}

export interface PeerAnswerOptions {
  /** A longer answer is refused. */
  readonly maxBytes: number;
  /** Gets a function that gives the question up, for the reason of the rejection. */
  readonly onLost: (listener: (reason: Error) => void) => void;
}

/** Rejects with NODE_UNAVAILABLE, or the reason of `onLost`. */
export function answerOf(
  peer: Peer,
  request: ForwardedRequest,
  { maxBytes, onLost }: PeerAnswerOptions,
): Promise<PeerAnswer> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let [status, length] = [0, 0];
    const forwarding = peer.forward(request, {
      head: (given) => {
        status = given;
      },
      data: (part) => {
        length += part.length;
        if (length <= maxBytes) parts.push(part);
        return true;
      },
      end: () => {
        if (length <= maxBytes) resolve({ status, body: Buffer.concat(parts) });
        else reject(cannotBeAsked(peer.node, 'its answer is too long'));
      },
      notHolder: () => reject(cannotBeAsked(peer.node, 'it has ended')),
      failed: ({ facts: { reason = 'it does not answer' } }) => reject(cannotBeAsked(peer.node, reason)),
    });
    onLost((reason) => {
      forwarding.cancel();
      reject(reason);
    });
  });
}

/** NODE_UNAVAILABLE. */
export function cannotBeAsked(id: string, reason: string): GatewayError {
  return new GatewayError('NODE_UNAVAILABLE', `The node "${id}" cannot be asked: ${reason}.`, {
    ...retryAfter(5),
    reason,
    plainMessage: 'The node cannot be asked.',
  });
}
