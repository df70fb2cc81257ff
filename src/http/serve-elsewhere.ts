// A request whose session another life owns: it is sent there, and served here once this node may claim the session. Both can change meanwhile:
// a node that stops releases its sessions one after the other, and a claim can be lost to a third node.

import type { Peer } from '../cluster/channel/peer-client.ts';
import { nodeUnavailable } from '../domain/errors/session-errors.ts';
import { SessionElsewhere } from '../domain/nodes/forwarding.ts';
import { type Clock, sleep, systemClock } from '../domain/time/clock.ts';

/** Longest time in which it is tried, in ms, with all waits for the nodes that it is sent to. */
export const ELSEWHERE_MS = 15_000;
/** Pause before it is tried again, in ms. */
const AGAIN_MS = 100;

export interface ElsewhereOptions {
  /** The node of this life; undefined when it has ended. */
  readonly ownerIn: (life: string) => Peer | undefined;
  /** Both reject with SessionElsewhere when the request was certainly not carried out, because the session is not there. */
  readonly forwardTo: (owner: Peer, untilMs: number) => void | Promise<void>;
  readonly serveHere: () => void | Promise<void>;
  readonly clock?: Pick<Clock, 'now' | 'alarm'>;
}

/** Rejects with NODE_UNAVAILABLE 15 s after the request began to wait, and with every other error of the two. */
export async function serveElsewhere(first: SessionElsewhere, options: ElsewhereOptions): Promise<void> {
  const { ownerIn, forwardTo, serveHere, clock = systemClock } = options;
  const untilMs = (first.sinceMs ?? clock.now()) + ELSEWHERE_MS;
  let { life } = first;
  for (;;) {
    const owner = life === undefined ? undefined : ownerIn(life);
    try {
      if (owner !== undefined) return await forwardTo(owner, untilMs);
    } catch (thrown) {
      if (!(thrown instanceof SessionElsewhere)) throw thrown;
    }
    try {
      return await serveHere();
    } catch (thrown) {
      if (!(thrown instanceof SessionElsewhere)) throw thrown;
      life = thrown.life;
      if (clock.now() > untilMs)
        throw nodeUnavailable(owner?.node ?? '', 'it does not recover the session', 'no');
    }
    await sleep(clock, AGAIN_MS);
  }
}

/** As a node that does not have the session when it refuses with 503, or is not reached: the caller has a refusal of its own. */
export function unlessRefused(owner: Peer | undefined): Peer | undefined {
  return (
    owner && {
      node: owner.node,
      forward: (request, answer) => {
        const refused = (): void => answer.elsewhere(0);
        const forwarding = owner.forward(request, {
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
