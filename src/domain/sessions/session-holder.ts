// Which life serves a stored session: the one rule for a request of a session that a node does not have in memory. Whether
// the session may move is decided after this, by its template: see isRecoverable of actors/sessions/session-rules.ts.
// Source: ADR 146, 158.

import { type LifeEnd, RELEASED } from '../nodes/life.ts';
import { gatewayIdOf, type NodeLife } from '../nodes/nodes.ts';

/** The step that a request of a stored session leads to. */
export type SessionDecision =
  /** This life holds it, though it is not in memory: the answer to its claim was lost. */
  | { readonly do: 'recover' }
  /** Claim it by a conditional update that names all that was read. */
  | { readonly do: 'claim' }
  | { readonly do: 'forward'; readonly life: string }
  /** No node serves it. `unknown life`: the row of its life may come later. */
  | { readonly do: 'end'; readonly reason?: 'unknown life' };

/** The node that got the request, in its present life. */
export interface SessionReader extends NodeLife {
  /**
   * The facts about another life, read after the row of the session. `foreign`: its node is not a member. The
   * function is undefined for a node without others.
   */
  readonly lifeOf?: (life: string) => { readonly end: LifeEnd | undefined } | 'foreign' | undefined;
}

/** Decides what to do with a request for a session that is not in memory here. `row`: the holder in the row of the session. */
export function decideSession({ node, life }: NodeLife, reader: SessionReader): SessionDecision {
  if (life === RELEASED) return { do: 'claim' };
  if (life === reader.life) return { do: 'recover' };
  const holder = reader.lifeOf?.(life);
  // Earlier lives of this node are over. Its lock (ADR 47), or that of its gateway, belongs to this process or to worker 1.
  if (holder === undefined && isOrWas(reader.node, node)) return { do: 'claim' };
  if (reader.lifeOf === undefined) return { do: 'end' };
  if (holder === undefined || holder === 'foreign') return { do: 'end', reason: 'unknown life' };
  return holder.end === undefined ? { do: 'forward', life } : { do: 'claim' };
}

/** The answers that a node needs about stored sessions where others share the store. */
export interface SessionHolders {
  /**
   * Decides which life serves a stored session. Throws DATABASE_UNAVAILABLE. Default: there are no other nodes,
   * and this one serves the sessions of its earlier lives.
   */
  readonly decideSession?: ((row: NodeLife) => Promise<SessionDecision>) | undefined;
  /**
   * The life that recovers the session with this key instead of this node, which is being drained; undefined
   * when no other node takes sessions. `key`: see rowKeyOf. Default: no node does.
   */
  readonly successorOf?: ((key: string) => string | undefined) | undefined;
  /**
   * Whether another node may still store sessions of this life later, because the life goes on or may return
   * after a freeze. Undefined when no node will. Throws DATABASE_UNAVAILABLE.
   */
  readonly mayBeStoredLater?: ((life: string) => Promise<boolean> | undefined) | undefined;
}

/** Whether the holder was this node, the gateway that it is a worker of, or a worker of the gateway that it is. */
function isOrWas(node: string, holder: string): boolean {
  return holder === node || holder === gatewayIdOf(node) || gatewayIdOf(holder) === node;
}
