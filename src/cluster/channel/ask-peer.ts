// One question to a peer, and its whole answer, for answers of this node that need it: the answers of sessions are passed on as
// they arrive (http/forwarding/relay.ts).

import type { Principal } from '../../domain/accounts/principal.ts';
import { GatewayError, retryAfter } from '../../domain/errors/errors.ts';
import { NO_BYTES } from '../../domain/memory/bounded-bytes.ts';
import type { ForwardedRequest } from '../../domain/nodes/forwarding.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { Peer } from './peer-client.ts';

/**
 * The answer of a peer. Throws NODE_UNAVAILABLE, also for a body over `maxBytes`, or the reason of `signal`, which gives the
 * request up.
 */
export function peerAnswer(
  peer: Peer,
  request: ForwardedRequest,
  { maxBytes, signal }: { readonly maxBytes: number; readonly signal: AbortSignal },
): Promise<{ readonly status: number; readonly body: Buffer }> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const parts: Buffer[] = [];
    let [status, length] = [0, 0];
    const settle = (finish: () => void): void => {
      signal.removeEventListener('abort', giveUp);
      finish();
    };
    const giveUp = (): void => {
      forwarding.cancel();
      settle(() => reject(signal.reason));
    };
    signal.addEventListener('abort', giveUp);
    const refuse = (reason: string): void => settle(() => reject(cannotBeAsked(peer.node, reason)));
    const forwarding = peer.forward(request, {
      head: (given) => {
        status = given;
      },
      data: (part) => {
        length += part.length;
        if (length <= maxBytes) parts.push(part);
        else {
          forwarding.cancel();
          refuse('its answer is too long');
        }
        return true;
      },
      end: () => settle(() => resolve({ status, body: Buffer.concat(parts) })),
      notHolder: () => refuse('it has ended'),
      failed: ({ facts: { reason = 'it does not answer' } }) => refuse(reason),
    });
  });
}

/** A GET that changes nothing. */
export interface PeerQuestion {
  readonly principal: Principal;
  /** Path and query. */
  readonly target: string;
  readonly waitMs: number;
  /** The most bytes of the answer; a longer one counts as none. */
  readonly maxBytes: number;
  readonly clock: Clock;
}

/** The body of an answer with status 200. Undefined: none in time. Never rejects. */
export async function askPeer(
  peer: Peer,
  { principal, target, waitMs, maxBytes, clock }: PeerQuestion,
): Promise<Buffer | undefined> {
  const late = new AbortController();
  const stop = clock.background.alarm(waitMs, () => late.abort());
  const request = {
    caller: { principal, requestId: crypto.randomUUID(), address: undefined },
    method: 'GET',
    target,
    headers: {},
    body: NO_BYTES,
    isStream: false,
    isRepeatable: () => true,
  };
  try {
    const { status, body } = await peerAnswer(peer, request, { maxBytes, signal: late.signal });
    return status === 200 ? body : undefined;
  } catch {
    return undefined; // it counts as no answer
  } finally {
    stop();
  }
}

/** The error of a question that a node cannot answer: NODE_UNAVAILABLE. */
export function cannotBeAsked(id: string, reason: string): GatewayError {
  return new GatewayError('NODE_UNAVAILABLE', `The node "${id}" cannot be asked: ${reason}.`, {
    ...retryAfter(5),
    reason,
    plainMessage: 'The node cannot be asked.',
  });
}
