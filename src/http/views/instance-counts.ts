// How many instances there are and how many of them are healthy: the same count for every answer that tells one.

import Type, { type Static } from 'typebox';
import type { Server } from '../../gateway-types.ts';

/** Schema of the counts. */
export const InstanceCounts = Type.Object({
  total: Type.Integer(),
  healthy: Type.Integer(),
  unhealthy: Type.Integer(),
});
export type InstanceCounts = Static<typeof InstanceCounts>;

/** Counts instances; those that drain or have stopped are left out. Source: decisions, "Surface A bodies". */
export function instanceCounts(servers: readonly Pick<Server, 'snapshot'>[]): InstanceCounts {
  const counted = servers.filter(isCounted);
  const healthy = counted.filter(({ snapshot }) => snapshot.healthy).length;
  return { total: counted.length, healthy, unhealthy: counted.length - healthy };
}

function isCounted({ snapshot }: Pick<Server, 'snapshot'>): boolean {
  return snapshot.state !== 'draining' && snapshot.state !== 'stopped';
}
