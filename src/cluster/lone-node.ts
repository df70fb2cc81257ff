// The list of nodes of a gateway whose database no other node reaches: a file, or memory.

import type { ShownNode } from '../domain/nodes/nodes.ts';
import type { Clock } from '../domain/time/clock.ts';

/** Lists the only node of such a gateway. `report`: gives its present work. */
export function loneNode(
  own: Pick<ShownNode, 'id' | 'life' | 'version'>,
  clock: Clock,
  report: () => Pick<ShownNode, 'programs' | 'calls' | 'isDraining'>,
): () => ShownNode[] {
  const since = new Date(clock.wall()).toISOString();
  return () => [{ ...own, address: undefined, since, ...report(), state: 'live' }];
}
