// The nodes of a deployment, as they are shown.

/** One life of a node. */
export interface NodeView {
  readonly id: string;
  readonly life: string;
  /** URL for the other nodes; undefined for a node that no other reaches. */
  readonly address: string | undefined;
  readonly version: string;
  /** Start of the life, ISO 8601. */
  readonly since: string;
  /** Running programs. */
  readonly programs: number;
  /** Calls under way. */
  readonly calls: number;
  readonly isDraining: boolean;
  readonly state: NodeState;
}

/**
 * `slow`: it answers pings late. `silent`: it does not. `ended`: its life is over. `foreign`: it has another secret, and is no member. Source:
 * ADR 146.
 */
export const NODE_STATES = ['live', 'slow', 'silent', 'ended', 'foreign'] as const;
type NodeState = (typeof NODE_STATES)[number];

/** One line for each node that has another secret. */
export function foreignNodes(nodes: readonly { readonly id: string; readonly state: unknown }[]): string[] {
  const ids = new Set(nodes.filter(({ state }) => state === 'foreign').map(({ id }) => id));
  return [...ids].map(
    (id) =>
      `the node "${id}" has another secret than this one, and is no member: set the same GATEWAY_SECRET_KEY`,
  );
}
