// How a worker that stops lets the others know: they read the members when it asks them, instead of in their time. Source: ADR 175.

import { gatewayOf, type NodeView } from '../domain/nodes.ts';
import type { WorkerPlace } from '../domain/workers.ts';

/** Resolves when the other workers have read the members. Undefined where nodes of other gateways must read them, too. */
export function readByWorkers(
  members: { list(): readonly NodeView[] },
  gateway: string,
  worker: WorkerPlace | undefined,
): (() => Promise<unknown>) | undefined {
  const isOther = ({ id, state }: NodeView) => state !== 'ended' && gatewayOf(id) !== gateway;
  if (worker === undefined || members.list().some(isOther)) return undefined;
  return () => worker.ask({ kind: 'members' });
}
