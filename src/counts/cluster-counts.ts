// The counts of what happened between the nodes of a deployment, as this node saw it: since its start, for the metrics. A
// gateway without other nodes has none. Source: ADR 199.

import type { Hop } from '../domain/nodes/forwarding.ts';
import type { LifeEnd } from '../domain/nodes/life.ts';
import { BucketCounts } from './bucket-counts.ts';

/** The outcome of a request to another node. `moved`: that node did not carry it out. `cancelled`: the client left. */
export type HopOutcome = 'answered' | 'failed' | 'moved' | 'cancelled';

/** The counts of this node. All keys exist from the start on, because an alert sees no increase of a series that was absent. */
export class ClusterCounts {
  /** The lives that this node ended: of other nodes, and earlier ones of its own. A node that stops ends its own. */
  readonly livesEnded: Record<Exclude<LifeEnd['cause'], 'stopped'>, number> = {
    refused: 0,
    expired: 0,
    restarted: 0,
  };
  /** The number of times that others ended the life of this node. */
  livesLost = 0;
  /** The leases of programs that any node may run. */
  readonly leases = { taken: 0, released: 0 };
  readonly hops: Record<Hop, Record<HopOutcome, number>> = {
    session: { answered: 0, failed: 0, moved: 0, cancelled: 0 },
    instance: { answered: 0, failed: 0, moved: 0, cancelled: 0 },
  };
  /** The durations of the requests that were answered, without streams. */
  readonly times: Record<Hop, BucketCounts> = { session: new BucketCounts(), instance: new BucketCounts() };

  endedLife(cause: LifeEnd['cause']): void {
    if (cause !== 'stopped') this.livesEnded[cause] += 1;
  }

  /** Counts the end of a request. `durationMs`: undefined for a stream. */
  ended(hop: Hop, outcome: HopOutcome, durationMs: number | undefined): void {
    this.hops[hop][outcome] += 1;
    if (outcome === 'answered' && durationMs !== undefined) this.times[hop].observe(durationMs);
  }
}
