// The differences between a worker and a node on another machine: a worker reaches the others by their socket files,
// and one that stops asks them to read the members, instead of waiting until they do.

import { socketAddress } from '../../cluster/reachable-life.ts';
import { gatewayIdOf, type ShownNode, workerOf } from '../../domain/nodes/nodes.ts';
import { type OwnWorker, workerSocket } from '../../domain/nodes/workers.ts';

/** Resolves when the other workers have read the members. Undefined where nodes of other gateways must read them, too. */
export function readByWorkers(
  table: { list(): readonly ShownNode[] },
  gateway: string,
  worker: OwnWorker | undefined,
): (() => Promise<unknown>) | undefined {
  const isOther = ({ id, state }: ShownNode) => state !== 'ended' && gatewayIdOf(id) !== gateway;
  if (worker === undefined || table.list().some(isOther)) return undefined;
  return () => worker.ask({ kind: 'members' });
}

/** The address of each other worker of this gateway. */
export function addressesOfWorkers(worker: OwnWorker, gateway: string): (node: string) => string | undefined {
  return (node) => {
    const number = workerOf(gateway, node);
    const socket = number === undefined ? undefined : workerSocket(worker, number);
    return socket === undefined ? undefined : socketAddress(socket);
  };
}
