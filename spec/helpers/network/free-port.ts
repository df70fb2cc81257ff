// Ports for servers that are started outside of this process.

import { once } from 'node:events';
import { createServer } from 'node:net';

/** A free port of this machine. Nothing reserves it: use it soon. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  await once(server.close(), 'close');
  if (typeof address === 'object' && address !== null) return address.port;
  throw new Error('the system gave no port');
}
