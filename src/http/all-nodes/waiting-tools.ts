// The definitions of tools that wait for approval at the other nodes. A node knows those that it has listed; here it learns the
// others, so that every node shows and approves the same. Source: ADR 238.

import Type from 'typebox';
import type { Principal } from '../../domain/accounts/principal.ts';
import { compileShape } from '../../domain/errors/validation.ts';
import { AnyObject } from '../records/schemas.ts';
import { jsonInTurns } from '../replies/json-in-turns.ts';
import type { Reply } from '../replies/reply.ts';
import type { Services } from '../services.ts';

/** The SHA-256 of a definition. */
export const Digest = Type.String({ pattern: '^[0-9a-f]{64}$', description: 'SHA-256 of a definition' });

/** The answer of a node to another one. `tool`: as in Approval. */
const PEER_WAITING = compileShape(
  Type.Object({
    waiting: Type.Array(Type.Object({ tool: Type.String(), digest: Digest, definition: AnyObject })),
  }),
  'body',
);

/** The answer to another node. */
export function ownWaiting(id: string, { approvals, scheduler }: Services): Promise<Reply> {
  return jsonInTurns({ waiting: approvals.waitingDefinitions(id) }, scheduler);
}

/** Learns what waits at the other nodes for a template or a view. Resolves with the ids of the nodes that did not answer. */
export async function learnWaiting(
  kind: 'templates' | 'views',
  id: string,
  principal: Principal,
  { approvals, otherMembers }: Services,
): Promise<readonly string[]> {
  if (!approvals.isPinned(id)) return [];
  const { answers, partial } = await otherMembers.ask({
    target: `/gateway/${kind}/${id}/tools`,
    principal,
    shape: PEER_WAITING,
    isFresh: true,
  });
  for (const { waiting } of answers.values()) await approvals.learn(id, waiting);
  return partial;
}
