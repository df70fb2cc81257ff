// One question to a peer, and its whole answer, for answers of this node that need it: those of sessions are
// passed on as they come (http/forwarding/relay.ts).

import type { Principal } from '../../domain/accounts/account.ts';
import { GatewayError, retryAfter } from '../../domain/errors/errors.ts';
import { jsonIn } from '../../domain/json/json.ts';
import type { ForwardedRequest } from '../../domain/nodes/forwarding.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { Peer } from './peer-client.ts';

interface PeerAnswer {
  readonly status: number;
  readonly body: Buffer;
}

interface PeerAnswerOptions {
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

/** A GET that changes nothing. */
export interface PeerQuestion {
  readonly principal: Principal;
  /** Path and query. */
  readonly target: string;
  readonly waitMs: number;
  /** A longer answer counts as none. */
  readonly maxBytes: number;
  readonly clock: Clock;
}

/** The JSON of an answer with status 200. Undefined: none in time. Never rejects. */
export async function askPeer(
  peer: Peer,
  { principal, target, waitMs, maxBytes, clock }: PeerQuestion,
): Promise<unknown> {
  let stop = (): void => {};
  const onLost = (listener: (reason: Error) => void): void => {
    const giveUp = () => listener(cannotBeAsked(peer.node, 'it does not answer'));
    stop = clock.background.alarm(waitMs, giveUp);
  };
  const request = {
    caller: { principal, requestId: crypto.randomUUID(), address: undefined },
    method: 'GET',
    target,
    headers: {},
    body: Buffer.alloc(0),
    isStream: false,
    isRepeatable: () => true,
  };
  try {
    const { status, body } = await answerOf(peer, request, { maxBytes, onLost });
    return status === 200 ? jsonIn(body.toString()) : undefined;
  } catch {
    return undefined; // it counts as no answer
  } finally {
    stop();
  }
}

/** NODE_UNAVAILABLE. */
export function cannotBeAsked(id: string, reason: string): GatewayError {
  return new GatewayError('NODE_UNAVAILABLE', `The node "${id}" cannot be asked: ${reason}.`, {
    ...retryAfter(5),
    reason,
    plainMessage: 'The node cannot be asked.',
  });
}
