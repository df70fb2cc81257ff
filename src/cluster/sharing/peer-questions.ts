// Small questions of this node to the other members over the peer channel. A question is a GET with the principal
// in its token; only members can send one. Source: ADR 148.

import type { Principal } from '../../domain/accounts/principal.ts';
import type { Shape } from '../../domain/errors/validation.ts';
import { jsonIn } from '../../domain/json/json.ts';
import { memberNodes, type ShownNode } from '../../domain/nodes/nodes.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { askPeer, type PeerQuestion } from '../channel/ask-peer.ts';
import type { Peers } from '../channel/peers.ts';

/** The longest answer, in bytes. */
const MAX_ANSWER_BYTES = 64 * 1024;

/** Asks other members. */
export interface PeerQuestions {
  /** The lives of this node, first, and of all other members. */
  lives(): readonly string[];
  /**
   * The answer. Undefined: none in time, or none of this shape. Never rejects. A silent node is not asked. `principal`:
   * the id of the one that the question is about.
   */
  ask<T>(
    life: string,
    question: Pick<PeerQuestion, 'target' | 'waitMs'> & { readonly principal: string },
    shape: Pick<Shape<T>, 'accepts'>,
  ): Promise<T | undefined>;
}

/** The answer to the question of another node about a principal: a value for JSON. */
export type PeerAnswerer = (principal: string, query: URLSearchParams) => unknown;

export interface PeerQuestionsOptions {
  readonly peers: Pick<Peers, 'ofLife'>;
  /** This node first. */
  readonly nodes: () => readonly ShownNode[];
  readonly clock: Clock;
}

export function peerQuestions({ peers, nodes, clock }: PeerQuestionsOptions): PeerQuestions {
  return {
    lives: () => memberNodes(nodes()).map(({ life }) => life),
    ask: async (life, { principal: id, target, waitMs }, shape) => {
      const isSilent = nodes().some((node) => node.life === life && node.state === 'silent');
      const peer = isSilent ? undefined : peers.ofLife(life);
      const principal: Principal = { id, name: id, kind: 'api-key', scopes: new Set() };
      const question = { principal, target, waitMs, maxBytes: MAX_ANSWER_BYTES, clock };
      const body = peer && (await askPeer(peer, question));
      const answer = body && jsonIn(body.toString());
      return shape.accepts(answer) ? answer : undefined;
    },
  };
}
