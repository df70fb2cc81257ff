// What databases are asked for their options with.

import type { ConnectOptions } from '../../src/persistence/database.ts';
import { parseDatabaseUrl } from '../../src/persistence/database-url.ts';
import { Sockets } from '../../src/persistence/mikro-orm-patches.ts';

/** Options for a URL, with limits of 4 s, 5 s and 10 connections. */
export function connectOptions(url: string): ConnectOptions {
  const address = parseDatabaseUrl(url, '/srv')?.address;
  if (address === undefined) throw new Error('this URL has no address');
  return {
    address,
    statementTimeoutMs: 4_000,
    connectTimeoutMs: 5_000,
    connections: 10,
    sockets: new Sockets(),
  };
}
