// The definitions of tools that wait for approval at the other nodes. A node knows those that it has listed; here it learns the
// others, so that every node shows and approves the same. Source: ADR 390.

import Type from 'typebox';
import type { Principal } from '../../domain/accounts/account.ts';
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

/** A pinned template or view, and the path of its tools. */
export interface PinnedTools {
  readonly id: string;
  readonly target: string;
}

/** The answer to another node. */
export function ownWaiting(id: string, { approvals, scheduler }: Services): Promise<Reply> {
  return jsonInTurns({ waiting: approvals.waitingAt(id) }, scheduler);
}

/** Learns what waits at the other nodes. Resolves with the ids of the nodes that did not answer. */
export async function learnWaiting(
  { id, target }: PinnedTools,
  principal: Principal,
  { approvals, deployment }: Services,
): Promise<readonly string[]> {
  if (deployment === undefined || !approvals.isPinned(id)) return [];
  const { answers, partial } = await deployment.ask({
    target,
    principal,
    shape: PEER_WAITING,
    isFresh: true,
  });
  for (const { waiting } of answers.values()) await approvals.noteOther(id, waiting);
  return partial;
}
