// Finds a port that nobody listens on, for a program that has to be told its port before it starts.

import { once } from 'node:events';
import { createServer } from 'node:net';

/** A port of this machine that was free a moment ago. Nothing keeps it free: use it soon. */
export async function freePort(host = '127.0.0.1'): Promise<number> {
  const server = createServer();
  await once(server.listen(0, host), 'listening');
  const address = server.address();
  await once(server.close(), 'close');
  if (typeof address === 'object' && address !== null) return address.port;
  throw new Error('the system gave no port');
}
