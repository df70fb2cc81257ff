// The list of nodes of a gateway whose database no other node reaches: a file, or memory.

import type { NodeView } from '../domain/nodes/nodes.ts';
import type { Clock } from '../domain/time/clock.ts';

/** Lists the only node of such a gateway. `report`: what it does now. */
export function loneNode(
  own: Pick<NodeView, 'id' | 'life' | 'version'>,
  clock: Pick<Clock, 'wall'>,
  report: () => Pick<NodeView, 'programs' | 'calls' | 'isDraining'>,
): () => NodeView[] {
  const since = new Date(clock.wall()).toISOString();
  return () => [{ ...own, address: undefined, since, ...report(), state: 'live' }];
}
