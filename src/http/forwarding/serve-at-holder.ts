// A request whose session another life holds: it is sent there, and served here once this node may claim the
// session. Both can change meanwhile: a node that stops releases its sessions one after the other, and a claim can
// be lost to a third node.

import type { Peer } from '../../cluster/channel/peer-client.ts';
import { nodeUnavailable } from '../../domain/errors/node-errors.ts';
import { NotHolder } from '../../domain/nodes/forwarding.ts';
import { type Clock, sleep } from '../../domain/time/clock.ts';

/** The longest time in which a request is tried, in ms, with all waits for the nodes that it is sent to. */
export const AT_HOLDER_MS = 15_000;
/** Pause before it is tried again, in ms. */
const AGAIN_MS = 100;

interface AtHolderOptions {
  /** The node of this life; undefined when it has ended. */
  readonly peerOf: (life: string) => Peer | undefined;
  /** Both reject with NotHolder when the request was certainly not carried out, because the session is not there. */
  readonly forwardTo: (peer: Peer, untilMs: number) => void | Promise<void>;
  readonly serveHere: () => void | Promise<void>;
  readonly clock: Clock;
}

/** Throws NODE_UNAVAILABLE 15 s after the request began to wait, and every other error of the two. */
export async function serveAtHolder(first: NotHolder, options: AtHolderOptions): Promise<void> {
  const { peerOf, forwardTo, serveHere, clock } = options;
  const untilMs = (first.sinceMs ?? clock.now()) + AT_HOLDER_MS;
  let { life } = first;
  for (;;) {
    const peer = life === undefined ? undefined : peerOf(life);
    try {
      if (peer !== undefined) return await forwardTo(peer, untilMs);
    } catch (thrown) {
      if (!(thrown instanceof NotHolder)) throw thrown;
    }
    try {
      return await serveHere();
    } catch (thrown) {
      if (!(thrown instanceof NotHolder)) throw thrown;
      life = thrown.life;
      if (clock.now() > untilMs) throw nodeUnavailable(peer?.node, 'it does not recover the session', 'no');
    }
    await sleep(clock, AGAIN_MS);
  }
}

/**
 * The peer, which then says that it does not have the session where it would answer 503 or cannot be reached. The caller refuses
 * the request itself.
 */
export function unlessRefused(peer: Peer | undefined): Peer | undefined {
  return (
    peer && {
      node: peer.node,
      forward: (request, answer) => {
        const refused = (): void => answer.notHolder(0);
        const forwarding = peer.forward(request, {
          ...answer,
          head: (status, headers) => {
            if (status !== 503) return answer.head(status, headers);
            forwarding.cancel();
            refused();
          },
          failed: refused,
        });
        return forwarding;
      },
    }
  );
}
