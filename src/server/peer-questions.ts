// Small questions of this node to the other members over the peer channel. A question is a GET with the principal in its token; only members
// can send one. Source: ADR 148.

import type { Peers } from '../cluster/channel/peers.ts';
import type { Principal } from '../domain/accounts/account.ts';
import { nodeUnavailable } from '../domain/errors/session-errors.ts';
import { jsonIn } from '../domain/json/json.ts';
import type { NodeView } from '../domain/nodes/nodes.ts';
import { systemClock } from '../domain/time/clock.ts';
import { answerOf } from '../http/deployment/peer-answer.ts';

/** Longest answer, in bytes. */
const MAX_BYTES = 64 * 1024;

/** Asks other members. */
export interface PeerQuestions {
  /** The lives of this node, first, and of all other members. */
  lives(): readonly string[];
  /** The JSON of the answer. Undefined: no answer in time. Never rejects. A silent node is not asked. */
  ask(life: string, question: PeerQuestion): Promise<unknown>;
}

interface PeerQuestion {
  /** Id of the principal that the question is about. */
  readonly principal: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly waitMs: number;
}

/** The answer to the question of another node about a principal: a value for JSON. */
export type AnswerPeer = (principal: string, query: URLSearchParams) => unknown;

export interface PeerQuestionsOptions {
  readonly peers: Pick<Peers, 'ofLife'>;
  /** This node first. */
  readonly nodes: () => readonly NodeView[];
}

export function peerQuestions({ peers, nodes }: PeerQuestionsOptions): PeerQuestions {
  return {
    lives: () =>
      nodes().flatMap(({ life, state }) => (state === 'ended' || state === 'foreign' ? [] : [life])),
    ask: async (life, { principal: id, path, query, waitMs }) => {
      const isSilent = nodes().some((node) => node.life === life && node.state === 'silent');
      const peer = isSilent ? undefined : peers.ofLife(life);
      if (peer === undefined) return undefined;
      const principal: Principal = { id, name: id, kind: 'api-key', scopes: new Set() };
      const request = {
        caller: { principal, requestId: crypto.randomUUID(), address: undefined },
        method: 'GET',
        target: `${path}?${query}`,
        headers: {},
        body: Buffer.alloc(0),
        isStream: false,
        isRepeatable: () => true,
      };
      let cancel = (): void => {};
      const onLost = (listener: (reason: Error) => void): void => {
        cancel = systemClock.background.alarm(waitMs, () =>
          listener(nodeUnavailable(peer.node, 'it does not answer', 'unknown')),
        );
      };
      try {
        const { status, body } = await answerOf(peer, request, { maxBytes: MAX_BYTES, onLost });
        return status === 200 ? jsonIn(body.toString()) : undefined;
      } catch {
        return undefined; // it counts as no answer
      } finally {
        cancel();
      }
    },
  };
}
