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
