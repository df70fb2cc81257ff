// Pools of connections to servers of specs, and requests for them.

import { type Clock, systemClock } from '../../../src/domain/time/clock.ts';
import { ConnectionPool } from '../../../src/net/http1/connection-pool.ts';
import { guardedConnector } from '../../../src/net/http1/connector.ts';
import type { ConnectionOwner } from '../../../src/net/http1/http1-connection.ts';
import { RequestWriter } from '../../../src/net/http1/request-writer.ts';
import { BackendHandshakes } from '../../../src/net/tls/backend-handshakes.ts';

interface PoolOfOptions {
  readonly origin?: string;
  readonly scheduler?: ConnectionOwner['scheduler'];
  readonly clock?: Clock;
}

export function poolOf(
  { port }: { readonly port: number },
  maxConnections = 8,
  { origin = 'http://127.0.0.1', ...more }: PoolOfOptions = {},
): ConnectionPool {
  const connector = guardedConnector(
    new URL(`${origin}:${port}`),
    () => false,
    new BackendHandshakes(systemClock),
  );
  return new ConnectionPool(connector, { clock: systemClock, maxConnections, ...more });
}

/** The text of a POST. */
export function postTo(path: string, headers: Record<string, string> = {}, body = '{}'): string | Buffer {
  return new RequestWriter('test', {}).textOf({ method: 'POST', path, headers, body }, undefined);
}
