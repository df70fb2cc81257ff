// A table of members for specs, without a database.

import type { KnownMembers } from '../../../src/cluster/channel/peers.ts';
import type { Member } from '../../../src/cluster/members.ts';

/** `rows`: the members by life. */
export function membersIn(
  rows: ReadonlyMap<string, Member>,
  life: () => string,
  changes: Partial<Omit<KnownMembers, 'life'>> = {},
): KnownMembers {
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
    isRefused: async () => false,
    isDatabaseAway: async () => undefined,
    certain: () => undefined,
    recheck: async () => {},
    suspect: () => {},
    onChanged: () => {},
    ...changes,
  };
}
