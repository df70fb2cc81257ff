// A table of nodes for specs, without a database.

import type { KnownNodes } from '../../../src/cluster/channel/peers.ts';
import type { ReachableLife } from '../../../src/cluster/reachable-life.ts';

/** `rows`: the members by life. */
export function knownNodesIn(
  rows: ReadonlyMap<string, ReachableLife>,
  life: () => string,
  changes: Partial<Omit<KnownNodes, 'life'>> = {},
): KnownNodes {
  return {
    get life() {
      return life();
    },
    find: (other) => rows.get(other),
    runsOn: ({ nodeId }) => [...rows.values()].find(({ node }) => node === nodeId),
    knowsPrograms: false,
    takesSessions: () => true,
    isSilent: () => false,
    openers: [],
    refresh: async () => {},
    readAgain: async () => {},
    isRefused: async () => false,
    isDatabaseAway: async () => undefined,
    untilLifeKnown: () => undefined,
    recheck: async () => {},
    suspect: () => {},
    onChanged: () => {},
    ...changes,
  };
}
