// The state of an instance that several nodes use, as each of them sees it. A node at which it is stopped does not
// use it. Source: ADR 172.

import Type from 'typebox';
import {
  INSTANCE_STATES,
  type InstanceState,
  STATE_RANKS as RANKS,
} from '../../domain/instances/instance.ts';
import { runsProgramsOf } from '../../domain/nodes/nodes.ts';
import { text } from '../records/schemas.ts';

/** Field of an instance: its states where they differ. */
export const StatesByNode = Type.Optional(
  Type.Record(Type.String(), Type.Enum([...INSTANCE_STATES]), {
    propertyNames: text('node-b'),
    description:
      'Its state by node, where the nodes that use it see different ones; the other fields are those of the worst',
  }),
);

interface Seen {
  readonly state: InstanceState;
}

/** The state of an instance as one node sees it. */
export interface AtNode<V extends Seen> {
  readonly node: string;
  readonly seen: V;
}

interface Merged<V extends Seen> {
  /** The worst state; of equal ones that of the node that runs the instance, then that of this node. */
  readonly worst: V;
  /** The states where they differ. */
  readonly nodes: { readonly nodes?: Record<string, InstanceState> };
  /**
   * The states that count the calls and processes at the instance: that of the node that runs it counts all of them, else each
   * counts its own.
   */
  readonly counted: readonly V[];
}

/** `all`: the own one first. `runner`: the node, or the gateway with workers, that runs the instance, if it is a program. */
export function merged<V extends Seen>(
  all: readonly [AtNode<V>, ...AtNode<V>[]],
  runner: string | undefined,
): Merged<V> {
  const running = all.filter(({ node }) => runsProgramsOf(node, runner));
  const users = [...running, ...all].filter(({ seen }) => seen.state !== 'stopped');
  const [worst = all[0]] = users.toSorted(
    (a, b) => RANKS.indexOf(a.seen.state) - RANKS.indexOf(b.seen.state),
  );
  const states = Object.fromEntries(users.map(({ node, seen }) => [node, seen.state]));
  return {
    worst: worst.seen,
    nodes: new Set(Object.values(states)).size > 1 ? { nodes: states } : {},
    counted: (running.length > 0 ? running : all).map(({ seen }) => seen),
  };
}

export function sumOf<T>(items: readonly T[], numberOf: (item: T) => number): number {
  return items.reduce((total, item) => total + numberOf(item), 0);
}
