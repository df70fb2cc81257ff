// Waits for a server of the benchmark to listen and tells its port.

import { once } from 'node:events';
import type { Server } from 'node:net';

/** The port of a server that listens. */
export async function portOf(server: Server): Promise<number> {
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server listens on no port');
  return address.port;
}
