// Waits until a server of the benchmark listens, and returns its port.

import { once } from 'node:events';
import type { Server } from 'node:net';

export async function portOf(server: Server): Promise<number> {
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server listens on no port');
  return address.port;
}
