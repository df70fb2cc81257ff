// Pools of connections to servers of specs, and requests for them.

import { ConnectionPool } from '../../../src/net/http1/connection-pool.ts';
import { guardedConnector } from '../../../src/net/http1/connector.ts';
import { RequestWriter } from '../../../src/net/http1/request-writer.ts';

export function poolOf({ port }: { readonly port: number }, maxConnections = 8): ConnectionPool {
  const url = new URL(`http://127.0.0.1:${port}`);
  return new ConnectionPool(
    guardedConnector(url, () => false),
    { maxConnections },
  );
}

/** The text of a POST. */
export function postTo(path: string, headers: Record<string, string> = {}, body = '{}'): string | Buffer {
  return new RequestWriter('test', {}).textOf({ method: 'POST', path, headers, body }, undefined);
}
